// SPDX-License-Identifier: BSD-3-Clause
//
// The header in front of every message, whether it is sent or written into a
// ring (ring.h): its place in the channel's sequence, its tag, its length, and a
// check word. All fields are checked before they are used, also those of control
// messages.
//
// Both sides have the same byte order: find_endpoint() rejects a peer that differs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::ib {

constexpr std::uint16_t kWireVersion = 10;

struct Header {
    std::uint32_t psn;    // sequence number of the channel, over all rails. If the kind has no place in the sequence: a
                          // number of its own, from 0, by which repetitions are recognized; 0 without failover
    std::uint32_t bytes;  // length of the data after the header
    std::uint8_t tag;
    std::uint8_t kind;  // Kind
    std::uint16_t check;
    std::uint16_t ring_credits;     // slots that are free again in the ring of the opposite direction
    std::uint16_t receive_credits;  // receive buffers that are free again: a sched::Grant
};
static_assert(sizeof(Header) == 16);

// kMessage and kUnordered are messages of the upper layer. The others are control messages of the channel, which are
// always sent, with tag 0.
enum class Kind : std::uint8_t {
    kMessage = 1,
    kRingOffer = 2,  // a RingOffer follows the header
    kCredits = 3,    // the header has credits; with failover an Acknowledgement follows. No place in the sequence
    kUnordered = 4,  // a message with no place in the sequence, handed on when it arrives; always sent
};

// A header of which the sequence number, the check word and the credits are not known yet.
constexpr Header header_of(Kind kind, std::size_t bytes, std::uint8_t tag = 0) noexcept {
    return {0, static_cast<std::uint32_t>(bytes), tag, static_cast<std::uint8_t>(kind), 0, 0, 0};
}

constexpr bool is_ordered(std::uint8_t kind) noexcept {
    return kind == static_cast<std::uint8_t>(Kind::kMessage) || kind == static_cast<std::uint8_t>(Kind::kRingOffer);
}

constexpr bool is_control(std::uint8_t kind) noexcept {
    return kind != static_cast<std::uint8_t>(Kind::kMessage) && kind != static_cast<std::uint8_t>(Kind::kUnordered);
}

// What the sender of this message has got. Messages before these numbers need not be repeated.
struct Acknowledgement {
    std::uint32_t expected;   // first message of the sequence that has not arrived
    std::uint32_t unordered;  // first number without a place in the sequence that has not arrived
};
static_assert(sizeof(Acknowledgement) == 8);

constexpr std::size_t kMostRkeys = 8;  // most HCAs of a process

// Offers the peer a ring in the memory of this message's sender.
struct RingOffer {
    std::uint64_t address;
    std::uint32_t slots;
    std::uint32_t slot_bytes, most_bytes;  // as in sched::RingShape
    std::uint32_t rkey[kMostRkeys];        // of the ring, on each HCA of this message's sender
    std::uint16_t hcas;                    // number of valid rkeys
    std::uint16_t check;                   // check word of all other fields (coop/path/seal.h)
};
static_assert(sizeof(RingOffer) == 56 && offsetof(RingOffer, check) == 54);

inline std::uint16_t check_of(const Header& header) noexcept {
    constexpr std::uint64_t kSeed = 0x636f6f7069620000ull + kWireVersion, kFactor = 0xBF58476D1CE4E5B9ull;
    const std::uint64_t first = std::uint64_t{header.psn} << 32 | header.bytes;
    const std::uint64_t second = std::uint64_t{header.receive_credits} << 32 |
                                 std::uint64_t{header.ring_credits} << 16 | std::uint64_t{header.tag} << 8 |
                                 header.kind;
    // ((kSeed + first) * kFactor + second) * kFactor as a sum of products that the CPU can compute in parallel
    return static_cast<std::uint16_t>(((kSeed + first) * (kFactor * kFactor) + second * kFactor) >> 48);
}

}  // namespace coop::ib
