// SPDX-License-Identifier: BSD-3-Clause
//
// Functions shared by the steps of a send (send_request.cc, send_start.cc).
#pragma once

#include "pack_part.h"
#include "packet.h"
#include "send_request.h"

namespace coop::pml {

constexpr std::uint8_t kSendPatience = 64;  // immediate sends to try before a descriptor is used

// Counts the first packet of a send without a lane, which a transport is about to accept, or will later because the
// send waits in line. end_unsent() follows when the packet is sent; both do nothing if it is counted already, or not.
inline void begin_unsent(SendRequest& r) noexcept {
    if (!r.lane && !r.unsent.load(std::memory_order_relaxed)) r.unsent.store(r.peer->begin_unsent());
}
inline void end_unsent(SendRequest& r) noexcept {
    if (!r.unsent.load(std::memory_order_relaxed)) return;
    if (Unsent* const unsent = r.unsent.exchange(nullptr)) unsent->end();
}

// Like wait_for_resources(), for a send that could not start: queues it after the sends that already wait for this
// peer.
Next wait_in_line(SendRequest& r) noexcept;

// Hands a packet to the transport, which holds a reference until the packet is sent.
Sent hand_over(SendRequest& r, mca_bml_base_btl_t& btl, mca_btl_base_descriptor_t* descriptor,
               wire::Kind kind) noexcept;

inline void rewind(SendRequest& r) noexcept {
    if (r.bytes() > 0) seek(r.convertor(), 0);
}

Next start_step(SendRequest& r) noexcept;  // send_start.cc

}  // namespace coop::pml
