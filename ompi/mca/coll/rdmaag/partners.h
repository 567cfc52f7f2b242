// SPDX-License-Identifier: BSD-3-Clause
//
// What the transports to the partners of all algorithms have in common.
#pragma once

#include <algorithm>
#include <limits>

#include "group.h"
#include "process.h"

namespace coop::ag {

// The shortest eager limit to any partner of any algorithm; 0: one of them cannot be reached.
inline std::size_t longest_to_partners(const Members& members) noexcept {
    std::size_t shortest = std::numeric_limits<std::size_t>::max();
    const auto look_at = [&](std::uint32_t partner) {
        shortest = std::min(shortest, longest_packet(members.comm(), members.rank_in_comm(partner)));
    };
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i) {
        const auto algorithm = static_cast<coll::Algorithm>(i);
        if (!coll::fits(algorithm, members.processes())) continue;
        // The steps after these have the same partners.
        for (std::uint32_t step = 0; step < coll::count_announcements(algorithm, members.processes()); ++step) {
            const coll::Step s = coll::step_of(algorithm, members.processes(), members.rank(), step);
            look_at(s.to);
            look_at(s.from);
        }
    }
    return shortest;
}

// Whether an announcement fits.
inline bool is_long_enough(std::size_t packet) noexcept {
    return packet > sizeof(coll::Packet) + coll::kMaxHandleBytes;
}

// The longest short step that packets to all partners allow; 0: not even an announcement fits.
inline std::size_t short_limit(const Members& members) noexcept {
    const std::size_t longest = longest_to_partners(members);
    if (!is_long_enough(longest)) return 0;
    return std::min(static_cast<std::size_t>(process.config.short_max), longest - sizeof(coll::Packet));
}

}  // namespace coop::ag
