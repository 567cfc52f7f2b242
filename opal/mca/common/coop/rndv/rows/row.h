// SPDX-License-Identifier: BSD-3-Clause
//
// What the files of the rows share.
#pragma once

#include "coop/rndv/cooperation.h"
#include "coop/rndv/protocol.h"

namespace coop::rndv::rows {

// The row `send`, which can carry any message, with the reason why no other row could. (send.cc)
Choice last_resort(const Situation& situation) noexcept;

template <Mover kMover>
Mover always(const Choice&) noexcept {
    return kMover;
}
template <bool kValue>
bool always(const Situation&) noexcept {
    return kValue;
}

// The protocol needs neither memory nor a slot.
inline void cannot_lack(Situation&, Lack) noexcept {}
inline Shares nobody_copies(const Choice&, std::uint64_t) noexcept { return {}; }

// The shares of a copy that both sides may do.
inline Shares split_shares(const Choice& choice, std::uint64_t bytes) noexcept {
    switch (choice.split) {
    case Split::kReceiverLeads: return {0, bytes};
    case Split::kSenderLeads: return {bytes, 0};
    case Split::kBoth:
    case Split::kHalves: break;
    }
    return {bytes / 2, bytes - bytes / 2};
}

// A cooperative copy writes to the receive buffer and needs a slot of the receiver's board.
inline void lacks_for_both(Situation& s, Lack lack) noexcept {
    if (lack == Lack::kSlot) s.slot_free = false;
    else s.put_refused = true;
}

constexpr bool can_get(const Situation& s) noexcept { return s.can_get && !s.get_refused; }
constexpr bool can_put(const Situation& s) noexcept { return s.can_put && !s.put_refused; }

// True if pml_coop_protocol is rget or rput. A row that has to carry such a message instead gives the reason
// kForcedUnavailable.
constexpr bool other_is_asked_for(const Situation& s) noexcept {
    return s.wish == Wish::kRget || s.wish == Wish::kRput;
}

}  // namespace coop::rndv::rows
