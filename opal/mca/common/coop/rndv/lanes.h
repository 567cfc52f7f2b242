// SPDX-License-Identifier: BSD-3-Clause
//
// Distributes the fragments of one message over the transports (lanes) to the peer, in proportion to their weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace coop::rndv {

constexpr std::size_t kMaxLanes = 8;

class Lanes {
public:
    void start() noexcept { bytes_.fill(0); }

    // Returns the lane that has carried the fewest bytes relative to its weight. `count` is the number of lanes;
    // weight(i) returns the weight of lane i.
    template <class Weight>
    std::size_t next(std::size_t count, Weight weight) const noexcept {
        std::size_t chosen = 0;
        double least = std::numeric_limits<double>::max();
        for (std::size_t i = 0; i < std::min(count, kMaxLanes); ++i) {
            const double load = (static_cast<double>(bytes_[i]) + 1) / std::max(static_cast<double>(weight(i)), 1e-6);
            if (load < least) {
                least = load;
                chosen = i;
            }
        }
        return chosen;
    }

    void add(std::size_t lane, std::uint64_t bytes) noexcept { bytes_[lane] += bytes; }
    void take_back(std::size_t lane, std::uint64_t bytes) noexcept { bytes_[lane] -= bytes; }

private:
    std::array<std::uint64_t, kMaxLanes> bytes_{};
};

}  // namespace coop::rndv
