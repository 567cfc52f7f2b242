// SPDX-License-Identifier: BSD-3-Clause
//
// The packets that the processes of one allgather exchange.
//
//     kShort     all bytes of a short step; may arrive before the receiver has called
//     kAnnounce  receiver to sender, once per call and sender: where its long steps go
//     kData      a part of a long step that is not written to the receiver by a put
//     kLanded    bytes of a long step have been written to the receiver's memory
//     kBuffer    receiver to sender, before the first call: a greeting, then where its short steps go
//
// Units: bytes. A packet is checked as a whole, without the data after it; a receiver
// never uses a field of a damaged one. Processes of different architectures do not use
// these packets (the components of a communicator compare them first).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "coop/base/export.h"

namespace coop::coll {

constexpr std::uint8_t kPacketVersion = 3;
constexpr std::size_t kMaxHandleBytes = 64;  // of a transport's registration handle

enum class Kind : std::uint8_t { kShort = 1, kAnnounce, kData, kLanded, kBuffer };

struct Packet {
    std::uint16_t check;
    Kind kind;
    std::uint8_t version;
    std::uint32_t context;  // of the communicator, or of its leaders (members.h)
    std::uint32_t source;   // rank in the communicator, or number among its leaders
    std::uint32_t lap;      // number of the call on this communicator
    std::uint32_t step;     // kAnnounce: number of the announcement; kBuffer: greeting or offer
    std::uint32_t parts;    // kLanded: packets that tell of the same write, which is more than 1 only if the write
                            // is a whole piece; kAnnounce, kBuffer: bytes of the handle that follows
    std::uint64_t bytes;    // of data; kAnnounce: 1 if the memory can be written; kBuffer: of the buffers
    std::uint64_t
        at;  // kData: offset in the step; kLanded: the piece; kAnnounce, kBuffer: address of the memory; else 0
};
static_assert(sizeof(Packet) == 40);

COOP_EXPORT void seal(Packet& packet) noexcept;
// Null, or the name of the field that is wrong whatever the communicator is.
COOP_EXPORT const char* find_damage(const Packet& packet, std::size_t arrived_bytes) noexcept;

}  // namespace coop::coll
