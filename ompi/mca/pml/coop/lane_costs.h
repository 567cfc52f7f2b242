// SPDX-License-Identifier: BSD-3-Clause
//
// pml_coop_lane_max -1: how long messages of the lane may be, found from measured costs (coop/node/lane_limit.h). Each
// process finds a limit for each neighbour to which it sends long messages. The limits of two processes may differ: the
// sender chooses, and the receiver follows the row in its RTS (recv_rts.cc).
//
// Threading: any; a LaneLimit: one thread at a time settles it, any reads it. Errors: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "coop/node/lane_limit.h"

namespace coop::pml {

// The costs of copies by the kernel, measured when it is called for the first time.
const node::KernelCopy& kernel_copy_costs() noexcept;
node::LaneFindings& lane_findings() noexcept;

// Says which limit is in force in this process, and what was measured. Empty without a lane, or if nothing was measured
// because few messages were long.
std::string lane_limit_words();

// The limit for one neighbour. Before enough messages were timed it is what the ring carries. One thread at a time calls time()
// and leave_out().
class LaneLimit {
public:
    // `alone`: alone() until it is found. `may_offer`: look for the messages that the receiver should read.
    LaneLimit(std::size_t ring_bytes, const node::LaneBounds& bounds, std::size_t alone, bool may_offer) noexcept
        : bounds_(bounds), pace_(ring_bytes), waited_(bounds.longest), unwaited_(bounds.longest), alone_(alone),
          may_offer_(may_offer) {}

    // `waits`: the sender waits for the message, so that both sides could copy it.
    std::size_t get(bool waits) const noexcept { return (waits ? waited_ : unwaited_).load(std::memory_order_relaxed); }
    // Of a message without `waits`, the first one since the peer's last message. On a crowded node, of every message.
    std::size_t alone() const noexcept { return alone_.load(std::memory_order_relaxed); }
    // The messages that the receiver should read; none before that is found.
    node::LaneRange offers() const noexcept {
        return {offers_from_.load(std::memory_order_relaxed), offers_to_.load(std::memory_order_relaxed)};
    }
    // Without copies by the kernel.
    std::size_t longest() const noexcept { return bounds_.longest; }
    // The longest that alone() can be.
    std::size_t most_alone() const noexcept { return std::min(bounds_.longest, bounds_.alone); }

    // Makes a copy of a long message into the ring, and times it now and then.
    template <class Copy>
    void time(std::size_t bytes, Copy&& copy) noexcept {
        if (pace_.leaves_out()) return copy();
        const std::uint64_t start = clock();
        copy();
        if (pace_.add(bytes, clock() - start)) settle();
    }

    // A message has gone another way because it is too long.
    void leave_out() noexcept {
        if (pace_.limit_leaves_out()) allow_more();
    }

private:
    static std::uint64_t clock() noexcept;
    void settle() noexcept;
    void allow_more() noexcept;

    const node::LaneBounds bounds_;
    node::LanePace pace_;
    std::atomic<std::size_t> waited_, unwaited_, alone_;
    std::atomic<std::size_t> offers_from_{SIZE_MAX}, offers_to_{0};
    const bool may_offer_;
};

}  // namespace coop::pml
