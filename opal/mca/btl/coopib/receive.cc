// SPDX-License-Identifier: BSD-3-Clause
//
// Messages arrive over any rail, through a receive queue or a ring. Ordered ones are
// handed on in the order in which they were sent, the others at once (wire.h, Kind).
//
//     on_received, on_slot_filled ─► check ─► sequence ─► due ─► upper layer ─► release

#include "receive.h"

#include <cstring>
#include <new>
#include <utility>

#include "connect.h"
#include "diagnose.h"
#include "failover.h"
#include "failure.h"
#include "message.h"
#include "module.h"
#include "ring.h"
#include "rules.h"

namespace coop::ib {
namespace {

const Header& header_of(const ReceiveBuffer& buffer) { return *reinterpret_cast<const Header*>(buffer.data); }

// Checks the length and the tag of a control message.
void check_control(const Header& header, std::size_t bytes, const opal_proc_t* peer) {
    if (header.bytes != bytes) damaged("length of a control message", peer, header.bytes);
    if (header.tag != 0) damaged("tag of a control message", peer, header.tag);
}

// Only a ring can hold a longer message than a receive buffer; the tail of a slot was checked before.
void check_message(const Module& m, const Header& header, bool in_ring, const opal_proc_t* peer) {
    if (header.bytes > m.base.btl_max_send_size && !in_ring) damaged("length", peer, header.bytes);
    if (header.tag >= MCA_BTL_TAG_MAX || mca_btl_base_active_message_trigger[header.tag].cbfunc == nullptr)
        damaged("tag", peer, header.tag);
}

void check(const Module& m, const ReceiveBuffer& buffer, std::uint32_t arrived, const Endpoint& endpoint) {
    const opal_proc_t* const peer = endpoint.proc;
    const Header& header = header_of(buffer);
    if (arrived < sizeof(Header)) damaged("length of the message", peer, arrived);
    if (header.check != check_of(header)) damaged("check word", peer, header.check);
    if (header.bytes != arrived - sizeof(Header)) damaged("length", peer, header.bytes);
    const auto kind = static_cast<Kind>(header.kind);
    if (buffer.ring != nullptr && kind != Kind::kMessage) damaged("kind of a message in a ring", peer, header.kind);
    switch (kind) {
    case Kind::kMessage:
    case Kind::kUnordered: return check_message(m, header, buffer.ring != nullptr, peer);
    case Kind::kRingOffer: return check_control(header, sizeof(RingOffer), peer);
    case Kind::kCredits: return check_control(header, endpoint.channel->repairs ? sizeof(Acknowledgement) : 0, peer);
    }
    damaged("kind", peer, header.kind);
}

void release(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer) {
    if (buffer.ring != nullptr) return finish_slot(m, buffer);
    if (buffer.copy) {
        m.early_copies.bytes -= buffer.bytes;
        delete &buffer;
        return;
    }
    if (buffer.rail != nullptr) {
        --buffer.rail->in_use;
        if (!buffer.rail->can_receive()) return;
    }
    const bool had_credit = header_of(buffer).kind != static_cast<std::uint8_t>(Kind::kCredits);
    post_receive(m, buffer);
    if (buffer.rail == nullptr || !had_credit) return;
    buffer.rail->own_receives.on_free();
    if (buffer.rail->own_receives.owes_half() && endpoint.channel->state == ChannelState::kConnected)
        post_receive_credits(m, endpoint);
}

// Tells the peer which messages have arrived, so that it need not keep them any longer. Messages in rings are
// acknowledged by the credits of the ring.
void acknowledge_if_due(Module& m, Endpoint& endpoint) {
    constexpr std::uint32_t kMessages = 64, kBytes = 64 * 1024;
    const Channel& channel = *endpoint.channel;
    if (channel.arrived < kMessages && channel.arrived_bytes < kBytes) return;
    if (channel.state == ChannelState::kConnected) post_credits(m, endpoint);
}

void hand_on(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer) {
    const bool control = is_control(header_of(buffer).kind);
    const bool in_ring = buffer.ring != nullptr;  // release() may delete the buffer
    if (!control) hand_up(m, header_of(buffer), buffer.data + sizeof(Header));
    Guard guard(m);
    if (control) take_control(endpoint, header_of(buffer));
    release(m, endpoint, buffer);
    if (!control && !in_ring) count_towards_ring(m, endpoint);
    if (!in_ring) acknowledge_if_due(m, endpoint);
}

// The buffer no longer counts as held by an early message.
void stop_holding(ReceiveBuffer& buffer) {
    if (HcaUse* use = std::exchange(buffer.held_by, nullptr)) --use->held;
}

// Early messages may occupy 1/kHeldPart of the buffers of a receive queue. If they occupied all, the message for which
// they wait would find no buffer.
constexpr std::uint32_t kHeldPart = 4;

// Copies an early message, so that its buffer can be posted again. Returns null if there is no memory.
ReceiveBuffer* copy_of(Module& m, const ReceiveBuffer& buffer, std::uint32_t bytes) {
    auto copy = std::unique_ptr<ReceiveBuffer>(new (std::nothrow) ReceiveBuffer);
    if (copy) copy->copy.reset(new (std::nothrow) std::byte[bytes]);
    if (!copy || !copy->copy) return nullptr;
    std::memcpy(copy->copy.get(), buffer.data, bytes);
    copy->data = copy->copy.get();
    copy->bytes = bytes;
    m.early_copies.add(bytes);
    return copy.release();
}

// Whether messages occupy so many buffers of this receive queue that an early one must not keep its own. A queue pair
// with a queue of its own delivers in order, so that the missing message is on another one and needs no buffer here,
// unless it is repeated here because its rail has failed.
bool must_copy(const Channel& channel, const HcaUse& use, const ReceiveBuffer& buffer) {
    if (buffer.srq != nullptr) return use.held >= use.receives.size() / kHeldPart;
    return channel.repairs && buffer.rail->in_use > buffer.rail->receives.size() / kHeldPart;
}

// An early message waits in its receive buffer. If many do, it is copied, and the buffer is posted again.
ReceiveBuffer& place_for_early(Module& m, Endpoint& endpoint, HcaUse& use, ReceiveBuffer& buffer, std::uint32_t bytes) {
    ReceiveBuffer* const copy = must_copy(*endpoint.channel, use, buffer) ? copy_of(m, buffer, bytes) : nullptr;
    if (copy != nullptr) {
        release(m, endpoint, buffer);
        return *copy;
    }
    if (buffer.srq == nullptr) return buffer;
    buffer.held_by = &use;
    ++use.held;
    return buffer;
}

std::uint32_t hca_of(const Module& m, const HcaUse& use) { return static_cast<std::uint32_t>(&use - m.uses.data()); }

// How a message has arrived. `use` is null if it came through a ring.
struct Origin {
    HcaUse* use;
    std::uint32_t qp_number;
};

sched::Arrival take_in_order(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer, std::uint32_t arrived,
                             Origin origin) {
    const sched::SequenceNumber psn = header_of(buffer).psn;
    Channel& channel = *endpoint.channel;
    const bool early = channel.arrivals.is_ahead(psn);
    ReceiveBuffer& kept = early && origin.use != nullptr ? place_for_early(m, endpoint, *origin.use, buffer, arrived)
                                                         : buffer;
    const sched::Arrival arrival = channel.arrivals.on_arrival(psn, &kept);
    switch (arrival) {
    case sched::Arrival::kBeyondWindow: damaged("sequence number", endpoint.proc, psn);
    case sched::Arrival::kDuplicate:
        if (!holds(Rule::kDuplicates)) return sched::Arrival::kInOrder;
        stop_holding(kept);
        release(m, endpoint, kept);
        break;
    case sched::Arrival::kHeld:
        count_early(channel, origin.use != nullptr ? hca_of(m, *origin.use) : 0, origin.qp_number);
        break;
    case sched::Arrival::kInOrder: break;
    }
    return arrival;
}

// Remembers it for the case that the rail fails: what was posted before it on the rail has been executed.
void note_follower(const Module& m, Channel& channel, sched::SequenceNumber number, Origin origin) {
    const std::uint32_t hca = hca_of(m, *origin.use);
    for (sched::RailIndex i = 0; i < channel.rails.numbers(); ++i)
        if (Rail* const rail = channel.rails.find(i);
            rail != nullptr && rail->qp.number() == origin.qp_number && rail->local_hca == hca) {
            rail->last_follower = number;
            return;
        }
    for (EarlyFollower& early : channel.early_followers)
        if (early.hca == hca && early.qp_number == origin.qp_number) return void(early.number = number);
    channel.early_followers.push_back({hca, origin.qp_number, number});
}

// Recognizes repetitions of a message that has no place in the sequence.
sched::Arrival take_unordered(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer, Origin origin) {
    if (!endpoint.channel->repairs) return sched::Arrival::kInOrder;
    const sched::SequenceNumber number = header_of(buffer).psn;
    if (header_of(buffer).kind == static_cast<std::uint8_t>(Kind::kUnordered))
        note_follower(m, *endpoint.channel, number, origin);
    switch (endpoint.channel->seen_unordered.on_arrival(number)) {
    case sched::SeenNumbers::Seen::kFirst: return sched::Arrival::kInOrder;
    case sched::SeenNumbers::Seen::kAgain:
        if (!holds(Rule::kDuplicates)) return sched::Arrival::kInOrder;
        release(m, endpoint, buffer);
        return sched::Arrival::kDuplicate;
    case sched::SeenNumbers::Seen::kBeyond: break;
    }
    damaged("number of a message", endpoint.proc, number);
}

// Makes a message due, together with the early messages that follow it. Call it with the lock held.
void make_due(Channel& channel, ReceiveBuffer& first) {
    channel.delivery.due(first);
    while (ReceiveBuffer* early = channel.arrivals.pop_next()) {
        stop_holding(*early);
        channel.delivery.due(*early);
    }
}

// The action that an arrived message needs.
enum class Then : std::uint8_t { kNothing, kHandOnAlone, kHandOnAndDue, kHandOnDue };

// Checks a message, puts an ordered one into the sequence (an early one waits in the window, one in order becomes due),
// and takes the credits that it carries. Call it with the lock held.
Then take_in(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer, std::uint32_t arrived, Origin origin) {
    Channel& channel = *endpoint.channel;
    check(m, buffer, arrived, endpoint);
    const Header header = header_of(buffer);  // copied, because place_for_early() may post the buffer again
    const bool ordered = is_ordered(header.kind);
    if (channel.repairs && origin.use != nullptr) {
        ++channel.arrived;
        channel.arrived_bytes += arrived;
    }
    const sched::Arrival arrival = ordered ? take_in_order(m, endpoint, buffer, arrived, origin)
                                           : take_unordered(m, endpoint, buffer, origin);
    if (arrival == sched::Arrival::kDuplicate) return ++channel.duplicates, Then::kNothing;
    if (channel.repairs && header.kind == static_cast<std::uint8_t>(Kind::kCredits)) {
        Acknowledgement got;
        std::memcpy(&got, buffer.data + sizeof(Header), sizeof got);
        take_acknowledgement(m, endpoint, got);
    }
    if (header.ring_credits != 0) take_ring_credits(m, endpoint, header.ring_credits);
    if (header.receive_credits != 0) take_receive_credits(endpoint, sched::Grant::of(header.receive_credits));
    if (!ordered) return Then::kHandOnAlone;
    if (arrival == sched::Arrival::kHeld) return Then::kNothing;
    // The usual case: it is the only one, and nobody delivers.
    if (channel.arrivals.held() == 0 && channel.delivery.begin_at_once(this_thread())) return Then::kHandOnAndDue;
    make_due(*endpoint.channel, buffer);
    return endpoint.channel->delivery.begin(this_thread()) ? Then::kHandOnDue : Then::kNothing;
}

void hand_on_due(Module& m, Endpoint& endpoint) {
    const auto next = [&] {
        Guard guard(m);
        return endpoint.channel->delivery.next();
    };
    while (ReceiveBuffer* due = next()) hand_on(m, endpoint, *due);
}

void act(Module& m, Endpoint& endpoint, ReceiveBuffer& buffer, Then then) {
    if (then == Then::kNothing) return;
    if (then != Then::kHandOnDue) hand_on(m, endpoint, buffer);
    if (then != Then::kHandOnAlone) hand_on_due(m, endpoint);
}

}  // namespace

Channel::~Channel() {
    while (ReceiveBuffer* early = arrivals.pop_any())
        if (early->copy) delete early;
    rails = {};  // before the inbox, into which the peer writes over the rails
}

void post_receive(Module& m, ReceiveBuffer& buffer) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer.data), static_cast<std::uint32_t>(m.buffer_bytes()),
                buffer.memory->lkey(0)};
    ibv_recv_wr request{}, *bad = nullptr;
    request.wr_id = reinterpret_cast<std::uint64_t>(&buffer) | 1;
    request.sg_list = &sge;
    request.num_sge = 1;
    const int error = buffer.srq != nullptr ? ibv_post_srq_recv(buffer.srq, &request, &bad)
                                            : buffer.rail->qp.post_receive(request);
    // Only a queue that is being destroyed refuses a buffer that it had before.
    if (error != 0) opal_output(0, "btl/coopib: a receive buffer could not be posted again: %s", strerror(error));
}

