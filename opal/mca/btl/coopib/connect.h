// SPDX-License-Identifier: BSD-3-Clause
//
// The application's side of connections.h: requests the connection of a channel, and
// lets the channel carry data when the news says that it is established.
//
// Threading: under Module::lock unless noted.
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct Module;

// Starts connecting, unless that has been started already. Ends the job if the connection has been given up.
void connect(Module& m, Endpoint& endpoint);
void take_news(Module& m);
int progress_connections(Module& m);  // call it without the lock

// Makes the rail a part of the endpoint's channel.
void set_mark(Endpoint& endpoint, Rail& rail, std::size_t number);
// Starts everything that has waited for a usable rail, in order.
void release_waiting(Module& m, Endpoint& endpoint);

}  // namespace coop::ib
