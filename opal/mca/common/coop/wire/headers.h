// SPDX-License-Identifier: BSD-3-Clause
//
// Control headers of pml/coop. Each kind has its own BTL tag, and repeats the kind inside because arrivals may
// be queued.
//
//   sender                                receiver
//     MATCH + payload ------------------->   eager: matched, copied, done
//     RTS [+ handle] [+ payload] -------->   rendezvous: matched, then one of
//        <---------------------------- FIN     RGET: receiver has read everything
//        <---------------------------- CTS     grant: "send me [offset, offset+length)"
//     FRAG + payload -------------------->       granted as send pipeline
//     put ...; FIN ---------------------->       granted as RPUT
//     (both copy; the receiver's board shows both the end)   granted as COOP, or as RPUT with a slot
//
// An RTS is answered by a FIN (one per rail after a fenced read) or a CTS; an RTS of row RTR or BOUNCE by none. If a
// cooperative copy is refused on both sides, a CTS for fragments follows.
//
// Byte order: the host's (Open MPI as packaged refuses mixed architectures). Lengths and offsets in bytes.
//
// Trust: all of this comes from a peer. Each header has a check word over all its bytes (and over the
// registration handle, SlotWords and Pieces that follow an RTS or CTS), seeded with the wire version. The valid_…()
// functions verify it and bound every field that can be judged on its own; the caller bounds fields that depend on
// state (ranks, ids, ranges of a request).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "coop/base/export.h"

namespace coop::wire {

constexpr std::uint32_t kVersion = 10;  // of these headers and of boards; part of the modex and of every check word
constexpr std::size_t kMaxHandleBytes = 128;  // registration handle of a BTL

enum class Kind : std::uint8_t { kMatch = 1, kRts, kCts, kFrag, kFin };
constexpr std::size_t kKinds = 5;
COOP_EXPORT const char* name(Kind kind) noexcept;

// First header of every message, and the only one of an eager message: the data for matching.
struct MatchHeader {
    Kind kind;
    std::uint8_t flags;     // kFlag…
    std::uint16_t context;  // communicator id
    std::int32_t source;    // sender's rank in that communicator
    std::int32_t tag;
    std::uint16_t sequence;  // per (communicator, source), wraps
    std::uint16_t check;
};
static_assert(sizeof(MatchHeader) == 16 && offsetof(MatchHeader, check) == 14);

constexpr std::uint8_t kFlagContiguous = 1;  // RTS: the send buffer is contiguous
constexpr std::uint8_t kFlagGet = 2;         // RTS: address and handle are valid, so the receiver may get
constexpr std::uint8_t kFlagSync = 4;        // RTS: synchronous send; answer even if the RTS carries all data
constexpr std::uint8_t kFlagShare = 8;       // RTS: the sender has mapped the receiver's board and may put
constexpr std::uint8_t kFlagPieces = 16;     // RTS: the Pieces of the send buffer follow, and the receiver may get them
constexpr std::uint8_t kFlagWish = 0xe0;     // RTS: three bits, the sender's wish for a protocol (rndv::Wish)

constexpr std::uint8_t wish_flag(std::uint8_t wish) noexcept { return static_cast<std::uint8_t>(wish << 5); }
constexpr std::uint8_t wish_of(std::uint8_t flags) noexcept { return static_cast<std::uint8_t>(flags >> 5); }

// One contiguous part of a buffer. The Pieces of a buffer are in the order of the message.
struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
};
constexpr std::size_t kMaxPieces = 240;  // keeps the packet below 4 KiB, a common eager limit

// Request to send. Followed by handle_bytes of registration handle, then by SlotWords if the row is RTR, then
// by inline_bytes of payload or, with kFlagPieces, of Pieces. Kept short: 64 of them, a common window, fit into
// the 4 KiB that btl/vader has for each peer.
struct RtsHeader {
    MatchHeader match;
    std::uint64_t length;   // of the whole message
    std::uint64_t send_id;  // names the send request in the answer; 0: no answer is due (bounce)
    std::uint64_t address;  // of the send buffer, valid with kFlagGet; in row bounce: generation << 32 | index of the
                            // bounce buffer
    std::uint32_t inline_bytes;  // of payload or Pieces in this packet
    std::uint8_t handle_bytes;
    std::uint8_t row;     // rndv::Row that the sender offers
    std::uint8_t reason;  // rndv::Reason for the row
    std::uint8_t call;    // rndv::SendCall
};
static_assert(sizeof(RtsHeader) == 48 && offsetof(RtsHeader, length) == 16 && offsetof(RtsHeader, call) == 47);

// The slot of the receiver's board that a cooperative copy uses, and how the copy is split.
struct SlotWords {
    std::uint32_t slot;  // its index
    std::uint32_t generation;
    std::uint32_t chunk;       // bytes per chunk
    std::uint8_t split;        // rndv::Split
    std::uint8_t reserved[3];  // zero
};
static_assert(sizeof(SlotWords) == 16);

// `rts` must be valid and of row RTR.
inline SlotWords slot_words(const RtsHeader& rts) noexcept {
    SlotWords words;
    std::memcpy(&words, reinterpret_cast<const unsigned char*>(&rts + 1) + rts.handle_bytes, sizeof words);
    return words;
}
// `rts` must be valid and have kFlagPieces, which excludes row RTR.
inline const Piece* pieces_of(const RtsHeader& rts) noexcept {
    return reinterpret_cast<const Piece*>(reinterpret_cast<const unsigned char*>(&rts + 1) + rts.handle_bytes);
}

