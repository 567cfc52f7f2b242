// SPDX-License-Identifier: BSD-3-Clause
//
// Records which receives a thread of the application waits for until they are complete: in MPI_Recv, MPI_Wait or
// MPI_Waitall. Such a receive may give HCAs work whose completion only our own polling finds (hca_copies.h), because
// the thread polls until the receive is complete. A receive that is tested now and then, or waited for together with
// others until one of them completes, is not awaited. If messages may come through the lane, these calls look at it
// more often than at the transports. Our board shows when all sends that are under way are awaited, so that their
// receivers know (recv_way.cc).
//
// If several threads are inside MPI, a thread that waits in Open MPI 4.1 sleeps on a condition, and the thread that
// completes its request wakes it. If the one that is woken takes the CPU of the other at that moment, it spins until the
// other has run again (WAIT_SYNC_RELEASE waits for the end of the signal), which takes a time slice of milliseconds. So
// a thread looks for its messages itself for a while before it sleeps.
//
// MPI_Wait and MPI_Waitall are functions of Open MPI itself, called through a table; watch_waits() replaces the entries
// by functions that mark the receives.
//
// Threading: any. Errors: none.
#pragma once

#include <utility>

#include "node_lane.h"
#include "recv_request.h"

namespace coop::pml {

void watch_waits() noexcept;          // before the first message, and before start_async()
void stop_watching_waits() noexcept;  // after stop_async(); no effect without watch_waits()

// Returns when done(), or after a while.
template <class Done>
void look_before_sleep(Done&& done) noexcept {
    constexpr int kLooks = 2000;  // each of some 0.1 us; the progress function yields the CPU now and then
    for (int looks = 0; looks < kLooks && !done(); ++looks) opal_progress();
}

inline void wait_among_threads(ompi_request_t* request) noexcept {
    if (module.threads) look_before_sleep([request] { return REQUEST_COMPLETE(request); });
    ompi_request_wait_completion(request);
}

// The request whose completion ends the call that waits on the lane now; null: none. Set only if no threads meet in MPI.
inline constinit const ompi_request_t* awaited_at_last = nullptr;
inline bool awaited_is_complete() noexcept { return awaited_at_last && REQUEST_COMPLETE(awaited_at_last); }

// Waits on the lane for the request that a call waits for at last.
inline void wait_on_lane_at_last(const ompi_request_t* request) noexcept {
    const ompi_request_t* const outer = std::exchange(awaited_at_last, request);
    wait_on_lane([request] { return REQUEST_COMPLETE(request); });
    awaited_at_last = outer;
}

inline bool is_awaited(const RecvRequest& r) noexcept {
    return waits(r.call) || r.awaited.load(std::memory_order_relaxed);
}

}  // namespace coop::pml
