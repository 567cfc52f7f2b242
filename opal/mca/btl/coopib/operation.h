// SPDX-License-Identifier: BSD-3-Clause
//
// Starts RDMA operations: cuts them into stripes, each for one rail. An operation of
// several stripes may wait in Channel::uncut while the rails are busy: the later it is
// cut, the better the scheduler knows how fast they are.
//
// Threading: under Module::lock. Ownership: an operation belongs to its pool and
// may have completed when start_op() returns.
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct Module;

void start_op(Module& m, RdmaOp& op);
// The operation has ended.
void note_end(RdmaOp& op, std::uint64_t now);
// Call this when a rail has less to do or can read again. Cuts the operations that need not wait any longer.
void cut_waiting(Module& m, Channel& channel);
// Cuts the writes that wait, so that what is submitted to their rails now is behind them. Returns false if some still
// wait, because no rail is usable.
[[nodiscard]] bool cut_writes(Module& m, Channel& channel);

}  // namespace coop::ib
