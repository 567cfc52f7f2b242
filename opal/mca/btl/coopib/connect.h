// SPDX-License-Identifier: BSD-3-Clause
//
// The application's side of connections.h: a channel asks for its connection, and
// carries data once the news of it has been taken.
//
// Threading: under Module::lock where nothing else is said.
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct Module;

// Begins to connect, unless that has begun already.
void connect(Module& m, Endpoint& endpoint);
void take_news(Module& m);
int progress_connections(Module& m);  // without the lock

}  // namespace coop::ib
