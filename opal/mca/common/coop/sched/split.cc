// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/split.h"

#include <algorithm>

namespace coop::sched {
namespace {

std::uint64_t sum_of(const Shares& shares) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < shares.count; ++i) sum += shares.of[i].weight;
    return sum;
}

std::size_t lightest(const Shares& shares) noexcept {
    std::size_t found = 0;
    for (std::size_t i = 1; i < shares.count; ++i)
        if (shares.of[i].weight <= shares.of[found].weight) found = i;
    return found;
}

void remove(Shares& shares, std::size_t index) noexcept {
    --shares.count;
    for (std::size_t i = index; i < shares.count; ++i) shares.of[i] = shares.of[i + 1];
}

// Keeps the rails whose share reaches the minimum. Returns the sum of their weights.
std::uint64_t leave_out_the_light(Shares& shares, std::uint64_t bytes, std::uint64_t min) noexcept {
    std::uint64_t total = sum_of(shares);
    while (shares.count > 1) {
        const std::size_t index = lightest(shares);
        const std::uint64_t weight = shares.of[index].weight;
        if (share_of(bytes, weight, total) >= min) break;
        total -= weight;
        remove(shares, index);
    }
    return total;
}

}  // namespace

// A stripe ends at the message's share of the weights so far, rounded down to the alignment. So a stripe loses
// less than one alignment by rounding, and gains what the previous one lost. If its share is at least the
// minimum, which is a multiple of the alignment, the stripe is at least the minimum, too.
void split(std::uint64_t bytes, Shares shares, const StripeLimits& limits, Schedule& out) noexcept {
    const std::uint64_t total = leave_out_the_light(shares, bytes, limits.min);
    std::uint64_t begin = 0, weight = 0;
    for (std::size_t i = 0; i < shares.count; ++i) {
        weight += shares.of[i].weight;
        const bool last = i + 1 == shares.count;
        const std::uint64_t end = last ? bytes : share_of(bytes, weight, total) / limits.alignment * limits.alignment;
        out.add(shares.of[i].rail, begin, end - begin, shares.of[i].weight);
        begin = end;
    }
}

}  // namespace coop::sched
