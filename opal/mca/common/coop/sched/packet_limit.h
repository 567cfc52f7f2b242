// SPDX-License-Identifier: BSD-3-Clause
//
// The longest message that goes in one packet. A packet takes one rail, and both processes copy it; a longer message waits
// for a handshake, and can use all rails. On slow links, stripes save more than the handshake costs.
//
//     saved = M / rate (1 - 1 / rails)
//
// Not from the papers. Units: bytes, bytes per second, nanoseconds. Threading: pure. Errors: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coop::sched {

// What a handshake costs: two short messages, and the processing of both.
constexpr std::uint64_t kHandshakeNs = 10'000;
// Shorter messages are not worth stripes, however slow the links are.
constexpr std::uint64_t kLeastPacket = 12 * 1024;

// `most`: what a packet can carry. `slowest_bytes_per_s`: nominal bandwidth of the slowest rail; 0: unknown.
constexpr std::uint64_t packet_limit(std::uint64_t most, std::size_t rails,
                                     std::uint64_t slowest_bytes_per_s) noexcept {
    if (rails < 2 || slowest_bytes_per_s == 0 || most <= kLeastPacket) return most;
    const std::uint64_t worth = slowest_bytes_per_s / 1'000 * kHandshakeNs / 1'000'000 * rails / (rails - 1);
    return worth >= most ? most : kLeastPacket;
}

}  // namespace coop::sched