namespace {

// Finds the peer of a queue pair. If it is unknown, takes the news first, which may name it. Returns null if the queue
// pair is closed.
Endpoint* find_user(Module& m, const HcaUse& use, std::uint32_t qp_number) {
    auto user = use.qp_users.find(qp_number);
    if (user == use.qp_users.end()) {
        take_news(m);
        user = use.qp_users.find(qp_number);
    }
    return user != use.qp_users.end() ? user->second : nullptr;
}

// A message arrived on a closed queue pair: posts the buffer of the shared receive queue again.
void give_up_arrival(Module& m, ReceiveBuffer& buffer, ibv_wc_status status) {
    if (buffer.srq != nullptr && status == IBV_WC_SUCCESS) post_receive(m, buffer);
}

}  // namespace

int on_received(Module& m, HcaUse& use, ReceiveBuffer& buffer, const ibv_wc& wc) {
    Endpoint* endpoint = nullptr;
    Then then = Then::kNothing;
    {
        Guard guard(m);
        endpoint = find_user(m, use, wc.qp_num);
        if (endpoint == nullptr) return give_up_arrival(m, buffer, wc.status), 0;
        if (wc.status != IBV_WC_SUCCESS) return on_receive_error(*endpoint, hca_of(m, use), wc), 0;
        // The peer knows that the queue pair is closed, and sends the message again.
        if (is_retired(*endpoint->channel, hca_of(m, use), wc.qp_num)) [[unlikely]]
            return give_up_arrival(m, buffer, wc.status), 0;
        if (buffer.rail != nullptr) ++buffer.rail->in_use;
        then = take_in(m, *endpoint, buffer, wc.byte_len, {&use, wc.qp_num});
    }
    act(m, *endpoint, buffer, then);
    return 1;
}

int on_slot_filled(Module& m, Inbox& ring) {
    Then then = Then::kNothing;
    ReceiveBuffer* buffer = nullptr;
    {
        Guard guard(m);
        buffer = take_slot(ring);
        if (buffer == nullptr) return 0;
        then = take_in(m, ring.endpoint, *buffer, buffer->bytes,
                       {nullptr, 0});  // never kHandOnAlone: check() accepts only kMessage
    }
    act(m, ring.endpoint, *buffer, then);
    return 1;
}

}  // namespace coop::ib
