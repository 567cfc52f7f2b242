// SPDX-License-Identifier: BSD-3-Clause
//
// What the steps of a send (send_request.cc, send_start.cc) share.
#pragma once

#include "packet.h"
#include "send_request.h"

namespace coop::pml {

constexpr std::uint8_t kSendPatience = 64;  // immediate sends to try before a descriptor is used

// wait_for_resources() for kStart: behind those that are already waiting for this peer.
Next wait_in_line(SendRequest& r) noexcept;

// Hands over a packet of ours; the transport holds a reference meanwhile.
Sent hand_over(SendRequest& r, mca_bml_base_btl_t& btl, mca_btl_base_descriptor_t* descriptor, wire::Kind kind) noexcept;

inline void rewind(SendRequest& r, std::size_t to) noexcept {
    if (r.bytes() > 0) opal_convertor_set_position(&r.convertor(), &to);
}

Next start_step(SendRequest& r) noexcept;  // send_start.cc

}  // namespace coop::pml
