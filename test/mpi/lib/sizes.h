// SPDX-License-Identifier: BSD-3-Clause
//
// Message sizes at the limits of transports and protocols, and one byte to either side.
// A header of unknown size counts toward a transport's limit, hence the steps below
// each limit.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

namespace sizes {

// One eager and one rendezvous size on every transport of these tests.
constexpr std::size_t kEager = 500;
constexpr std::size_t kRendezvous = 400 * 1000;

inline std::vector<std::size_t> around(std::initializer_list<std::size_t> limits) {
    std::set<std::size_t> all;
    for (std::size_t limit : limits)
        for (std::size_t below : {0, 1, 14, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 128, 144}) {
            if (limit >= below) all.insert(limit - below);
            if (limit > below) all.insert(limit - below - 1);
            if (below < 2) all.insert(limit + below);
        }
    return {all.begin(), all.end()};
}

// self and vader: 1 KiB, 4 KiB, 32 KiB; tcp: 64 KiB, 128 KiB.
inline std::vector<std::size_t> edges() {
    std::vector<std::size_t> all = around({1024, 4096, 32768, 65536, 131072});
    for (std::size_t n : {0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1 << 20, (1 << 20) - 1, (1 << 20) + 1})
        all.push_back(n);
    return all;
}

// A few of them, for expensive tests.
inline std::vector<std::size_t> few() {
    return {0, 1, 9, 1000, 4000, 4024, 4096, 4097, 32768, 65480, 65536, 65537, 131073, kRendezvous, (1 << 20) + 1};
}

}  // namespace sizes
