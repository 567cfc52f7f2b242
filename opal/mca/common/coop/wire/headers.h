// SPDX-License-Identifier: BSD-3-Clause
//
// Control headers of pml/coop. Each kind travels under its own BTL tag and
// repeats its kind inside, because arrivals may be queued.
//
//   sender                                receiver
//     MATCH + payload ------------------->   eager: matched, copied, done
//     RTS [+ handle] [+ payload] -------->   rendezvous: matched, then one of
//        <---------------------------- FIN     RGET: receiver has read everything
//        <---------------------------- CTS     grant: "send me [offset, offset+length)"
//     FRAG + payload -------------------->       granted as send pipeline
//     put ...; FIN ---------------------->       granted as RPUT
//     (both copy, both see the end on the receiver's board)  granted as COOP, or as RPUT with a slot
//
// Exactly one FIN or one CTS answers an RTS; an RTS of the row RTR needs no
// answer. A copy that both sides are refused brings one more CTS. Byte order: the host's (Open MPI
// as packaged refuses mixed architectures). Lengths and offsets in bytes.
//
// Trust: everything here comes from a peer. Each header carries a check word
// over all its bytes (and an RTS's or CTS's registration handle), seeded with
// the wire version; validate() then bounds every field that stands on its own.
// What needs state (ranks, ids, ranges of a request) is bounded by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "coop/base/export.h"

namespace coop::wire {

constexpr std::uint32_t kVersion = 7;            // of these and of boards; carried by the modex and by every check word
constexpr std::size_t kMaxHandleBytes = 128;     // registration handle of a BTL

enum class Kind : std::uint8_t { kMatch = 1, kRts, kCts, kFrag, kFin };
constexpr std::size_t kKinds = 5;
COOP_EXPORT const char* name(Kind kind) noexcept;

// First (and for eager messages only) header of a message: what matching needs.
struct MatchHeader {
    Kind kind;
    std::uint8_t flags;      // kFlag…
    std::uint16_t context;   // communicator id
    std::int32_t source;     // sender's rank in that communicator
    std::int32_t tag;
    std::uint16_t sequence;  // per (communicator, source), wraps
    std::uint16_t check;
};
static_assert(sizeof(MatchHeader) == 16 && offsetof(MatchHeader, check) == 14);

constexpr std::uint8_t kFlagContiguous = 1;  // RTS: the send buffer is one piece of memory
constexpr std::uint8_t kFlagGet = 2;         // RTS: address and handle are valid, the receiver may get
constexpr std::uint8_t kFlagSync = 4;        // RTS: synchronous send, answer even when all data came along
constexpr std::uint8_t kFlagShare = 8;       // RTS: the sender sees the receiver's board and may put
constexpr std::uint8_t kFlagPieces = 16;     // RTS: the send buffer is the pieces that follow, the receiver may get them
constexpr std::uint8_t kFlagWish = 0xe0;     // RTS: three bits, the sender's pml_coop_protocol (rndv::Wish)

constexpr std::uint8_t wish_flag(std::uint8_t wish) noexcept { return static_cast<std::uint8_t>(wish << 5); }
constexpr std::uint8_t wish_of(std::uint8_t flags) noexcept { return static_cast<std::uint8_t>(flags >> 5); }

// A buffer that is not contiguous, as pieces of memory in the order of the message.
struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
};
constexpr std::size_t kMaxPieces = 240;  // the packet stays below 4 KiB, a usual eager limit

// Ready to send. Followed by handle_bytes of registration handle, then by the
// SlotWords of an RTR, then by inline_bytes of payload or, with kFlagPieces, of
// Pieces. Short on purpose: 64 of them, a usual window, fit into the 4 KiB that
// btl/vader has for each peer.
struct RtsHeader {
    MatchHeader match;
    std::uint64_t length;        // whole message
    std::uint64_t send_id;       // names the send request in the answer; 0: none is due (bounce)
    std::uint64_t address;       // of the send buffer; valid with kFlagGet. Row bounce: generation << 32 | index of the buffer
    std::uint32_t inline_bytes;  // of payload or Pieces in this packet
    std::uint8_t handle_bytes;
    std::uint8_t row;            // rndv::Row that the sender offers
    std::uint8_t reason;         // rndv::Reason for it
    std::uint8_t call;           // rndv::SendCall
};
static_assert(sizeof(RtsHeader) == 48 && offsetof(RtsHeader, length) == 16 && offsetof(RtsHeader, call) == 47);

// Which slot of the receiver's board a cooperative copy uses, and how.
struct SlotWords {
    std::uint32_t slot;          // its index
    std::uint32_t generation;
    std::uint32_t chunk;         // bytes of a chunk
    std::uint8_t split;          // rndv::Split
    std::uint8_t reserved[3];    // zero
};
static_assert(sizeof(SlotWords) == 16);

// Of a valid RTS of the row RTR.
inline SlotWords slot_words(const RtsHeader& rts) noexcept {
    SlotWords words;
    std::memcpy(&words, reinterpret_cast<const unsigned char*>(&rts + 1) + rts.handle_bytes, sizeof words);
    return words;
}
// Of a valid RTS with kFlagPieces (which is of another row).
inline const Piece* pieces_of(const RtsHeader& rts) noexcept {
    return reinterpret_cast<const Piece*>(reinterpret_cast<const unsigned char*>(&rts + 1) + rts.handle_bytes);
}

