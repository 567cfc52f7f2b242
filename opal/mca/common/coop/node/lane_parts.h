// SPDX-License-Identifier: BSD-3-Clause
//
// The body of a record whose writer publishes it first and then writes the payload, part by part, so that both sides
// copy at the same time (node/lane_ring.h):
//
//     | written | head ... | payload ................ |
//                          [ written )                   the reader may copy these bytes
//
// The ring stays in order: the record takes its whole length at once, and the reader passes it when it has all of it.
//
// Units: bytes; offsets are in the ring. Threading: one writer, one reader. Errors: the reader bounds what a damaged
// writer tells; whether a writer that tells nothing more has ended, the caller finds out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coop::node {

constexpr std::uint32_t kLanePart = 8192;

// `Memory` as in node/lane_ring.h.
template <class Memory>
class LaneParts {
public:
    static constexpr std::uint32_t kWordBytes = 8;  // before the head

    // `at`: of the body.
    LaneParts(Memory memory, std::uint32_t at) noexcept : memory_(memory), at_(at) {}

    // By the writer: before the record is published, and when so much of the payload is written.
    void begin() noexcept { memory_.clear_word(at_); }
    void tell(std::uint32_t written) noexcept { memory_.publish_word(at_, written); }

    // By the reader: how much of the payload it may copy, at least the `done` bytes of which it knows.
    std::uint32_t written(std::uint32_t done, std::uint32_t payload_bytes) noexcept {
        return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(memory_.load_word(at_), done, payload_bytes));
    }

private:
    Memory memory_;
    std::uint32_t at_;
};

}  // namespace coop::node
