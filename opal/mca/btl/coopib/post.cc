// SPDX-License-Identifier: BSD-3-Clause
//
// Onto the rails: which one a fragment takes, how an operation is cut into
// stripes, and the line of each rail. Everything with Module::lock held.
#include <algorithm>
#include <cstring>

#include "coop/async/urgent.h"
#include "module.h"

namespace coop::ib {
namespace {

std::uint64_t bytes_of(const Work& work) {
    return work.kind == WorkKind::kSend ? Fragment::of(const_cast<Work&>(work)).header->bytes + sizeof(Header)
                                        : static_cast<const StripeWork&>(work).bytes;
}

void fill_send(const Fragment& fragment, const Rail& rail, ibv_send_wr& request, ibv_sge& sge) {
    sge.addr = reinterpret_cast<std::uint64_t>(fragment.header);
    sge.length = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    sge.lkey = fragment.chunk->memory.lkey(rail.local_hca);
    request.opcode = IBV_WR_SEND;
    if (sge.length <= rail.max_inline) request.send_flags |= IBV_SEND_INLINE;
    if ((fragment.base.des_flags & kFencedFlag) != 0) request.send_flags |= IBV_SEND_FENCE;
    if ((fragment.base.des_flags & async::kUrgentFlag) != 0) request.send_flags |= IBV_SEND_SOLICITED;
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

void post_now(Module& m, Channel& channel, Rail& rail, Work& work) {
    ibv_send_wr request{}, *bad;
    ibv_sge sge{};
    request.wr_id = reinterpret_cast<std::uint64_t>(&work);
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (work.kind == WorkKind::kSend) fill_send(Fragment::of(work), rail, request, sge);
    else fill_stripe(static_cast<StripeWork&>(work), rail, request, sge);
    if (sge.length == 0) request.num_sge = 0;
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) {
        ibv_wc wc{};
        wc.status = IBV_WC_GENERAL_ERR;
        wc.vendor_err = static_cast<std::uint32_t>(error);
        rail_failed(m, *work.endpoint, &work, wc);
    }
    ++rail.in_flight;
    work.posted_ns = now_ns();
    channel.scheduler->on_posted(work.rail, bytes_of(work), work.posted_ns);
    rail.sent_bytes += bytes_of(work);
    ++(work.kind == WorkKind::kSend ? rail.sends : rail.stripes);
}

// Those in the rail's line, as far as there are places.
void pump(Module& m, Channel& channel, Rail& rail) {
    while (rail.in_flight < rail.depth)
        if (Work* next = rail.waiting.pop_front()) post_now(m, channel, rail, *next);
        else break;
}

// In the rail's line, or at once if nobody waits.
void submit(Module& m, Work& work) {
    Channel& channel = *work.endpoint->channel;
    Rail& rail = *channel.rails[work.rail];
    if (rail.in_flight < rail.depth && rail.waiting.empty()) return post_now(m, channel, rail, work);
    ++rail.waits;
    rail.waiting.push_back(&work);
}

// A fragment for each stripe, with what shall go behind it. False: there are none, and nothing was taken.
bool fill_riders(Module& m, RdmaOp& op, std::uint32_t stripes) {
    async::Rider& rider = *op.rider;
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
        fragment.base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | kFencedFlag;
        fragment.base.des_cbfunc = nullptr;
        fragment.work.kind = WorkKind::kSend;
        *fragment.header = {0, rider.bytes, rider.tag, static_cast<std::uint8_t>(Kind::kUnordered), 0, 0};
        fragment.header->check = check_of(*fragment.header);
        std::memcpy(fragment.data(), rider.packet, rider.bytes);
    }
    async::handler.under_way(-1);  // nobody has to see its end
    return true;
}

// The rail's line keeps them in this order.
void submit_with_rider(Module& m, StripeWork& stripe, Fragment& rider) {
    rider.work.rail = stripe.rail;
    rider.work.endpoint = stripe.endpoint;
    submit(m, stripe);
    submit(m, rider.work);
}

void add_stripe(Module& m, RdmaOp& op, std::uint32_t index, sched::RailIndex rail, std::uint64_t offset, std::uint64_t bytes) {
    StripeWork& stripe = op.stripes[index];
    stripe.kind = op.kind;
    stripe.rail = rail;
    stripe.endpoint = op.endpoint;
    stripe.op = &op;
    stripe.stripe = index;
    stripe.local_address = reinterpret_cast<std::uint64_t>(op.local_address) + offset;
    stripe.remote_address = op.remote_address + offset;
    stripe.bytes = static_cast<std::uint32_t>(bytes);
    // Behind a fence the HCA goes through the reads one by one: none of them takes a token.
    if (op.has_riders) return submit_with_rider(m, stripe, *op.riders[index]);
    if (op.kind != WorkKind::kPut && !op.endpoint->channel->rails[rail]->reads.take_or_queue(&stripe)) return;
    submit(m, stripe);
}

// Inline data are the HCA's when the call returns. So such a send needs no completion of its own: a mark now and then tells
// how many places in the queue are free again.
int post_inline_now(Rail& rail, void* bytes, std::uint32_t length, bool urgent) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(bytes), length, 0};
    ibv_send_wr request{}, *bad;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE | (urgent ? IBV_SEND_SOLICITED : 0);
    const bool marks = rail.marked == 0 && rail.unmarked + 1 >= rail.depth / 4;
    if (marks) {
        request.send_flags |= IBV_SEND_SIGNALED;
        request.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
    }
    if (const int error = ibv_post_send(rail.qp, &request, &bad); error != 0) return error;
    ++rail.in_flight;
    ++rail.unmarked;
    if (marks) {
        rail.marked = rail.unmarked;
        rail.unmarked = 0;
    }
    rail.sent_bytes += length;
    ++rail.sends;
    return 0;
}

