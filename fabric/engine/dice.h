// SPDX-License-Identifier: BSD-3-Clause
//
// Random numbers of the subnet (splitmix64). The sequence depends only on the
// seed; which process draws which number depends on the order of the draws.
#pragma once

#include <cstdint>

#include "fabric/shm/layout.h"

namespace coop::fabric {

inline std::uint64_t throw_dice(Dice& dice) noexcept {
    constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ull;
    std::uint64_t z = dice.fetch_add(kStep, std::memory_order_relaxed) + kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

}  // namespace coop::fabric