// Clear to send: the receiver's grant for a message. (A second CTS, for fragments, replaces a cooperative copy
// that neither side can do.) If row is RPUT or COOP, it is followed by handle_bytes of registration handle,
// then by Pieces. length 0: all data has arrived already.
struct CtsHeader {
    Kind kind;
    std::uint8_t row;  // rndv::Row granted
    std::uint16_t check;
    std::uint32_t sender;   // rank, in the job, of this header's sender
    std::uint64_t send_id;  // from the RTS
    std::uint64_t recv_id;  // names the receive request in FRAG and FIN
    std::uint64_t offset;   // granted range of the message
    std::uint64_t length;
    std::uint64_t address;  // destination of the byte at `offset`; valid for RPUT and COOP
    SlotWords copy;         // for COOP, and for RPUT between processes that share memory; otherwise zero
    std::uint8_t handle_bytes;
    std::uint8_t reason;  // rndv::Reason for the row
    std::uint8_t
        pieces;  // RPUT, COOP: number of Pieces that follow and describe the whole receive buffer; 0: it is contiguous
    std::uint8_t counted;   // RPUT, COOP: 1: the receiver has added the sender's share to the sender's load; the sender
                            // must subtract it
    std::uint8_t offloads;  // COOP: 1: an HCA may copy a part; the sender must put the key of its buffer into the slot
    std::uint8_t sees;      // 1: the receiver has mapped the sender's shared memory, so it can read bounce buffers
    std::uint8_t reserved[2];  // zero
};
static_assert(sizeof(CtsHeader) == 72 && offsetof(CtsHeader, send_id) == 8 && offsetof(CtsHeader, copy) == 48);

// A fragment of a send pipeline, followed by its payload.
struct FragHeader {
    Kind kind;
    std::uint8_t reserved;  // zero
    std::uint16_t check;
    std::uint32_t sender;
    std::uint64_t recv_id;
    std::uint64_t offset;  // of the payload in the message
};
static_assert(sizeof(FragHeader) == 24);

// The end of RDMA. To the sender: everything was read. To the receiver: `bytes` were put. Kept short because it
// shares with RTS packets the 4 KiB that btl/vader has for each peer (its fast box).
struct FinHeader {
    Kind kind;
    std::uint8_t what;  // 0: to the receiver, `id` names a receive request; otherwise to the sender, 1 + rndv::Reason
    std::uint16_t check;
    std::uint32_t sender;
    std::uint64_t id;
    std::uint64_t
        bytes;  // lower 48 bits: bytes of the message; upper bits, to the sender: fin_row(), fin_parts(), kFinSees
};
static_assert(sizeof(FinHeader) == 24);

// A read over several rails may end with one FIN per rail; each then carries their number. 0: there is only
// this FIN.
constexpr unsigned kFinRowShift = 48, kFinPartsShift = 56;
constexpr std::uint64_t kMaxFinParts = 32;
constexpr std::uint64_t kFinSees = std::uint64_t{1} << 63;  // same meaning as CtsHeader::sees
constexpr std::uint64_t kMaxMessageBytes = (std::uint64_t{1} << kFinRowShift) - 1;
constexpr std::uint64_t fin_bytes(const FinHeader& h) noexcept { return h.bytes & kMaxMessageBytes; }
constexpr std::uint64_t fin_parts(const FinHeader& h) noexcept { return (h.bytes & ~kFinSees) >> kFinPartsShift; }
constexpr bool fin_sees(const FinHeader& h) noexcept { return h.bytes & kFinSees; }

// In a FIN to the sender: the row that moved the data, and the reason for it (rndv::Row, rndv::Reason).
constexpr std::uint8_t fin_row(const FinHeader& h) noexcept {
    return static_cast<std::uint8_t>(h.bytes >> kFinRowShift);
}
constexpr std::uint8_t fin_reason(const FinHeader& h) noexcept { return static_cast<std::uint8_t>(h.what - 1); }
constexpr void set_fin_choice(FinHeader& h, std::uint8_t row, std::uint8_t reason) noexcept {
    h.what = static_cast<std::uint8_t>(1 + reason);
    h.bytes |= std::uint64_t{row} << kFinRowShift;
}

constexpr std::size_t kLargestHeader = sizeof(CtsHeader);

// The first invalid field of a header, for an error message. min and max are inclusive.
struct Damage {
    Kind kind;
    const char* field;
    std::uint64_t value, min, max;
};

// Length of the header of an RTS or CTS with the handle, SlotWords and Pieces that follow it. The header need not be
// valid: then any length is possible.
COOP_EXPORT std::size_t control_bytes(const RtsHeader& header) noexcept;
COOP_EXPORT std::size_t control_bytes(const CtsHeader& header) noexcept;

// Writes the check word. Call it last: it covers the registration handle, SlotWords and Pieces that follow the header.
COOP_EXPORT void seal(MatchHeader& header) noexcept;
COOP_EXPORT void seal(RtsHeader& header) noexcept;
COOP_EXPORT void seal(CtsHeader& header) noexcept;
COOP_EXPORT void seal(FragHeader& header) noexcept;
COOP_EXPORT void seal(FinHeader& header) noexcept;

// Returns true if the header is valid; otherwise `damage` names the field. `first_bytes` is the length of the
// packet's first segment, which must contain the header and the handle, SlotWords and Pieces that follow it;
// `packet_bytes` is the length of the whole packet.
COOP_EXPORT bool valid_match(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_rts(const void* bytes, std::size_t first_bytes, std::size_t packet_bytes,
                           Damage& damage) noexcept;
COOP_EXPORT bool valid_cts(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_frag(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;
COOP_EXPORT bool valid_fin(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept;

}  // namespace coop::wire

#include "coop/wire/check.h"
