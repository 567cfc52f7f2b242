// SPDX-License-Identifier: BSD-3-Clause
//
// Sends again what was under way over a rail that has failed, over other rails; failover.h says what may be repeated when.
//
// Threading: under Module::lock. Errors: an atomic operation that is in doubt, and a message that cannot be repeated, end
// the job.
#pragma once

#include "endpoint.h"

namespace coop::ib {

// Requests that were posted on the rail. `all`: the peer has closed its end; otherwise only what may be repeated before.
void repeat_posted(Channel& channel, sched::RailIndex number, bool all);
// The same with `all`, and messages that have left the rail, but that the peer's process does not have.
void repeat_all(Channel& channel, sched::RailIndex number);
// The peer's process has ended: messages that wait for a rail, or for the end of a repair, are complete. Those of a queue pair that
// is not drained complete by themselves (progress.cc). Precondition: all completions that were polled have been handled.
void end_messages(Channel& channel);

}  // namespace coop::ib
