// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of a receive share: its steps (recv_request.cc), the reading of
// an RTS (recv_rts.cc), and offers with the slots that they lie in (recv_offer.cc).
#pragma once

#include "packet.h"
#include "recv_request.h"

namespace coop::pml {

// The packet's payload behind `skip` bytes of header, into the user's buffer
// from `offset` of the message on. What exceeds the buffer is dropped.
void unpack(RecvRequest& r, const Packet& packet, std::size_t skip, std::size_t offset) noexcept;
void set_status(RecvRequest& r, const wire::MatchHeader& header, std::size_t message_bytes) noexcept;
void finish(RecvRequest& r) noexcept;
void finish_later(RecvRequest& r) noexcept;  // by the application; ends_later() says when

// -- recv_rts.cc. The peer has been reached, the header validated.

// Notes what the RTS says, for choose().
void read_rts(RecvRequest& r, Peer& peer, const wire::RtsHeader& h, mca_btl_base_module_t* btl) noexcept;
// The sender has taken the offer of this receive and copies already.
void join_copy(RecvRequest& r, const wire::RtsHeader& h) noexcept;
// The message lies in a bounce buffer of the sender.
void take_from_bounce(RecvRequest& r, Peer& peer, const wire::RtsHeader& h) noexcept;

// -- recv_offer.cc

// Our slot of the board. False: none is free.
[[nodiscard]] bool take_slot(RecvRequest& r) noexcept;
void free_slot(RecvRequest& r) noexcept;

// Whether the receive would be offered to its sender, once posted.
bool worth_offering(const Comm& c, Peer* peer, RecvRequest& r) noexcept;
// Offers the receive, just posted, if its sender's next message with this tag is sure to find it. Under Comm::lock.
void offer(Comm& c, Peer& peer, RecvRequest& r) noexcept;

}  // namespace coop::pml
