// SPDX-License-Identifier: BSD-3-Clause
//
// When a side of a cooperative copy starts to copy the part that is the other side's. A message must complete even if
// one of its sides computes and makes no calls (MPI 3.1, section 3.7.4). So a side that leaves all or half of a message
// to the other side takes that part over when the other side makes no progress.
//
//     stands by --- nothing has moved for `patience`, and nobody copies ---> has taken over
//         ^  | a chunk was claimed, copied or given back,
//         +--+ or the other side is copying one
//
// A side that holds a chunk finishes it without another call of its application, so the other side waits for a held
// chunk, however long it takes. A held chunk cannot be taken over: its first holder might write to the receive buffer
// after the receive is complete.
//
// Units: nanoseconds of any monotonic clock. Pure. Threading: one thread at a time.
#pragma once

#include <cstdint>

#include "coop/rndv/board.h"
#include "coop/rndv/protocol.h"

namespace coop::rndv {

// True if the side may claim any chunk from the start. With halves it may claim only one.
constexpr bool copies_from_the_start(Split split, Side side) noexcept {
    switch (split) {
    case Split::kBoth: return true;
    case Split::kHalves: return false;
    case Split::kReceiverLeads: return side == Side::kReceiver;
    case Split::kSenderLeads: return side == Side::kSender;
    }
    return true;
}

class Takeover {
public:
    void start(Split split, Side side) noexcept {
        may_claim_all_ = copies_from_the_start(split, side);
        has_looked_ = false;
    }

    bool may_claim_all() const noexcept { return may_claim_all_; }
    std::uint64_t moves_seen() const noexcept { return has_looked_ ? moves_ : UINT64_MAX; }

    // The side has nothing to copy and looks at the board. Returns true once: the side takes over.
    bool look(const Progress& seen, std::uint64_t now_ns, std::uint64_t patience_ns) noexcept {
        if (may_claim_all_) return false;
        if (!has_looked_ || seen.is_being_copied || seen.moves != moves_) {
            has_looked_ = true;
            moves_ = seen.moves;
            since_ns_ = now_ns;
        }
        return may_claim_all_ = !seen.is_being_copied && now_ns - since_ns_ >= patience_ns;
    }

private:
    bool may_claim_all_ = true;
    bool has_looked_ = false;
    std::uint64_t moves_ = 0;     // at the last change that was seen
    std::uint64_t since_ns_ = 0;  // when that was
};

}  // namespace coop::rndv
