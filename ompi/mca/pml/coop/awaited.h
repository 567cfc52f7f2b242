// SPDX-License-Identifier: BSD-3-Clause
//
// Which receives a thread of the application waits for until they are complete:
// in MPI_Recv, MPI_Wait or MPI_Waitall. What such a receive has begun it will also
// end, without another call of the application: so it may give HCAs work whose end
// only a poll of ours finds (hca_lane.h). A receive that is tested now and then, or
// waited for together with others of which one may end first, is not awaited.
//
// MPI_Wait and MPI_Waitall are Open MPI's own; they are called through a table, into
// which watch_waits() puts functions that note the receives.
//
// Threading: any. Errors: none.
#pragma once

#include "recv_request.h"

namespace coop::pml {

void watch_waits() noexcept;         // before the first message, and before start_async()
void stop_watching_waits() noexcept; // after stop_async(); harmless where nothing is watched

inline bool is_awaited(const RecvRequest& r) noexcept { return waits(r.call) || r.awaited.load(std::memory_order_relaxed); }

}  // namespace coop::pml
