// SPDX-License-Identifier: BSD-3-Clause
//
// The protocol rows of pml/coop and the one function that chooses among them.
// (Cooperative Rendezvous Protocols: section I-A for RPUT and RGET, II-A1 for
// COOP, II-B1 with Table II for the choice by calls, II-B2 for the choice by
// load, II-D for the hybrid; the send pipeline is what remains without RDMA.)
//
// The sender asks choose() when a message starts, taking the receiver to be as
// it would wish; the receiver asks again, with both sides known, when the
// message is matched, and its answer counts. An offer that the receiver has
// made (RTR) tells the sender everything: then its answer counts. Each answer
// carries its reason, and describe() turns it into the sentence that
// pml_coop_report prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "coop/base/export.h"

namespace coop::rndv {

// How the payload travels.
enum class Row : std::uint8_t {
    kEager,  // with the first packet, whether or not a receive is posted
    kSend,   // RTS, CTS, then fragments copied in and out
    kRput,   // RTS, CTS with the receive buffer, put by the sender, FIN. Of two that share memory: as kCoop, led by the sender
    kRget,   // RTS with the send buffer, get by the receiver, FIN
    kCoop,   // RTS with the send buffer, CTS with the receive buffer, both copy; each sees the end on the board
    kRtr,    // the receive was offered: RTS, both copy at once; each sees the end on the board
    kBounce,  // RTS, with the payload in memory that the sender shares; read from there once matched
};
constexpr std::size_t kRows = 7;

enum class Reason : std::uint8_t {
    kFitsEager,
    kSynchronousFitsInline,
    kForced,
    kForcedUnavailable,
    kReceiverReads,
    kNoGet,
    kNoRdma,
    kBelowRdmaMin,
    kSenderPieces,
    kReceiverPieces,
    kStripedOverTransports,
    kGetRefused,
    kRdmaRefused,
    kNothingLeft,
    kBothWait,
    kSenderWaits,
    kReceiverWaits,
    kNobodyWaits,
    kReceiverLighter,
    kSenderLighter,
    kEvenLoad,
    kBelowCoopMin,
    kOffered,
    kNoKernelCopy,
    kNoSlot,
    kReceiverTurn,
    kSenderTurn,
    kOneWay,
    kNotAwaited,
};
constexpr std::size_t kReasons = 29;

// pml_coop_protocol
enum class Wish : std::uint8_t { kHybrid, kRget, kRput, kSend, kCoop, kCoopFixed, kCoopColl, kCoopLoad };
constexpr std::size_t kWishes = 8;
constexpr const char* kWishNames[kWishes] = {"hybrid", "rget", "rput", "send", "coop", "coop_fixed", "coop_coll", "coop_load"};

// The MPI call behind each side of a message, as far as it tells what its caller
// does meanwhile: wait, or perhaps compute. Nonblocking synchronous and ready
// sends are kIsend.
enum class SendCall : std::uint8_t { kSend, kIsend, kBsend, kSsend, kRsend };
enum class RecvCall : std::uint8_t { kRecv, kIrecv };
constexpr std::size_t kSendCalls = 5;

// Who copies in a cooperative row. With a side that leads, the other one helps
// while it has nothing else to do, and takes over when the one that leads makes
// no progress (takeover.h); so it does with the other's half.
enum class Split : std::uint8_t { kBoth, kHalves, kReceiverLeads, kSenderLeads };
constexpr std::size_t kSplits = 4;

// Everything the choice depends on, for one message.
struct Situation {
    std::size_t bytes = 0;         // of the message
    std::size_t eager_limit = 0;   // largest payload that goes eagerly
    std::size_t rdma_min = 0;      // smallest message worth RDMA
    std::size_t isend_rdma_min = 0;  // likewise, between nodes, where the sender does not wait; known to the sender, which decides
    std::size_t coop_min = 0;      // smallest message worth two copiers
    double rdma_share = 1.0;       // of the bandwidth to the peer, that the RDMA transport has: 0..1
    Wish wish = Wish::kHybrid;
    bool synchronous = false;
    bool sender_contiguous = true;
    bool receiver_contiguous = true;  // the sender's guess: true
    bool large_pieces = false;        // not contiguous, but in pieces that are worth a copy each
    bool can_get = false;             // transport abilities
    bool can_put = false;
    bool get_refused = false;         // tried for this message, in vain
    bool put_refused = false;
    bool kernel_copy_denied = false;  // the transport could, but the kernel does not let these two

