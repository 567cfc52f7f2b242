// SPDX-License-Identifier: BSD-3-Clause
//
// When the side of a cooperative copy that is not to copy does so. A message
// ends although one of its sides computes and makes no calls (MPI 3.1, section
// 3.7.4): a side that was to leave a part to the other one, all of it or a half, takes
// it over when the other one makes no progress.
//
//     stands by --- nothing has moved for `patience`, and nobody copies ---> has taken over
//         ^  | a chunk was claimed, copied or given back,
//         +--+ or the other side is copying one
//
// A side that holds a chunk is copying it and will end that without another call of
// its application, so a held chunk is waited for, however long it takes; it cannot
// be taken over, because a late write to the receive buffer could follow the end of
// the receive.
//
// Units: ns, of any clock that only grows. Pure. Threading: none.
#pragma once

#include <cstdint>

#include "coop/rndv/board.h"
#include "coop/rndv/protocol.h"

namespace coop::rndv {

// Whether the side may claim any chunk from the start. Of halves it may claim one.
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

    // The side has nothing to copy and looks at the board. True, once: it takes over.
    bool look(const Progress& seen, std::uint64_t now_ns, std::uint64_t patience_ns) noexcept {
        if (may_claim_all_) return false;
        if (!has_looked_ || seen.is_copied || seen.moves != moves_) {
            has_looked_ = true;
            moves_ = seen.moves;
            since_ns_ = now_ns;
        }
        return may_claim_all_ = !seen.is_copied && now_ns - since_ns_ >= patience_ns;
    }

private:
    bool may_claim_all_ = true;
    bool has_looked_ = false;
    std::uint64_t moves_ = 0;     // as last seen …
    std::uint64_t since_ns_ = 0;  // … and since when
};

}  // namespace coop::rndv
