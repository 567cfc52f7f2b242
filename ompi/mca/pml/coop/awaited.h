// SPDX-License-Identifier: BSD-3-Clause
//
// Records which receives a thread of the application waits for until they are complete: in MPI_Recv, MPI_Wait or
// MPI_Waitall. Such a receive may give HCAs work whose completion only our own polling finds (hca_lane.h), because the
// thread polls until the receive is complete. A receive that is tested now and then, or waited for together with others
// until one of them completes, is not awaited. If messages may come through the lane, these calls look at it more often
// than at the transports.
//
// MPI_Wait and MPI_Waitall are functions of Open MPI itself, called through a table; watch_waits() replaces the entries
// by functions that mark the receives.
//
// Threading: any. Errors: none.
#pragma once

#include "recv_request.h"

namespace coop::pml {

void watch_waits() noexcept;          // before the first message, and before start_async()
void stop_watching_waits() noexcept;  // after stop_async(); no effect without watch_waits()

inline bool is_awaited(const RecvRequest& r) noexcept {
    return waits(r.call) || r.awaited.load(std::memory_order_relaxed);
}

}  // namespace coop::pml
