// SPDX-License-Identifier: BSD-3-Clause
//
// Cuts a message into stripes in proportion to weights.
//
// Units: bytes. Threading: pure except for the schedule that it fills. Errors: none. For any weights, the
// stripes cover the message exactly and without overlap. All but the last end on the alignment, and each has
// the minimum unless the whole message is shorter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coop/sched/rail_set.h"
#include "coop/sched/schedule.h"

namespace coop::sched {

struct Share {
    RailIndex rail;
    std::uint32_t weight;  // 1..kMaxWeight, or parts of kTotalWeight
};

// Rails, in the order of their stripes in the message.
struct Shares {
    std::array<Share, kMaxRails> of;  // the first `count` are valid
    std::size_t count = 0;

    void add(RailIndex rail, std::uint32_t weight) noexcept { of[count++] = {rail, weight}; }
};

struct StripeLimits {
    std::uint64_t min = 1;        // > 0, a multiple of the alignment
    std::uint64_t alignment = 1;  // > 0
};

// Returns `bytes * weight / total`; does not overflow for weight <= total < 2^32.
constexpr std::uint64_t share_of(std::uint64_t bytes, std::uint64_t weight, std::uint64_t total) noexcept {
    return bytes / total * weight + bytes % total * weight / total;
}

// Adds the stripes of `bytes` to an empty schedule. Rails whose share would be below the minimum get no stripe:
// the lightest is left out first, among equal ones the last. `shares` must not be empty.
void split(std::uint64_t bytes, Shares shares, const StripeLimits& limits, Schedule& out) noexcept;

}  // namespace coop::sched
