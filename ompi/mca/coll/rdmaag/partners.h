// SPDX-License-Identifier: BSD-3-Clause
//
// What the transports to the partners of all algorithms have in common.
#pragma once

#include <algorithm>
#include <limits>

#include "group.h"

namespace coop::ag {

// The shortest eager limit to any partner of any algorithm; 0: one of them cannot be reached. `rank_of` maps the numbers
// of the processes that exchange to their ranks in the communicator.
template <class RankOf>
std::size_t longest_to_partners(ompi_communicator_t& comm, std::uint32_t processes, std::uint32_t own,
                                RankOf rank_of) noexcept {
    std::size_t shortest = std::numeric_limits<std::size_t>::max();
    const auto look_at = [&](std::uint32_t partner) {
        shortest = std::min(shortest, longest_packet(comm, rank_of(partner)));
    };
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i) {
        const auto algorithm = static_cast<coll::Algorithm>(i);
        if (!coll::fits(algorithm, processes)) continue;
        // The steps after these have the same partners.
        for (std::uint32_t step = 0; step < coll::count_announcements(algorithm, processes); ++step) {
            const coll::Step s = coll::step_of(algorithm, processes, own, step);
            look_at(s.to);
            look_at(s.from);
        }
    }
    return shortest;
}

// The longest short step that packets of `longest` bytes allow; 0: not even an announcement fits.
inline std::size_t short_limit(std::size_t longest, std::size_t short_max) noexcept {
    if (longest <= sizeof(coll::Packet) + coll::kMaxHandleBytes) return 0;
    return std::min(short_max, longest - sizeof(coll::Packet));
}

}  // namespace coop::ag
