// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a process gets about as many long messages from a peer as it sends to it. Then both copy all the time, and the
// copy into the lane does not overlap with the copy out of it. If the two take turns, this takes it for the same.
//
// Threading: any; a lost update only delays the decision. Errors: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coop::node {

class LaneTraffic {
public:
    static constexpr std::size_t kLong = 4096;  // bytes; messages up to here are not counted
    // When so many have been sent, both counts are halved. A window of messages may go out before those of the other side
    // arrive; this is more than that.
    static constexpr std::uint32_t kMost = 512;
    static constexpr std::uint32_t kEnough = 16;  // fewer arrivals are not taken for traffic

    void sent() noexcept {
        const std::uint32_t now = out_.load(std::memory_order_relaxed) + 1;
        if (now < kMost) return out_.store(now, std::memory_order_relaxed);
        out_.store(now / 2, std::memory_order_relaxed);
        in_.store(in_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    }
    void arrived() noexcept {
        in_.store(std::min(in_.load(std::memory_order_relaxed) + 1, kMost), std::memory_order_relaxed);
    }
    bool is_two_way() const noexcept {
        const std::uint32_t in = in_.load(std::memory_order_relaxed);
        return in >= kEnough && 2 * in >= out_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint32_t> out_{0}, in_{0};  // messages
};

}  // namespace coop::node
