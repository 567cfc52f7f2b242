// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/landing.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "fabric/engine/dice.h"

namespace coop::fabric {
namespace {

std::uint64_t bytes_of(std::span<const Range> ranges) {
    return std::accumulate(ranges.begin(), ranges.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Range& range) { return sum + range.bytes; });
}

// The numbers below `count`, shuffled by the dice.
std::array<std::uint64_t, kMostParts> shuffled(Dice& dice, std::size_t count) {
    std::array<std::uint64_t, kMostParts> order{};
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[throw_dice(dice) % left]);
    return order;
}

// Yields the core meanwhile: with fewer cores than threads the polling thread may be waiting for it.
void pause() {
    const std::int64_t end_ns = now_ns() + kEarlyNs;
    do sched_yield();
    while (now_ns() < end_ns);
}

}  // namespace

CopyResult land(Hca& hca, std::int32_t pid, std::span<const Range> from, std::span<const Range> to,
                std::uint32_t mtu_bytes) noexcept {
    const std::uint64_t bytes = bytes_of(from), mtu = std::max(mtu_bytes, 256u);
    if (hca.profile.in_order != 0 || bytes <= mtu) return copy_to(pid, from, to);
    const std::uint64_t packets = (bytes + mtu - 1) / mtu, part_bytes = (packets + kMostParts - 1) / kMostParts * mtu;
    const std::size_t parts = (bytes + part_bytes - 1) / part_bytes;
    const auto order = shuffled(hca.landing, parts);
    for (std::size_t i = 0; i < parts; ++i) {
        const std::uint64_t at = order[i] * part_bytes, n = std::min(part_bytes, bytes - at);
        if (const CopyResult result = copy_to(pid, slice(from, at, n).all(), slice(to, at, n).all());
            result != CopyResult::done)
            return result;
        if (order[i] == parts - 1 && i + 1 < parts) pause();
    }
    return CopyResult::done;
}

}  // namespace coop::fabric