sched::RailIndex rail_of_small(Module& m, Channel& channel, std::uint64_t bytes) {
    // A fragment goes whole, over one rail: as a small message does.
    const std::uint64_t small = std::min<std::uint64_t>(bytes, m.sched.striping_threshold - 1);
    return channel.scheduler->make_schedule(small, sched::Marker::kNone, now_ns())[0].rail;
}

}  // namespace

bool post_inline(Module& m, Endpoint& endpoint, Header& header, bool urgent) {
    Channel& channel = *endpoint.channel;
    const std::uint32_t length = static_cast<std::uint32_t>(sizeof(Header)) + header.bytes;
    Rail& rail = *channel.rails[rail_of_small(m, channel, length)];
    if (length > rail.max_inline || !rail.waiting.empty() || rail.in_flight >= rail.depth) return false;
    header.psn = channel.sequence.next();
    header.check = check_of(header);
    if (const int error = post_inline_now(rail, &header, length, urgent); error != 0) {
        ibv_wc wc{};
        wc.status = IBV_WC_GENERAL_ERR;
        wc.vendor_err = static_cast<std::uint32_t>(error);
        rail_failed(m, endpoint, nullptr, wc);
    }
    return true;
}

void on_mark_done(Module& m, Endpoint& endpoint, Rail& rail) {
    rail.in_flight -= rail.marked;
    rail.marked = 0;
    pump(m, *endpoint.channel, rail);
}

void post_fragment(Module& m, Endpoint& endpoint, Fragment& fragment) {
    Channel& channel = *endpoint.channel;
    fragment.header->psn = channel.sequence.next();
    fragment.header->check = check_of(*fragment.header);
    fragment.work.rail = rail_of_small(m, channel, fragment.header->bytes + sizeof(Header));
    submit(m, fragment.work);
}

void start_op(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    if (op.kind == WorkKind::kAtomic) {
        op.missing = sched::SentStripes(1);
        return add_stripe(m, op, 0, static_cast<sched::RailIndex>(channel.atomic_rail), 0, op.bytes);
    }
    const sched::Schedule schedule = channel.scheduler->make_schedule(op.bytes, sched::Marker::kNone, now_ns());
    op.missing = sched::SentStripes(schedule.size());
    if (op.rider != nullptr) op.has_riders = fill_riders(m, op, static_cast<std::uint32_t>(schedule.size()));
    // All stripes may be posted, and complete, before this returns: `op` is looked at no more behind the last.
    std::uint32_t i = 0;
    for (const sched::Stripe& stripe : schedule) add_stripe(m, op, i++, stripe.rail, stripe.offset_bytes, stripe.length_bytes);
}

void on_posted_done(Module& m, Work& work) {
    Channel& channel = *work.endpoint->channel;
    Rail& rail = *channel.rails[work.rail];
    --rail.in_flight;
    if ((work.kind == WorkKind::kGet && !static_cast<StripeWork&>(work).op->has_riders) || work.kind == WorkKind::kAtomic)
        if (StripeWork* next = rail.reads.give_back()) submit(m, *next);
    pump(m, channel, rail);
}

void release_waiting(Module& m, Endpoint& endpoint) {
    while (Work* work = endpoint.waiting.pop_front()) post_fragment(m, endpoint, Fragment::of(*work));
    while (RdmaOp* op = endpoint.waiting_ops.pop_front()) start_op(m, *op);
}

}  // namespace coop::ib
