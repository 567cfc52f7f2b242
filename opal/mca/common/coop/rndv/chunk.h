// SPDX-License-Identifier: BSD-3-Clause
//
// How a long copy is divided into chunks. (Cooperative Rendezvous Protocols, section II-C: between two chunks the
// library answers other peers.)
//
// Units: bytes. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace coop::rndv {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kSmallestChunk = 256 * 1024;  // in messages that are long enough for two
constexpr std::uint64_t kChunksPerMessage = 8;        // unless chunks would be too small or too large

constexpr std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// An eighth of the message, in whole pages, between kSmallestChunk (or half of a short message) and `largest`. Each
// chunk costs a system call, and at the end one side waits for the last chunk of the other.
constexpr std::uint64_t chunk_bytes(std::uint64_t message_bytes, std::uint64_t largest) noexcept {
    const std::uint64_t least = std::min(kSmallestChunk, std::max(whole_pages(message_bytes / 2), kPageBytes));
    return std::min(std::max(whole_pages(message_bytes / kChunksPerMessage), least), largest);
}

// Length of the first half in the fixed split; it is the longer one.
constexpr std::uint64_t half_bytes(std::uint64_t message_bytes) noexcept { return message_bytes - message_bytes / 2; }

// The bytes [0, total), divided into chunks of `chunk` bytes.
struct ChunkPlan {
    std::uint64_t total = 0;
    std::uint64_t chunk = 1;  // > 0

    constexpr std::uint64_t count() const noexcept { return total / chunk + (total % chunk != 0); }
    // Chunk numbers have 32 bits: whether they suffice for this plan, and the smallest chunk for which they would.
    constexpr bool is_countable() const noexcept { return count() <= UINT32_MAX; }
    constexpr std::uint64_t least_chunk() const noexcept { return total / UINT32_MAX + 1; }
    constexpr std::uint64_t begin(std::uint64_t index) const noexcept { return index * chunk; }
    constexpr std::uint64_t bytes(std::uint64_t index) const noexcept { return std::min(chunk, total - begin(index)); }
};

}  // namespace coop::rndv
