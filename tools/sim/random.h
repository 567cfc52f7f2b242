// SPDX-License-Identifier: BSD-3-Clause
//
// Random numbers that are the same on every platform for the same seed, unlike the
// standard library's distributions. splitmix64.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace coop::sim {

class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    // 0..n-1; n must not be 0.
    std::uint32_t below(std::uint32_t n) noexcept { return static_cast<std::uint32_t>((next() >> 32) * n >> 32); }

    // Fills the first `count` places with elements drawn at random from all of them.
    template <class T>
    void shuffle(std::vector<T>& items, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count && i + 1 < items.size(); ++i)
            std::swap(items[i], items[i + below(static_cast<std::uint32_t>(items.size() - i))]);
    }
    template <class T>
    void shuffle(std::vector<T>& items) noexcept {
        shuffle(items, items.size());
    }

private:
    std::uint64_t state_;
};

}  // namespace coop::sim
