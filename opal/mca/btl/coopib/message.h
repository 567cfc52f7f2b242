// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of a channel on their way out: their headers, the peer's ring, and the
// credits that travel with them. Channel::prepare() is here.
//
// Threading: under Module::lock. Ownership: a fragment of the upper layer comes
// back by its callback; a control message is given back when it has gone.
#pragma once

#include <cstddef>
#include <span>

#include "endpoint.h"

namespace coop::ib {

struct Module;

void post_fragment(Endpoint& endpoint, Fragment& fragment);
// Sends the header and the payload after it inline, at once. False: this is not possible now, and nothing was sent.
// Behind the payload there is room for sched::written() of the whole.
bool post_inline(Endpoint& endpoint, Header& header, bool urgent);
// A control message. False: there is no memory for it.
bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload);

// Returns all owed credits in a control message of their own. Without memory for it they go with a later message.
void post_credits(Module& m, Endpoint& endpoint);
// Puts owed credits into a header that is about to be posted.
void load_credits(Channel& channel, Header& header);
// The peer has returned receive credits.
void take_receive_credits(Endpoint& endpoint, sched::Grant grant);

}  // namespace coop::ib
