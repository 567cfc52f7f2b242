// SPDX-License-Identifier: BSD-3-Clause
//
// The words of the records between two processes that share memory, in a ring or in its slot (node/lane_ring.h):
//
//     bits 0 - 7    kind; 0xff: a skip. The whole word is 0 if there is no record
//          8 - 39   length of the body in bytes; less than kMaxLaneRing (2^22), so bits 30 - 39 are 0
//          40 - 60  0, unless the word is damaged
//          61       the reader may look at the slot from now on: its memory is provided
//          62       the turn of the slot after this record: each record in the slot inverts it; it is false at first
//          63       the turn of the last record that the writer has taken from the slot in the other direction
//
// Units: bytes. Errors: none here; a reader checks what it loads.
#pragma once

#include <cstdint>

namespace coop::node {

constexpr std::uint32_t kLaneLine = 64, kLaneWord = 8;
constexpr std::uint32_t kLaneSlot = 2048 + kLaneLine;  // bytes of a slot: a message of 2 KiB fits, with its header

constexpr std::uint8_t kLaneSkip = 0xff;  // the kind of a skip; others belong to the user, except 0

constexpr std::uint64_t kLaneHasSlot = std::uint64_t{1} << 61;
constexpr std::uint64_t kLaneTurn = std::uint64_t{1} << 62, kLaneTaken = std::uint64_t{1} << 63;
constexpr std::uint64_t kLaneSlotState = kLaneHasSlot | kLaneTurn;

// `slot`: bits of kLaneSlotState.
constexpr std::uint64_t lane_word(std::uint8_t kind, std::uint32_t bytes, std::uint64_t slot = 0,
                                  bool taken = false) noexcept {
    return (taken ? kLaneTaken : 0) | slot | std::uint64_t{bytes} << 8 | kind;
}
constexpr std::uint8_t lane_kind(std::uint64_t word) noexcept { return static_cast<std::uint8_t>(word); }
// Bits 8 - 60, so that a reader refuses a word with damage there. Without damage at most 32 bits.
constexpr std::uint64_t lane_length(std::uint64_t word) noexcept {
    return (word & ~(kLaneSlotState | kLaneTaken)) >> 8;
}
// Whether the kind is that of a record, not a skip.
constexpr bool is_lane_record(std::uint64_t word) noexcept {
    return lane_kind(word) != 0 && lane_kind(word) != kLaneSkip;
}
constexpr bool lane_taken(std::uint64_t word) noexcept { return (word & kLaneTaken) != 0; }

// Bytes of the ring that a record takes.
constexpr std::uint32_t lane_record_bytes(std::uint32_t bytes) noexcept {
    return (kLaneWord + bytes + kLaneLine - 1) / kLaneLine * kLaneLine;
}

}  // namespace coop::node
