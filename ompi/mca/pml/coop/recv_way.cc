// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a long message from a neighbour comes through the lane, although its sender has offered its buffer for copies by
// the kernel (coop/rndv/long_way.h). The receiver decides, because it knows of both sides whether they wait, and when the
// message is complete.
#include "awaited.h"
#include "hints.h"
#include "recv_steps.h"

#include "coop/base/relax.h"

namespace coop::pml {
namespace {

using rndv::LongWay;

// Whether a message of this length could take either way at all.
bool has_two_ways(std::size_t bytes, rndv::Wish wish) noexcept {
    return bytes >= LongWay::kShortest && wish == rndv::Wish::kHybrid && module.config.lane_max < 0 &&
           !module.threads && !module.crowded;
}

// A process that sends itself has no time for the fragments of others.
bool receiver_waits(const RecvRequest& r, const rndv::Situation& s) noexcept {
    return !s.receiver_sends && (waits(s.recv_call) || is_awaited(r));
}

// What the sender says of itself now. If it is not in a blocking call it may be in MPI_Wait.
bool sender_waits(const RecvRequest& r, const rndv::Situation& s) noexcept {
    return rndv::sender_waits(s.send_call) || r.peer->neighbour->board().waits.load(std::memory_order_relaxed);
}

// Gives a sender that has just left MPI_Isend the time to enter MPI_Wait.
bool sender_will_wait(const RecvRequest& r, const rndv::Situation& s, std::uint64_t now) noexcept {
    constexpr std::uint64_t kPatienceNs = 500;
    for (const std::uint64_t end = now + kPatienceNs; now < end; now = now_ns()) {
        if (sender_waits(r, s)) return true;
        relax();
    }
    return false;
}

}  // namespace

bool prefers_lane(const Comm& c, const Peer& peer, std::size_t bytes) noexcept {
    // has_two_ways() comes first. It is false among threads, of which another one may just be connecting to the peer.
    return has_two_ways(bytes, wish_for(c.comm)) && peer.neighbour &&
           peer.neighbour->long_way.way(bytes) == LongWay::Way::kLane;
}

void choose_way(RecvRequest& r, rndv::Situation& s, bool has_begun, bool by_lane) noexcept {
    r.timed = false;
    // If the RTS came through the lane, the sender has a ring of ours. (If it could not use the ring all the same, fragments would go by
    // a transport, and be timed as what comes through the lane.)
    if (!by_lane || !s.can_share || !has_two_ways(s.bytes, s.wish) || s.bytes > r.capacity || !s.sender_contiguous ||
        !s.receiver_contiguous)
        return;
    LongWay& ways = r.peer->neighbour->long_way;
    r.way = has_begun ? LongWay::Way::kKernel : ways.way(s.bytes);
    const bool by_kernel = r.way == LongWay::Way::kKernel;
    const std::uint64_t now = now_ns();
    // A side that computes would hold up a message in fragments.
    if (receiver_waits(r, s) && (by_kernel || sender_will_wait(r, s, now))) {
        s.lane_is_quicker = !by_kernel;
        r.timed = true;
        r.sender_waited = !by_kernel || sender_waits(r, s);
        ways.on_begun(now);
    } else if (!by_kernel) {
        ways.on_declined(s.bytes);
    }
}

void end_way(RecvRequest& r) noexcept {
    if (!std::exchange(r.timed, false)) return;
    const bool both_waited = r.sender_waited || sender_waits(r, r.engine.situation());
    r.peer->neighbour->long_way.on_ended(r.way, r.engine.wanted(), now_ns(), both_waited);
}

}  // namespace coop::pml
