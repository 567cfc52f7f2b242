// SPDX-License-Identifier: BSD-3-Clause
//
// Outgoing messages of a channel: their headers, the peer's ring, and the credits that
// they carry. message.cc also defines Channel::prepare().
//
// Threading: under Module::lock. Ownership: the callback of a fragment returns it to
// the upper layer; a control message returns to its pool when it has completed.
#pragma once

#include <cstddef>
#include <span>

#include "endpoint.h"

namespace coop::ib {

struct Module;

void post_fragment(Endpoint& endpoint, Fragment& fragment);
// Whether the peer's ring has room for a message of `length` bytes, with its header.
bool ring_has_room(const Channel& channel, std::uint32_t length);
// Sends the header and the payload that follows it inline, at once. Returns false, and sends nothing, if this is not
// possible now. The buffer must have room for sched::written() of header and payload.
bool send_inline(Endpoint& endpoint, Header& header, bool urgent);
// Sends a control message. Returns false if there is no memory for it.
bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload);

// Sends a control message that only returns credits: those of the ring, and those of the rail that owes the largest
// part of its receive buffers. If there is no memory for it, a later message carries them.
void post_credits(Module& m, Endpoint& endpoint);
// Gives messages without a place in the sequence their numbers, by which the peer recognizes repetitions; 0 without
// failover. Returns false, and does nothing, if too few numbers are left because the peer has not acknowledged earlier
// ones. `reserve`: numbers that must be left for others.
bool number_unordered(Channel& channel, std::span<Fragment* const> fragments, std::uint32_t reserve);
// Returns the credits of each rail that owes half of its receive buffers or more.
void post_receive_credits(Module& m, Endpoint& endpoint);
// Puts owed credits into a header that is about to be posted.
void load_credits(Channel& channel, Header& header);
// The peer's process has the messages before these numbers.
void take_acknowledgement(Module& m, Endpoint& endpoint, const Acknowledgement& got);
// The peer has returned receive credits.
void take_receive_credits(Endpoint& endpoint, sched::Grant grant);

}  // namespace coop::ib
