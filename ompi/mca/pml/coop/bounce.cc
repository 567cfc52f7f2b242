// SPDX-License-Identifier: BSD-3-Clause
#include "bounce.h"

#include "hints.h"
#include "lane_packet.h"
#include "packet.h"
#include "stack_convertor.h"

namespace coop::pml {
namespace {

rndv::Situation situation_of(Peer& peer, std::size_t bytes, ompi_communicator_t* comm, rndv::SendCall call) noexcept {
    rndv::Situation s;
    s.bytes = bytes;
    const LaneOut* const lane = peer.lane();
    s.eager_limit = peer.whole_max(lane, true);
    s.bounce_max = static_cast<std::size_t>(module.config.bounce_max);
    s.wish = wish_for(comm);
    s.send_call = call_for(comm, call);
    if (lane) s.lane_max = longest_for(*lane, peer, rndv::sender_waits(s.send_call), s.wish);
    s.can_share = peer.can_share() && peer.neighbour->sees_us.load(std::memory_order_relaxed);
    s.one_way = peer.goes_one_way();
    return s;
}

wire::RtsHeader rts_of(ompi_communicator_t* comm, int tag, std::uint16_t sequence, const rndv::Situation& s,
                       const rndv::Choice& choice, const rndv::BouncePool::Taken& taken) noexcept {
    wire::RtsHeader h{};
    h.match = {wire::Kind::kRts,
               wire::wish_flag(static_cast<std::uint8_t>(s.wish)),
               static_cast<std::uint16_t>(comm->c_contextid),
               comm->c_my_rank,
               tag,
               sequence,
               0};
    h.length = s.bytes;
    h.address = rndv::stamped(taken.generation, taken.index);
    h.row = static_cast<std::uint8_t>(choice.row);
    h.reason = static_cast<std::uint8_t>(choice.reason);
    h.call = static_cast<std::uint8_t>(s.send_call);
    wire::seal(h);
    return h;
}

}  // namespace

bool send_by_bounce(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                    SequenceNumber& sequence, ompi_communicator_t* comm, rndv::SendCall call) noexcept {
    if (!peer.neighbour) return false;  // bounce buffers are for the processes of this node
    const std::size_t bytes = bytes_of(datatype->super, count);
    if (bytes <= peer.whole_max(peer.lane(), true) || peer.has_line() || !my_bounces()) return false;
    take_in_written_parameters();
    const rndv::Situation s = situation_of(peer, bytes, comm, call);
    const rndv::Choice choice = rndv::choose(s);
    // The processes of one job end together, so a bounce buffer exists as long as a receiver may read it.
    if (!rndv::protocol(choice.row).uses_bounce || !is_of_our_job(peer.proc)) return false;

    rndv::BounceBuffers& buffers = *my_bounces();
    std::optional<rndv::BouncePool::Taken> taken;
    {
        Guard guard(module.lock);
        taken = module.bounces.acquire(buffers);
    }
    if (!taken) return false;
    rndv::Bounce& bounce = buffers.all[taken->index];
    pack(peer, buf, count, datatype, bounce.bytes, bytes);
    std::atomic_thread_fence(std::memory_order_release);
    const wire::RtsHeader rts = rts_of(comm, tag, sequence, s, choice, *taken);
    if (send_control(peer, *peer.eager(), wire::Kind::kRts, &rts, sizeof rts) == Sent::kRefused) {
        rndv::empty(bounce, taken->generation);
        return false;
    }
    not_idle();
    peer.count(choice.row, choice.reason, bytes);
    return true;
}

// The peer's memory is known if another communicator has reached it.
void empty_bounce(const Peer& peer, const wire::RtsHeader& h) noexcept {
    if (!rndv::protocol(static_cast<rndv::Row>(h.row)).uses_bounce) return;
    Process& process = meet(peer.proc);
    NodeMemory* const theirs = process.neighbour ? process.neighbour->memory.load(std::memory_order_acquire) : nullptr;
    if (theirs) rndv::empty(theirs->bounces.all[rndv::value_of(h.address)], rndv::generation_of(h.address));
    leave(process);
}

}  // namespace coop::pml
