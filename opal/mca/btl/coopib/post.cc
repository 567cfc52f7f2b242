// SPDX-License-Identifier: BSD-3-Clause
//
// Onto the rails: which one a fragment takes, how an operation is cut into
// stripes, and the line of each rail. Everything with Module::lock held.
#include <algorithm>
#include <cstring>
#include <utility>

#include "module.h"

namespace coop::ib {
namespace {

std::uint64_t bytes_of(const Work& work) {
    return work.kind == WorkKind::kSend ? Fragment::of(const_cast<Work&>(work)).header->bytes + sizeof(Header)
                                        : static_cast<const StripeWork&>(work).bytes;
}

void fill_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& request) {
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = ring.rkey[rail.remote_hca];
}

void fill_send(const Fragment& fragment, const Rail& rail, ibv_send_wr& request, ibv_sge& sge) {
    sge.addr = reinterpret_cast<std::uint64_t>(fragment.header);
    sge.length = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    sge.lkey = fragment.chunk->memory.lkey(rail.local_hca);
    request.opcode = IBV_WR_SEND;
    if (fragment.ring_address != 0) {
        sge.length = sched::written(sge.length);
        fill_write(*fragment.work.endpoint->channel->outbox, fragment.ring_address, rail, request);
    }
    if (sge.length <= rail.max_inline) request.send_flags |= IBV_SEND_INLINE;
    if (fragment.fenced) request.send_flags |= IBV_SEND_FENCE;
    if (fragment.urgent) request.send_flags |= IBV_SEND_SOLICITED;
}

void fill_stripe(const StripeWork& stripe, const Rail& rail, ibv_send_wr& request, ibv_sge& sge) {
    const RdmaOp& op = *stripe.op;
    sge.addr = stripe.local_address;
    sge.length = stripe.bytes;
    const bool inlined = op.kind == WorkKind::kPut && stripe.bytes <= rail.max_inline;
    if (inlined) request.send_flags |= IBV_SEND_INLINE;
    else sge.lkey = lkey_of(op.local_handle, rail.local_hca);
    const std::uint32_t rkey = op.remote.rkey[rail.remote_hca];
    if (op.kind == WorkKind::kAtomic) {
        request.opcode = op.swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
        request.wr.atomic.remote_addr = stripe.remote_address;
        request.wr.atomic.rkey = rkey;
        request.wr.atomic.compare_add = op.operand;
        request.wr.atomic.swap = op.value;
        return;
    }
    request.opcode = op.kind == WorkKind::kPut ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    request.wr.rdma.remote_addr = stripe.remote_address;
    request.wr.rdma.rkey = rkey;
}

// Of the rail that owes most.
sched::Grant take_owed_receives(Channel& channel) {
    const auto owes_less = [](const auto& a, const auto& b) { return a->own_receives.owed() < b->own_receives.owed(); };
    const auto most = std::max_element(channel.rails.begin(), channel.rails.end(), owes_less);
    const std::uint32_t count = (*most)->own_receives.take_owed();
    return {count != 0 ? static_cast<sched::RailIndex>(most - channel.rails.begin()) : sched::RailIndex{0}, count};
}

// The last that is put into a header, when it is posted: in a message that waits for the peer's credits, the peer's could wait for ours.
void load_credits(Channel& channel, Header& header) {
    header.ring_credits = channel.inbox ? channel.inbox->slots.take_owed() : std::uint16_t{0};
    header.receive_credits = channel.has_own_receives ? take_owed_receives(channel).word() : std::uint16_t{0};
    if (header.ring_credits != 0 || header.receive_credits != 0) header.check = check_of(header);
}

void fail_to_post(Module& m, Endpoint& endpoint, const Work* work, int error) {
    ibv_wc wc{};
    wc.status = IBV_WC_GENERAL_ERR;
    wc.vendor_err = static_cast<std::uint32_t>(error);
    rail_failed(m, endpoint, work, wc);
}

void post_now(Module& m, Channel& channel, Rail& rail, Work& work) {
    ibv_send_wr request{}, *bad;
    ibv_sge sge{};
    request.wr_id = reinterpret_cast<std::uint64_t>(&work);
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (work.kind == WorkKind::kSend) {
        const Fragment& fragment = Fragment::of(work);
        if (fragment.header->kind != static_cast<std::uint8_t>(Kind::kUnordered)) load_credits(channel, *fragment.header);
        fill_send(fragment, rail, request, sge);
    } else {
        fill_stripe(static_cast<StripeWork&>(work), rail, request, sge);
    }
    if (sge.length == 0) request.num_sge = 0;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) fail_to_post(m, *work.endpoint, &work, error);
    ++rail.in_flight;
    const std::uint64_t bytes = bytes_of(work);
    if (work.kind != WorkKind::kSend) channel.scheduler->on_waited(work.rail, bytes);
    channel.scheduler->on_posted(work.rail, bytes, work.posted_ns);
    rail.sent_bytes += bytes;
    ++(work.kind == WorkKind::kSend ? rail.sends : rail.stripes);
}

