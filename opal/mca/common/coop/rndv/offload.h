// SPDX-License-Identifier: BSD-3-Clause
//
// How many chunks of a message inside a node an HCA reads by loopback while the CPUs of both sides copy the rest
// (COOP-hca). (Cooperative Rendezvous Protocols, sections II-B3 and III) HCA and CPUs should finish at the same time,
// by the rates that were last measured:
//
//     (under way + k) / rate of the HCA  <=  (left - k) / rate of the CPUs
//
// Units: chunks; rates in bytes/s. Pure. Threading: if two threads measure at once, one measurement may be lost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "coop/rndv/chunk.h"

namespace coop::rndv {

constexpr std::uint32_t kMaxOffloaded = 16;  // chunks of a message that are under way at a time

// Moving average of a rate; 0: nothing is known.
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

// Chunk size if an HCA takes part: small enough for HCA and CPUs to get several chunks each and to finish at about the
// same time.
constexpr std::uint64_t offload_chunk_bytes(std::uint64_t message_bytes) noexcept {
    return std::clamp(whole_pages(message_bytes / 32), kSmallestOffload, kLargestOffload);
}

// How many of the `left` unclaimed chunks to give to the HCA now, if it already has `under_way`. It gets half of its
// share at first, and the rest as it completes these, so that it cannot hold many chunks if it has become slow. While a
// rate is unknown, one chunk is tried.
constexpr std::uint32_t chunks_to_offload(std::uint32_t left, std::uint32_t under_way, double hca_bytes_per_s,
                                          double cpu_bytes_per_s) noexcept {
    if (left < 2) return 0;
    if (hca_bytes_per_s <= 0 || cpu_bytes_per_s <= 0) return under_way == 0 ? 1 : 0;
    const double share = hca_bytes_per_s / (hca_bytes_per_s + cpu_bytes_per_s);
    const auto all = static_cast<std::uint32_t>(share *
                                                (static_cast<double>(left) + under_way));  // includes those under way
    const std::uint32_t now = std::min(std::max(std::min(all, 2u), (all + 1) / 2), kMaxOffloaded);
    return now > under_way ? std::min(now - under_way, left - 1) : 0;
}

}  // namespace coop::rndv
