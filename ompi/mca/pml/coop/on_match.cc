// SPDX-License-Identifier: BSD-3-Clause
//
// First packets: eager messages and RTS. A packet in order matches a posted receive or becomes unexpected. A packet
// that is out of order, or for a communicator that does not exist here yet, is kept.
#include "on_match.h"

#include <cstring>
#include <new>
#include <utility>

#include "awaited.h"
#include "diagnose.h"
#include "node_lane.h"
#include "pool.h"
#include "recv_direct.h"
#include "recv_request.h"

namespace coop::pml {
namespace {

// Keeps a message that has overtaken an earlier one. Under Comm::lock.
template <class Message>
[[gnu::noinline]] void hold_back(Peer& peer, const Message& message) noexcept {
    Arrived* arrived = keep(message);
    if (!match::Engine::keep_early(peer.source, &arrived->arrival)) diagnose_repeated(arrived->header());
    module.counters.count(Counter::kOutOfOrder);
}

template <class Message>
[[gnu::noinline]] void keep_unexpected(Comm& c, Peer& peer, const Message& message) noexcept {
    c.engine.keep_unexpected(peer.source, &keep(message)->arrival);
    module.counters.up(Gauge::kUnexpected);
}

// Delivers the message to the receive that it has matched.
void deliver_to(match::Posted* posted, Peer& peer, const Packet& packet) noexcept {
    receive(direct_recv.is(posted) ? direct_recv.change_over() : *RecvRequest::from(posted), peer, packet);
}
void deliver_to(match::Posted* posted, Peer& peer, const Whole& message) noexcept {
    if (!direct_recv.is(posted)) receive(*RecvRequest::from(posted), peer, message);
    else if (!direct_recv.take(message)) [[unlikely]] receive(direct_recv.change_over(), peer, message);
}

// Matches the early messages that are now in order. Returns those that match a posted receive, linked by `next_due`; the
// others become unexpected. Under Comm::lock. Without the lock, Comm and Peer may be used only until the last of the matched
// receives is delivered: the communicator may then be freed.
[[gnu::noinline]] Arrived* release_early(Comm& c, Peer& peer) noexcept {
    Arrived* due = nullptr;
    Arrived** end = &due;
    while (match::Arrival* arrival = match::Engine::next_early(peer.source)) {
        Arrived* arrived = Arrived::from(arrival);
        arrived->posted = c.engine.take_posted(peer.source, arrival->tag);
        if (peer.source.offered) meet_offered(peer, arrived->header(), arrived->posted);
        if (arrived->posted) {
            arrived->next_due = nullptr;
            *end = arrived;
            end = &arrived->next_due;
        } else {
            c.engine.keep_unexpected(peer.source, arrival);
            module.counters.up(Gauge::kUnexpected);
        }
    }
    return due;
}

[[gnu::noinline]] void deliver_due(Peer& peer, Arrived* due) noexcept {
    while (due) {
        Arrived* const arrived = std::exchange(due, due->next_due);
        deliver_to(arrived->posted, peer, arrived->packet());
        discard(arrived);
    }
}

std::size_t length_of(const Packet& packet, const wire::MatchHeader& header) noexcept {
    return header.kind == wire::Kind::kRts ? static_cast<const wire::RtsHeader*>(packet.header())->length
                                           : packet.bytes() - sizeof header;
}
std::size_t length_of(const Whole& message, const wire::MatchHeader&) noexcept { return message.bytes; }

// The hot path of a receiver. Message: Packet or Whole.
template <class Message>
void arrive(Comm& c, const wire::MatchHeader& header, const Message& message) noexcept {
    if (header.source >= c.size) [[unlikely]]
        diagnose_rank(header, c.size);
    Peer& peer = c.peer(header.source);
    match::Posted* posted;
    Arrived* due = nullptr;
    peer.run.store(0, std::memory_order_relaxed);
    peer.streams.store(false, std::memory_order_relaxed);
    if (length_of(message, header) > node::LaneTraffic::kLong) peer.traffic.arrived();
    if (module.has_offered.load(std::memory_order_relaxed)) module.has_offered.store(false, std::memory_order_relaxed);
    {
        Guard guard(c.lock);
        if (OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(c.comm)) [[unlikely]] {
            ++peer.source.expected;  // messages match in any order; the number is right once all have arrived
        } else if (const auto order = match::Engine::take_sequence(peer.source, header.sequence);
                   order != match::ArrivalOrder::kInOrder) [[unlikely]] {
            if (order == match::ArrivalOrder::kRepeated) diagnose_repeated(header);
            return hold_back(peer, message);
        }
        posted = c.engine.take_posted(peer.source, header.tag);
        if (peer.source.offered) meet_offered(peer, header, posted);
        if (!posted) keep_unexpected(c, peer, message);
        if (!peer.source.early.empty()) [[unlikely]]
            due = release_early(c, peer);
    }
    if (posted) deliver_to(posted, peer, message);
    if (due) [[unlikely]]
        deliver_due(peer, due);
}

[[gnu::noinline]] void deliver_homeless(Arrived* arrived) noexcept {
    Comm* const c = keep_homeless(arrived, arrived->header().context);
    if (!c) return;
    arrive(*c, arrived->header(), arrived->packet());
    discard(arrived);
}

template <class Message>
void deliver(const wire::MatchHeader& header, const Message& message) noexcept {
    Comm* const c = find_comm(header.context);
    if (!c) [[unlikely]]
        return deliver_homeless(keep(message));
    arrive(*c, header, message);
}

// Ends the job because an eager header is damaged, of which `bytes` bytes have arrived.
[[noreturn, gnu::noinline]] void diagnose_match(const wire::MatchHeader& header, std::size_t bytes) noexcept {
    wire::Damage damage{};
    static_cast<void>(wire::valid_match(&header, bytes, damage));
    diagnose_header(damage, bytes < sizeof header ? Sender() : Sender(header));
}

// Long messages that came through the lane: their senders watch how much of them we keep.
bool counts_as_kept(const Arrived& a) noexcept {
    return !a.btl &&
           a.segment.seg_len > static_cast<std::size_t>(module.config.lane_small_max) + sizeof(wire::RtsHeader);
}

}  // namespace

Arrived* keep(const Packet& packet) noexcept {
    auto* a = take<Arrived>(module.arrived);
    if (!a) out_of_memory("a record of an unexpected message");
    new (&a->arrival) match::Arrival;
    const std::size_t bytes = packet.bytes();
    a->heap = bytes > static_cast<std::size_t>(module.config.unexpected_inline)
                  ? static_cast<unsigned char*>(module.blocks.take(bytes, module.threads))
                  : nullptr;
    if (!a->heap && bytes > static_cast<std::size_t>(module.config.unexpected_inline))
        out_of_memory("an unexpected message");
    unsigned char* to = a->heap ? a->heap : a->room;
    a->btl = packet.btl;
    a->segment.seg_addr.pval = to;
    a->segment.seg_len = bytes;
    const std::size_t there = packet.parts ? 1 : packet.count;  // segments
    for (std::size_t i = 0; i < there; ++i) {
        std::memcpy(to, packet.segments[i].seg_addr.pval, packet.segments[i].seg_len);
        to += packet.segments[i].seg_len;
    }
    if (packet.parts) packet.parts->copy_all(to);
    if (counts_as_kept(*a)) keep_from_lane(static_cast<std::int64_t>(bytes));
    const wire::MatchHeader& header = a->header();
    a->context = header.context;
    a->arrival.source = header.source;
    a->arrival.tag = header.tag;
    a->arrival.sequence = header.sequence;
    return a;
}

void discard(Arrived* a) noexcept {
    if (counts_as_kept(*a)) keep_from_lane(-static_cast<std::int64_t>(a->segment.seg_len));
    module.blocks.give_back(a->heap, a->segment.seg_len, module.threads);
    give_back(module.arrived, a);
}

void on_eager(const Packet& packet) noexcept {
    const auto& header = *static_cast<const wire::MatchHeader*>(packet.header());
    if (packet.first_bytes() < sizeof header || !wire::match_is_whole(header)) [[unlikely]]
        diagnose_match(header, packet.first_bytes());
    deliver(header, packet);
}

bool has_receive(const wire::MatchHeader& header) noexcept {
    Comm* const c = find_comm(header.context);
    if (!c || header.source >= c->size) return false;
    match::Source& source = c->peer(header.source).source;
    Guard guard(c->lock);
    return (OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(c->comm) || source.expected == header.sequence) &&
           c->engine.has_posted(source, header.tag);
}

bool on_whole(const Whole& message) noexcept {
    if (!wire::match_is_whole(*message.header)) [[unlikely]]
        diagnose_match(*message.header, sizeof *message.header);
    deliver(*message.header, message);
    return (!direct_recv.is_received() && !awaited_is_complete()) || module.sends.in_use() > 0;
}

extern "C" void mca_pml_coop_on_match(mca_btl_base_module_t* btl, mca_btl_base_tag_t, mca_btl_base_descriptor_t* des,
                                      void*) {
    const Callback turn;
    on_eager({btl, des->des_segments, des->des_segment_count});
}

extern "C" void mca_pml_coop_on_rts(mca_btl_base_module_t* btl, mca_btl_base_tag_t, mca_btl_base_descriptor_t* des,
                                    void*) {
    const Callback turn;
    const Packet packet{btl, des->des_segments, des->des_segment_count};
    const auto& header = *static_cast<const wire::RtsHeader*>(packet.header());
    wire::Damage damage{};
    if (!wire::valid_rts(&header, packet.first_bytes(), packet.bytes(), damage)) [[unlikely]]
        diagnose_header(damage, packet.first_bytes() < sizeof header ? Sender() : Sender(header.match));
    deliver(header.match, packet);
}

}  // namespace coop::pml