    // Cooperation inside a node.
    bool one_way = false;         // the sender's messages follow each other, with none from the receiver in between
    std::size_t bounce_max = 0;   // largest message for a bounce buffer
    bool same_node = false;           // two processes of one node
    bool can_share = false;           // they see each other's boards, both may copy, and the sender ends a copy that it begins without another call
    bool slot_free = true;            // the receiver has a slot for it
    bool offered = false;             // the sender has taken an offer of the receiver
    bool receiver_sends = false;      // the receiver has rendezvous of its own under way
    bool crowded = false;             // more processes than cores: two copiers are no faster than one
    SendCall send_call = SendCall::kIsend;
    RecvCall recv_call = RecvCall::kIrecv;
    std::uint64_t sender_load = 0;    // bytes that each still has to copy
    std::uint64_t receiver_load = 0;
    std::int64_t sender_surplus = 0;  // bytes: by how much the sender's surplus (board.h) is above the receiver's; coop_load
};

struct Choice {
    Row row;
    Reason reason;
    Split split = Split::kBoth;  // kCoop and kRtr; kRput: kSenderLeads of two that share memory, otherwise kBoth
    bool operator==(const Choice&) const = default;
};

// Whether both sides may copy, by claims on the receiver's board.
constexpr bool is_shared(const Choice& choice) noexcept {
    return choice.row == Row::kCoop || choice.row == Row::kRtr || (choice.row == Row::kRput && choice.split == Split::kSenderLeads);
}

COOP_EXPORT Choice choose(const Situation& situation) noexcept;

// Whether the sender should look for an offer of the receiver (RTR) before it
// chooses: the paper's table names it for ready sends; the hybrid takes it
// wherever it would let both sides copy.
COOP_EXPORT bool wants_offer(const Situation& situation) noexcept;

// Whether two copiers are worth the packet more that they need. Where processes
// wait for cores it takes longer messages.
constexpr std::size_t kCrowdedFactor = 4;
constexpr bool long_enough_for_two(const Situation& s) noexcept {
    return s.bytes >= (s.crowded ? kCrowdedFactor * s.coop_min : s.coop_min);
}

// Whether a load is smaller than another one by some messages of this length.
constexpr std::uint64_t kClearMessages = 3;
constexpr bool is_clearly_less(std::uint64_t load, std::uint64_t other, std::uint64_t bytes) noexcept {
    return load < other && (other - load) / kClearMessages >= bytes;
}

// Whether the message is counted on the load board: where both sides could copy,
// and under the hybrid only messages that are worth the atomic operations.
constexpr bool load_matters(const Situation& s) noexcept {
    return s.can_share && (long_enough_for_two(s) || s.wish != Wish::kHybrid);
}

// Whether the sides take turns: then the message is counted for that, too.
constexpr bool turns_matter(const Situation& s) noexcept { return s.can_share && s.wish == Wish::kCoopLoad; }

// What each side has to copy under this choice, for the load board.
struct Shares {
    std::uint64_t sender = 0, receiver = 0;  // bytes
};
COOP_EXPORT Shares shares(const Choice& choice, std::uint64_t bytes) noexcept;

COOP_EXPORT const char* name(Row row) noexcept;
COOP_EXPORT const char* text(Reason reason) noexcept;  // "the receiver reads straight from the send buffer"

// One sentence with the numbers that decided.
COOP_EXPORT std::string describe(const Choice& choice, const Situation& situation);

}  // namespace coop::rndv