// Credits have buffers of their own to arrive in: if they needed a credit, both sides could wait for each other's.
bool needs_credit(const Rail& rail, Work& work) {
    if (!rail.counts_credits || work.kind != WorkKind::kSend) return false;
    const Fragment& fragment = Fragment::of(work);
    return fragment.ring_address == 0 && fragment.header->kind != static_cast<std::uint8_t>(Kind::kCredits);
}

// Whether there is a place for it, on this queue pair and at its other end. Takes both.
bool take_place(Channel& channel, Rail& rail, Work& work) {
    if (rail.in_flight >= rail.depth) return false;
    return !needs_credit(rail, work) || channel.receive_credits[work.rail].take();
}

// Those in the rail's line, as far as there are places.
void pump(Module& m, Channel& channel, Rail& rail) {
    while (Work* next = rail.waiting.front()) {
        if (!take_place(channel, rail, *next)) return;
        rail.waiting.remove(next);
        if (next->kind == WorkKind::kSend) channel.scheduler->on_waited(next->rail, bytes_of(*next));
        post_now(m, channel, rail, *next);
    }
}

// In the rail's line, or at once if nobody waits.
void submit(Module& m, Work& work) {
    Channel& channel = *work.endpoint->channel;
    Rail& rail = *channel.rails[work.rail];
    if (rail.waiting.empty() && take_place(channel, rail, work)) return post_now(m, channel, rail, work);
    ++rail.waits;
    if (work.kind == WorkKind::kSend) channel.scheduler->on_waiting(work.rail, bytes_of(work));
    rail.waiting.push_back(&work);
}

// A fragment for each stripe, with what shall go behind it. False: there are none, and nothing was taken.
bool fill_riders(Module& m, RdmaOp& op, std::uint32_t stripes) {
    Rider& rider = *op.rider;
    for (std::uint32_t i = 0; i < stripes; ++i) {
        op.riders[i] = m.fragments.take();
        if (op.riders[i] != nullptr) continue;
        while (i-- > 0) m.fragments.give_back(*op.riders[i]);
        return false;
    }
    rider.set_parts(rider.packet, stripes);
    rider.taken = true;
    for (std::uint32_t i = 0; i < stripes; ++i) {
        Fragment& fragment = *op.riders[i];
        fragment.base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
        fragment.fenced = true;
        fragment.base.des_cbfunc = nullptr;
        fragment.work.kind = WorkKind::kSend;
        fragment.ring_address = 0;
        *fragment.header = {0, rider.bytes, rider.tag, static_cast<std::uint8_t>(Kind::kUnordered), 0, 0, 0};
        fragment.header->check = check_of(*fragment.header);
        std::memcpy(fragment.data(), rider.packet, rider.bytes);
    }
    m.handler.under_way(-1);  // nobody has to see its end
    return true;
}

// The rail's line keeps them in this order.
void submit_with_rider(Module& m, StripeWork& stripe, Fragment& rider) {
    rider.work.rail = stripe.rail;
    rider.work.endpoint = stripe.endpoint;
    submit(m, stripe);
    submit(m, rider.work);
}

