// SPDX-License-Identifier: BSD-3-Clause
//
// Functions shared by the parts of a receive: its steps (recv_request.cc), processing an RTS (recv_rts.cc), the way of a
// long message (recv_way.cc), and offers and slots of the board (recv_offer.cc).
#pragma once

#include "packet.h"
#include "recv_request.h"

namespace coop::pml {

// Copies the payload that follows `skip` bytes of header into the user's buffer, at byte `offset` of the message. Bytes
// that exceed the buffer are dropped.
void unpack(RecvRequest& r, const Packet& packet, std::size_t skip, std::size_t offset) noexcept;
void set_status(RecvRequest& r, const wire::MatchHeader& header, std::size_t message_bytes) noexcept;
void finish(RecvRequest& r) noexcept;
void finish_later(RecvRequest& r) noexcept;  // leaves it to the application; see ends_later()

// -- recv_rts.cc. Precondition: the peer is reached and the header is valid.

// Stores what the RTS says and lets the engine choose the protocol.
void read_rts(RecvRequest& r, Peer& peer, const wire::RtsHeader& h, mca_btl_base_module_t* btl) noexcept;
// Joins the copy of a sender that has taken the offer of this receive.
void join_copy(RecvRequest& r, const wire::RtsHeader& h) noexcept;
// Copies the message from a bounce buffer of the sender and finishes the receive.
void take_from_bounce(RecvRequest& r, Peer& peer, const wire::RtsHeader& h) noexcept;

// -- recv_way.cc

// Decides whether the message comes through the lane, and times it (coop/rndv/long_way.h). `has_begun`: the sender copies already.
// `by_lane`: the RTS came through the lane.
void choose_way(RecvRequest& r, rndv::Situation& s, bool has_begun, bool by_lane) noexcept;
void end_way(RecvRequest& r) noexcept;
// Whether a message of this length should come through the lane, for which its receive must not be offered.
bool prefers_lane(const Comm& c, const Peer& peer, std::size_t bytes) noexcept;

// -- recv_offer.cc

// Takes a slot of our board for the receive. Returns false if none is free.
[[nodiscard]] bool take_slot(RecvRequest& r) noexcept;
void free_slot(RecvRequest& r) noexcept;

// True if the receive, of at least pml_coop_rtr_min bytes, should be offered to its sender once it is posted.
bool worth_offering(const Comm& c, Peer* peer, RecvRequest& r) noexcept;
// Offers a receive that has just been posted, if the sender's next message with this tag is certain to match it. Under
// Comm::lock.
void offer(Comm& c, Peer& peer, RecvRequest& r) noexcept;

}  // namespace coop::pml
