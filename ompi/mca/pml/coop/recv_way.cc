// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a long message from a neighbour comes through the lane, although its sender has offered its buffer for copies by
// the kernel. The receiver decides, because it knows of both sides whether they wait, and when the message is complete.
#include "awaited.h"
#include "recv_steps.h"

#include "coop/base/relax.h"

namespace coop::pml {
namespace {

using rndv::LongWay;

// Whether both ways are open. `by_lane`: the RTS came through the lane, so the sender has a ring of ours.
bool may_choose(const RecvRequest& r, const rndv::Situation& s, bool by_lane) noexcept {
    return by_lane && s.can_share && s.wish == rndv::Wish::kHybrid && s.bytes >= LongWay::kShortest &&
           s.bytes <= r.capacity && s.sender_contiguous && s.receiver_contiguous && !s.receiver_sends &&
           !module.threads && !module.crowded && module.config.lane_max < 0;
}

bool receiver_waits(const RecvRequest& r, const rndv::Situation& s) noexcept {
    return waits(s.recv_call) || is_awaited(r);
}

// A sender that does not wait in its call may be on its way to MPI_Wait: it has sent the RTS less than a microsecond ago.
bool sender_waits(const RecvRequest& r, const rndv::Situation& s) noexcept {
    constexpr std::uint64_t kPatienceNs = 500;
    if (rndv::sender_waits(s.send_call)) return true;
    const std::atomic<std::uint64_t>& awaited = r.peer->neighbour->board().awaited_send;
    const std::uint64_t start = now_ns();
    do {
        if (awaited.load(std::memory_order_relaxed) == r.send_id) return true;
        relax();
    } while (now_ns() - start < kPatienceNs);
    return false;
}

}  // namespace

bool prefers_lane(const Peer& peer) noexcept {
    return !module.threads && peer.neighbour && peer.neighbour->long_way.way_of_next() == LongWay::Way::kLane;
}

void choose_way(RecvRequest& r, Peer& peer, rndv::Situation& s, bool has_begun, bool by_lane) noexcept {
    r.timed_from_ns = 0;
    if (!may_choose(r, s, by_lane)) return;
    LongWay& ways = peer.neighbour->long_way;
    r.way = has_begun ? LongWay::Way::kKernel : ways.way(s.bytes);
    const bool by_kernel = r.way == LongWay::Way::kKernel;
    // Who computes would hold up a message in fragments.
    if (receiver_waits(r, s) && (by_kernel || sender_waits(r, s))) {
        s.lane_is_quicker = !by_kernel;
        r.timed_from_ns = now_ns();
    } else if (!by_kernel) {
        ways.on_declined(s.bytes);
    }
}

void end_way(RecvRequest& r) noexcept {
    if (r.timed_from_ns == 0) return;
    r.peer->neighbour->long_way.on_ended(r.way, r.engine.wanted(), now_ns() - r.timed_from_ns);
    r.timed_from_ns = 0;
}

}  // namespace coop::pml
