// SPDX-License-Identifier: BSD-3-Clause
//
// The protocol rows of pml/coop and the one function that chooses among them.
// (Cooperative Rendezvous Protocols, section I-A: RPUT and RGET; the send
// pipeline is what remains without RDMA.)
//
// The sender asks choose() when a message starts, taking the receiver to be as
// it would wish; the receiver asks again, with both sides known, when the
// message is matched, and its answer counts. Both answers carry their reason,
// and describe() turns them into the sentence that pml_coop_report prints.
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
    kRput,   // RTS, CTS with the receive buffer, put by the sender, FIN
    kRget,   // RTS with the send buffer, get by the receiver, FIN
};
constexpr std::size_t kRows = 4;

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
};
constexpr std::size_t kReasons = 14;

// pml_coop_protocol
enum class Wish : std::uint8_t { kAuto, kRget, kRput, kSend };

// Everything the choice depends on, for one message.
struct Situation {
    std::size_t bytes = 0;         // of the message
    std::size_t eager_limit = 0;   // largest payload that goes eagerly
    std::size_t rdma_min = 0;      // smallest message worth RDMA
    double rdma_share = 1.0;       // of the bandwidth to the peer, that the RDMA transport has: 0..1
    Wish wish = Wish::kAuto;
    bool synchronous = false;
    bool sender_contiguous = true;
    bool receiver_contiguous = true;  // the sender's guess: true
    bool can_get = false;             // transport abilities
    bool can_put = false;
    bool get_refused = false;         // tried for this message, in vain
    bool put_refused = false;
};

struct Choice {
    Row row;
    Reason reason;
    bool operator==(const Choice&) const = default;
};

COOP_EXPORT Choice choose(const Situation& situation) noexcept;

COOP_EXPORT const char* name(Row row) noexcept;
COOP_EXPORT const char* text(Reason reason) noexcept;  // "the receiver reads straight from the send buffer"

// One sentence with the numbers that decided.
COOP_EXPORT std::string describe(const Choice& choice, const Situation& situation);

}  // namespace coop::rndv