void add_stripe(Module& m, RdmaOp& op, std::uint32_t index, sched::RailIndex rail, std::uint64_t offset, std::uint64_t bytes, std::uint64_t posted_ns) {
    StripeWork& stripe = op.stripes[index];
    stripe.kind = op.kind;
    stripe.rail = rail;
    stripe.endpoint = op.endpoint;
    stripe.posted_ns = posted_ns;
    stripe.op = &op;
    stripe.stripe = index;
    stripe.local_address = reinterpret_cast<std::uint64_t>(op.local_address) + offset;
    stripe.remote_address = op.remote_address + offset;
    stripe.bytes = static_cast<std::uint32_t>(bytes);
    op.endpoint->channel->scheduler->on_waiting(rail, bytes);  // until it is posted
    count_posted(m, stripe, op.endpoint->channel->rails[rail]->local_hca);
    // Behind a fence the HCA goes through the reads one by one: none of them takes a token.
    if (op.has_riders) return submit_with_rider(m, stripe, *op.riders[index]);
    Rail& on = *op.endpoint->channel->rails[rail];
    if (op.kind == WorkKind::kPut || on.reads.take_or_queue(&stripe)) return submit(m, stripe);
    ++on.read_waits;
}

void cut(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    const std::uint64_t now = now_ns();
    const sched::Schedule schedule = channel.scheduler->make_schedule(op.bytes, op.marker, now);
    const std::uint64_t posted_ns = schedule.is_measured() ? now : sched::kNotMeasured;
    op.missing = sched::SentStripes(schedule.size());
    ++(schedule.size() == 1 ? channel.whole : channel.striped)[static_cast<std::size_t>(schedule.header.reason)];
    if (op.rider != nullptr) op.has_riders = fill_riders(m, op, static_cast<std::uint32_t>(schedule.size()));
    // All stripes may be posted, and complete, before this returns: `op` is looked at no more behind the last.
    std::uint32_t i = 0;
    for (const sched::Stripe& stripe : schedule) add_stripe(m, op, i++, stripe.rail, stripe.offset_bytes, stripe.length_bytes, posted_ns);
}

bool can_read(const Channel& channel) {
    return std::any_of(channel.rails.begin(), channel.rails.end(), [](const auto& rail) { return rail->reads.can_take(); });
}

// An operation that would only wait is not cut yet: until it can begin, the rails will show more of how fast they are.
bool waits_whole(const Channel& channel, const RdmaOp& op) {
    const sched::Scheduler& scheduler = *channel.scheduler;
    return scheduler.may_wait(op.bytes, op.marker) ||
           (op.kind == WorkKind::kGet && scheduler.would_measure(op.bytes, op.marker) && !can_read(channel));
}

// A rail has less to do, or a token again.
void cut_waiting(Module& m, Channel& channel) {
    while (RdmaOp* op = channel.uncut.front()) {
        if (waits_whole(channel, *op)) return;
        channel.uncut.pop_front();
        cut(m, *op);
    }
}

// Inline data are the HCA's when the call returns. So such a send needs no completion of its own: a mark now and then tells
// how many places in the queue are free again. One that fails completes all the same, and says by the mark which rail it was.
int post_inline_now(Rail& rail, ibv_send_wr& request, sched::SequenceNumber psn) {
    ibv_send_wr* bad;
    request.send_flags |= IBV_SEND_INLINE;
    request.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
    const bool marks = rail.marked == 0 && rail.unmarked + 1 >= rail.depth / 4;
    if (marks) request.send_flags |= IBV_SEND_SIGNALED;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) return error;
    ++rail.in_flight;
    ++rail.unmarked;
    rail.unmarked_psns.push_back(psn);
    if (marks) {
        rail.marked = std::exchange(rail.unmarked, 0);
        rail.marked_psns.swap(rail.unmarked_psns);
    }
    rail.sent_bytes += request.sg_list->length;
    ++rail.sends;
    return 0;
}

// Asks whether the inline sends of a rail have landed that have no mark behind them: an RDMA write of no bytes, which touches no
// memory, completes after them.
void mark_now(Module& m, Rail& rail) {
    if (rail.marked != 0 || rail.unmarked_psns.empty() || rail.in_flight >= rail.depth) return;
    ibv_send_wr request{}, *bad;
    request.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) fail_to_post(m, *rail.mark.endpoint, &rail.mark, error);
    ++rail.in_flight;
    rail.marked = std::exchange(rail.unmarked, 0) + 1;
    rail.marked_psns.swap(rail.unmarked_psns);
}

