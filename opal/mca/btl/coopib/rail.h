// SPDX-License-Identifier: BSD-3-Clause
//
// The send queue of a rail and the requests that wait for it. A request is posted
// when the send queue has room and, if it needs one, the peer has granted a receive
// credit; until then it waits on the rail, in order.
//
// Inline sends ask for no completion of their own: their data are the HCA's when
// the post returns. A mark now and then, a request that does complete, tells that
// all requests before it are off the queue.
//
// Threading: under Module::lock. Errors: a queue pair that refuses a request is an
// event of the rail (failure.h).
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct Module;

// Posts the request, or queues it after those that wait already.
void submit(Module& m, Work& work);
// Posts a message that needs no credit, or queues it before all others.
void submit_first(Module& m, Work& work);
// Posts waiting requests while there is room for them.
void pump(Module& m, Channel& channel, Rail& rail);

// Whether an inline send would be posted at once, credits aside.
inline bool has_room(Rail& rail) { return rail.waiting.empty() && rail.in_flight < rail.depth; }
// Posts inline data that carry the sequence number `psn`. Precondition: has_room().
void post_inline_now(Module& m, Rail& rail, ibv_send_wr& request, sched::SequenceNumber psn);

// Asks for the completion of the inline sends after the last mark.
void mark_now(Module& m, Rail& rail);
// The mark has completed: the inline sends before it have landed.
void on_mark_done(Channel& channel, Rail& rail);

}  // namespace coop::ib
