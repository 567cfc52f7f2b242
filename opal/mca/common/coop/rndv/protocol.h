// SPDX-License-Identifier: BSD-3-Clause
//
// The protocols of pml/coop as a table, and the one function that chooses among them. (Cooperative Rendezvous
// Protocols: section I-A for rput and rget, II-A1 for coop; the send pipeline is what remains without RDMA.)
//
// The sender calls choose() when a message starts, and assumes the best of the receiver. The receiver calls it again
// when the message is matched and both sides are known, and its answer counts. A receive that was offered to the sender
// (rtr) tells the sender everything: then the sender's answer counts.
//
// Each protocol is one file, rows/NAME.cc, which fills in one Protocol. The engines of both sides (sender.h,
// receiver.h) and the checks of control headers (wire/headers.cc) ask the Protocol. They name two rows only: kSend,
// the fallback when RDMA is refused, and kRget, when nothing is left to copy.
#pragma once

#include <optional>
#include <string>

#include "coop/base/export.h"
#include "coop/rndv/choice.h"
#include "coop/rndv/situation.h"

namespace coop::rndv {

// Who moves the payload once both sides know the row.
enum class Mover : std::uint8_t {
    kPackets,   // the sender, in fragments
    kSender,    // the sender, by puts
    kReceiver,  // the receiver, by gets
    kBoth,      // whoever claims a chunk on the receiver's board
};

// What the RTS carries of the payload.
enum class Inline : std::uint8_t { kNothing, kHead, kWhole };

// Bytes that each side has to copy.
struct Shares {
    std::uint64_t sender = 0, receiver = 0;
};

enum class Lack : std::uint8_t { kMemory, kSlot };

struct Protocol {
    Row row;
    const char* name;

    // The choice of this row with its reason, or nothing if it cannot carry the message or a later row should.
    std::optional<Choice> (*can_use)(const Situation&) noexcept;

    // -- stages
    Mover (*mover)(const Choice&) noexcept;
    Inline payload = Inline::kNothing;
    // Whether the RTS names the send buffer, so that the receiver can read it.
    bool (*shows_buffer)(const Situation&) noexcept;
    bool needs_rdma = true;         // the RTS takes the transport that has RDMA
    bool may_be_in_pieces = false;  // the RTS may list a send buffer that is not contiguous
    bool uses_bounce = false;       // the payload lies in a bounce buffer of the sender; the receiver does not answer
    bool starts_at_once = false;    // both sides copy before any answer: the RTS names a slot of the receiver's board
    bool idle_side_helps = true;    // in a copy of both sides: a side that does not lead copies while it is idle
    bool allows_hcas = false;       // an HCA of the receiver may copy some chunks

    // Notes in the situation that the receiver lacks memory or a slot, so that choose() passes over this row from now
    // on.
    void (*abort)(Situation&, Lack) noexcept;

    // The bytes that each side will copy, for the load of the boards.
    Shares (*shares)(const Choice&, std::uint64_t bytes) noexcept;
};

// The row must be below kRows.
COOP_EXPORT const Protocol& protocol(Row row) noexcept;

COOP_EXPORT Choice choose(const Situation& situation) noexcept;

// Whether the sender should look for an offer of the receiver (rtr) before it chooses. The paper's table has it for
// ready sends; the hybrid, between processes that share memory, for each contiguous message that is long enough for two
// copiers and whose RTS would name the send buffer.
COOP_EXPORT bool wants_offer(const Situation& situation) noexcept;

// Whether both sides may copy, by claims on the receiver's board.
inline bool is_shared(const Choice& choice) noexcept { return protocol(choice.row).mover(choice) == Mover::kBoth; }
// Whether the sender may write to the receive buffer: then the grant says where it is.
inline bool sender_writes(const Choice& choice) noexcept {
    const Mover mover = protocol(choice.row).mover(choice);
    return mover == Mover::kSender || mover == Mover::kBoth;
}
inline Shares shares(const Choice& choice, std::uint64_t bytes) noexcept {
    return protocol(choice.row).shares(choice, bytes);
}
inline const char* name(Row row) noexcept { return protocol(row).name; }

// One sentence with the numbers that decided.
COOP_EXPORT std::string describe(const Choice& choice, const Situation& situation);

}  // namespace coop::rndv
