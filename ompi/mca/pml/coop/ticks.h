// SPDX-License-Identifier: BSD-3-Clause
//
// A monotonic clock, and a cheap tick counter that may be read around every copy. Ticks have a unit of their own;
// to_ns() converts them at the rate measured since the start.
#pragma once

#include <chrono>
#include <cstdint>

namespace coop::pml {

inline std::uint64_t now_ns() noexcept {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

struct Ticks {
    static std::uint64_t now() noexcept {
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#else
        return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
    }

    // Converts a number of ticks to nanoseconds.
    std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
        const auto elapsed =
            std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_time).count();
        const std::uint64_t elapsed_ticks = now() - start;
        return elapsed_ticks == 0 ? 0
                                  : static_cast<std::uint64_t>(static_cast<double>(ticks) *
                                                               (elapsed / static_cast<double>(elapsed_ticks)));
    }

    std::uint64_t start = now();
    std::chrono::steady_clock::time_point start_time = std::chrono::steady_clock::now();
};

}  // namespace coop::pml
