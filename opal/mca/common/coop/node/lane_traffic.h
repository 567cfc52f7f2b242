// SPDX-License-Identifier: BSD-3-Clause
//
// Whether long messages go to a process and come from it in about the same numbers. If so, both processes copy all the
// time: a copy into the lane and one out of it do not happen at once, and cost as much as if they followed each other.
//
// Units: messages. Threading: any; counts that get lost do no harm. Errors: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coop::node {

class LaneTraffic {
public:
    static constexpr std::size_t kLong = 4096;   // bytes; shorter messages are not counted
    static constexpr std::uint32_t kMost = 128;  // a window of messages goes out before those of the other side arrive
    static constexpr std::uint32_t kEnough = 16;

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
    std::atomic<std::uint32_t> out_{0}, in_{0};  // about the last kMost
};

}  // namespace coop::node
