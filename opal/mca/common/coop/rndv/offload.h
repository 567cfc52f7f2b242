// SPDX-License-Identifier: BSD-3-Clause
//
// How much of a message inside a node an HCA reads by loopback while the CPUs of
// both sides copy the rest (COOP-hca): as much as ends when they end, by the rates
// that both have lately shown.
// (Cooperative Rendezvous Protocols, sections II-B3 and III)
//
//     (under way + k) / rate of the HCA  <=  (left - k) / rate of the CPUs
//
// Units: chunks; rates in bytes/s. Pure. Threading: of two threads that measure at
// once one may be ignored.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "coop/rndv/chunk.h"

namespace coop::rndv {

constexpr std::uint32_t kMostOffloaded = 16;  // chunks of a message that are under way at a time

// A moving average; 0: nothing is known.
class Rate {
public:
    double bytes_per_s() const noexcept { return average_.load(std::memory_order_relaxed); }
    void measured(std::uint64_t bytes, std::uint64_t ns) noexcept {
        if (bytes == 0 || ns == 0) return;
        const double now = static_cast<double>(bytes) * 1e9 / static_cast<double>(ns), before = bytes_per_s();
        average_.store(before == 0 ? now : before + (now - before) / 4, std::memory_order_relaxed);
    }

private:
    std::atomic<double> average_{0};
};

constexpr std::uint64_t kSmallestOffload = 64 * 1024, kLargestOffload = 256 * 1024;

// Bytes of a chunk where an HCA takes part: small enough for both to have several, and to end at about the same time.
constexpr std::uint64_t offload_chunk_bytes(std::uint64_t message_bytes) noexcept {
    return std::clamp(whole_pages(message_bytes / 32), kSmallestOffload, kLargestOffload);
}

// How many of the `left` chunks, which nobody has claimed yet, the HCA is given now, where it has `under_way` already. Half of
// what it could do is kept back until it has shown how fast it is; while nothing is known of a rate, one chunk is tried.
constexpr std::uint32_t chunks_to_offload(std::uint32_t left, std::uint32_t under_way, double hca_bytes_per_s, double cpu_bytes_per_s) noexcept {
    if (left < 2) return 0;
    if (hca_bytes_per_s <= 0 || cpu_bytes_per_s <= 0) return under_way == 0 ? 1 : 0;
    const double share = hca_bytes_per_s / (hca_bytes_per_s + cpu_bytes_per_s);
    const auto all = static_cast<std::uint32_t>(share * (static_cast<double>(left) + under_way));  // of which under_way have begun
    const std::uint32_t now = std::min(std::max(std::min(all, 2u), (all + 1) / 2), kMostOffloaded);
    return now > under_way ? std::min(now - under_way, left - 1) : 0;
}

}  // namespace coop::rndv