// Numbers go in the order in which messages are handed to the rails, also to the line of one.
void seal(Channel& channel, Header& header) {
    header.psn = channel.window.take();
    header.ring_credits = header.receive_credits = 0;
    header.check = check_of(header);
}

// Where in the peer's ring a message of `length` is written, when its tail has been put behind it; 0: nowhere, send it.
std::uint64_t enter_ring(Channel& channel, Header& header, std::uint32_t length) {
    if (!channel.outbox || header.kind != static_cast<std::uint8_t>(Kind::kMessage) || !channel.outbox->slots.fits(length)) return 0;
    const auto place = channel.outbox->slots.take();
    if (!place) return 0;
    const sched::RingTail tail = sched::make_tail(length, *place);
    std::memcpy(reinterpret_cast<std::byte*>(&header) + sched::padded(length), &tail, sizeof tail);
    ++channel.ring_messages;
    return channel.outbox->end_of(place->slot) - sched::written(length);
}

// A fragment goes whole, over one rail: as a small message does.
sched::RailIndex rail_of_fragment(Module& m, Channel& channel, std::uint32_t bytes) {
    return channel.scheduler->rail_of_small(std::min<std::uint64_t>(bytes, m.sched.striping_threshold - 1));
}

// A fragment of ours that is given back when it has gone; null: no memory.
Fragment* make_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = m.fragments.take();
    if (fragment == nullptr) return nullptr;
    *fragment->header = {0, static_cast<std::uint32_t>(payload.size()), 0, static_cast<std::uint8_t>(kind), 0, 0, 0};
    if (!payload.empty()) std::memcpy(fragment->data(), payload.data(), payload.size());
    fragment->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    fragment->base.des_cbfunc = nullptr;
    fragment->ring_address = 0;
    fragment->header->check = check_of(*fragment->header);
    fragment->work.kind = WorkKind::kSend;
    fragment->work.endpoint = &endpoint;
    return fragment;
}

// Whether the next message may be sent now; false: it waits in `beyond` behind those that do already.
bool may_go_on(const Channel& channel) { return channel.beyond.empty() && channel.window.has_room(); }

void send_fragment(Module& m, Channel& channel, Fragment& fragment) {
    const std::uint32_t length = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    fragment.ring_address = fragment.urgent ? 0 : enter_ring(channel, *fragment.header, length);
    seal(channel, *fragment.header);
    fragment.work.rail = rail_of_fragment(m, channel, length);
    submit(m, fragment.work);
}

// The window has moved on, perhaps. If not, it may be for an inline send whose end nobody has asked for.
void send_beyond(Module& m, Channel& channel) {
    while (!channel.beyond.empty() && channel.window.has_room()) send_fragment(m, channel, Fragment::of(*channel.beyond.pop_front()));
    if (channel.beyond.empty()) return;
    for (const auto& rail : channel.rails) mark_now(m, *rail);
}

}  // namespace

bool post_inline(Module& m, Endpoint& endpoint, Header& header, bool urgent) {
    Channel& channel = *endpoint.channel;
    if (!may_go_on(channel)) return false;
    const std::uint32_t length = static_cast<std::uint32_t>(sizeof(Header)) + header.bytes;
    Rail& rail = *channel.rails[rail_of_fragment(m, channel, length)];
    if (length > rail.max_inline || !rail.waiting.empty() || rail.in_flight >= rail.depth) return false;
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&header), length, 0};
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    if (urgent) request.send_flags = IBV_SEND_SOLICITED;
    // What is written into memory cannot interrupt.
    const std::uint64_t address = !urgent && sched::written(length) <= rail.max_inline ? enter_ring(channel, header, length) : 0;
    if (address != 0) {
        sge.length = sched::written(length);
        fill_write(*channel.outbox, address, rail, request);
    } else if (rail.counts_credits && !channel.receive_credits[rail.mark.rail].take()) {
        return false;
    }
    seal(channel, header);
    load_credits(channel, header);
    if (const int error = post_inline_now(rail, request, header.psn); error != 0) fail_to_post(m, endpoint, &rail.mark, error);
    return true;
}

bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = make_control(m, endpoint, kind, payload);
    if (fragment != nullptr) post_fragment(m, endpoint, *fragment);
    return fragment != nullptr;
}

// Before all that waits, perhaps for the very same from the other side.
void post_credits(Module& m, Endpoint& endpoint) {
    Fragment* fragment = make_control(m, endpoint, Kind::kCredits, {});
    if (fragment == nullptr) return;
    Channel& channel = *endpoint.channel;
    ++channel.credit_messages;
    Work& work = fragment->work;
    work.rail = rail_of_fragment(m, channel, sizeof(Header));
    Rail& rail = *channel.rails[work.rail];
    if (rail.in_flight < rail.depth) return post_now(m, channel, rail, work);
    channel.scheduler->on_waiting(work.rail, bytes_of(work));
    rail.waiting.push_front(&work);
}

void take_receive_credits(Module& m, Endpoint& endpoint, sched::Grant grant) {
    Channel& channel = *endpoint.channel;
    const bool connected = channel.state == ChannelState::kConnected;
    if (connected && (grant.rail >= channel.rails.size() || !channel.rails[grant.rail]->counts_credits)) damaged("rail of credits", endpoint.proc, grant.rail);
    if (!channel.receive_credits[grant.rail].give(grant.count)) damaged("credits", endpoint.proc, grant.count);
    if (connected) pump(m, channel, *channel.rails[grant.rail]);
}

void on_mark_done(Module& m, Endpoint& endpoint, Rail& rail) {
    Channel& channel = *endpoint.channel;
    rail.in_flight -= std::exchange(rail.marked, 0);
    for (const sched::SequenceNumber psn : rail.marked_psns) channel.window.landed(psn);
    rail.marked_psns.clear();
    pump(m, channel, rail);
    send_beyond(m, channel);
}

void post_fragment(Module& m, Endpoint& endpoint, Fragment& fragment) {
    Channel& channel = *endpoint.channel;
    if (may_go_on(channel)) return send_fragment(m, channel, fragment);
    ++channel.window_waits;
    channel.beyond.push_back(&fragment.work);
    send_beyond(m, channel);
}

void start_op(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    if (op.kind == WorkKind::kAtomic) {
        op.missing = sched::SentStripes(1);
        if (!channel.atomic_rail) no_atomics(*op.endpoint);
        return add_stripe(m, op, 0, *channel.atomic_rail, 0, op.bytes, sched::kNotMeasured);
    }
    // With riders nobody looks after it any more.
    if (op.rider != nullptr || (channel.uncut.empty() && !waits_whole(channel, op))) return cut(m, op);
    if (op.kind == WorkKind::kGet && !can_read(channel))
        for (const auto& rail : channel.rails) ++rail->read_waits;
    channel.uncut.push_back(&op);
}

void on_posted_done(Module& m, Work& work) {
    Channel& channel = *work.endpoint->channel;
    Rail& rail = *channel.rails[work.rail];
    --rail.in_flight;
    if ((work.kind == WorkKind::kGet && !static_cast<StripeWork&>(work).op->has_riders) || work.kind == WorkKind::kAtomic) {
        if (StripeWork* next = rail.reads.give_back()) submit(m, *next);
    }
    if (work.kind == WorkKind::kSend) {
        const Header& header = *Fragment::of(work).header;
        if (is_ordered(header.kind)) channel.window.landed(header.psn);
    }
    pump(m, channel, rail);
    send_beyond(m, channel);
    cut_waiting(m, channel);
}

void release_waiting(Module& m, Endpoint& endpoint) {
    std::uint64_t& waited = endpoint.channel->connect_waits;
    for (; Work* work = endpoint.waiting.pop_front(); ++waited) post_fragment(m, endpoint, Fragment::of(*work));
    for (; RdmaOp* op = endpoint.waiting_ops.pop_front(); ++waited) start_op(m, *op);
}

}  // namespace coop::ib
