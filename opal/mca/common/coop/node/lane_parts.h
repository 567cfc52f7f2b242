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
// A writer that has offered the payload instead (node/lane_offer.h) writes it, too, when it withdraws the offer, or when
// the reader cannot read it.
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
    // By the writer of an offer, before it writes any part.
    void withdraw() noexcept { memory_.publish_word(at_, kWithdrawn); }

    // By the reader: how much of the payload it may copy, at least the `done` bytes of which it knows.
    std::uint32_t written(std::uint32_t done, std::uint32_t payload_bytes) noexcept {
        return std::clamp(static_cast<std::uint32_t>(memory_.load_word(at_)), done, payload_bytes);
    }
    // By the reader of an offer: whether the writer writes the parts, or is about to.
    bool is_withdrawn() noexcept { return memory_.load_word(at_) != 0; }

private:
    static constexpr std::uint64_t kWithdrawn = std::uint64_t{1} << 32;  // written() does not see it

    Memory memory_;
    std::uint32_t at_;
};

}  // namespace coop::node