// Clear to send: the grant for a message (a second one, for fragments, takes
// the place of a cooperative copy that neither side can do). Followed by
// handle_bytes of registration handle, then by Pieces, when row is RPUT or COOP.
// length 0: everything is there already.
struct CtsHeader {
    Kind kind;
    std::uint8_t row;            // rndv::Row granted
    std::uint16_t check;
    std::uint32_t sender;        // rank in the job of who wrote this header
    std::uint64_t send_id;       // from the RTS
    std::uint64_t recv_id;       // names the receive request in FRAG and FIN
    std::uint64_t offset;        // granted range of the message
    std::uint64_t length;
    std::uint64_t address;       // where `offset` lands; valid for RPUT and COOP
    SlotWords copy;              // COOP, and RPUT of two that share memory; otherwise zero
    std::uint8_t handle_bytes;
    std::uint8_t reason;         // rndv::Reason for row
    std::uint8_t pieces;         // RPUT, COOP: number of Pieces that follow, of the whole receive buffer; 0: contiguous
    std::uint8_t counted;        // RPUT, COOP: 1: the receiver has put the sender's share on its load; it is to take it off
    std::uint8_t offloads;       // COOP: 1: an HCA could read some of it; the sender is to put the key of its buffer into the slot
    std::uint8_t sees;           // 1: the receiver has mapped the sender's shared memory: it can read bounce buffers
    std::uint8_t reserved[2];    // zero
};
static_assert(sizeof(CtsHeader) == 72 && offsetof(CtsHeader, send_id) == 8 && offsetof(CtsHeader, copy) == 48);

// One fragment of a send pipeline, followed by its payload.
struct FragHeader {
    Kind kind;
    std::uint8_t reserved;       // zero
    std::uint16_t check;
    std::uint32_t sender;
    std::uint64_t recv_id;
    std::uint64_t offset;        // of the payload in the message
};
static_assert(sizeof(FragHeader) == 24);

// The end of RDMA. To the sender: all was read. To the receiver: `bytes` were put. Short, because it shares a fast box with RTS packets.
struct FinHeader {
    Kind kind;
    std::uint8_t what;           // 0: to the receiver, id names a receive request; otherwise 1 + rndv::Reason
    std::uint16_t check;
    std::uint32_t sender;
    std::uint64_t id;
    std::uint64_t bytes;         // of the message, in the lower 48 bits; above them, to the sender: fin_row(), fin_parts(), kFinSees
};
static_assert(sizeof(FinHeader) == 24);

// A read over several rails may be followed by a FIN on each rail: then all say how many. 0: this is the only one.
constexpr unsigned kFinRowShift = 48, kFinPartsShift = 56;
constexpr std::uint64_t kMostFinParts = 16;
constexpr std::uint64_t kFinSees = std::uint64_t{1} << 63;  // as CtsHeader::sees
constexpr std::uint64_t kMostMessageBytes = (std::uint64_t{1} << kFinRowShift) - 1;
constexpr std::uint64_t fin_bytes(const FinHeader& h) noexcept { return h.bytes & kMostMessageBytes; }
constexpr std::uint64_t fin_parts(const FinHeader& h) noexcept { return (h.bytes & ~kFinSees) >> kFinPartsShift; }
constexpr bool fin_sees(const FinHeader& h) noexcept { return h.bytes & kFinSees; }

// To the sender: the row that moved the data, and the reason for it. Numbers of rndv::Row and rndv::Reason.
constexpr std::uint8_t fin_row(const FinHeader& h) noexcept { return static_cast<std::uint8_t>(h.bytes >> kFinRowShift); }
constexpr std::uint8_t fin_reason(const FinHeader& h) noexcept { return static_cast<std::uint8_t>(h.what - 1); }
constexpr void set_fin_choice(FinHeader& h, std::uint8_t row, std::uint8_t reason) noexcept {
    h.what = static_cast<std::uint8_t>(1 + reason);
    h.bytes |= std::uint64_t{row} << kFinRowShift;
}

constexpr std::size_t kLargestHeader = sizeof(CtsHeader);

// What is wrong with a header, for the diagnosis: the first field that does
// not hold. min and max are inclusive.
struct Damage {
    Kind kind;
    const char* field;
    std::uint64_t value, min, max;
};

// Writes the check word; call last. The handle must already follow the header.
COOP_EXPORT void seal(MatchHeader& header) noexcept;
COOP_EXPORT void seal(RtsHeader& header) noexcept;
COOP_EXPORT void seal(CtsHeader& header) noexcept;
COOP_EXPORT void seal(FragHeader& header) noexcept;
COOP_EXPORT void seal(FinHeader& header) noexcept;

// True when the header is whole. `first_bytes` is the length of the packet's
// first segment, in which header and handle must lie; `packet_bytes` is the
// whole packet. Otherwise `damage` names the field.
COOP_EXPORT bool valid_match(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_rts(const void* bytes, std::size_t first_bytes, std::size_t packet_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_cts(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_frag(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_fin(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;

}  // namespace coop::wire

#include "coop/wire/check.h"
