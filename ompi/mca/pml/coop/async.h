// SPDX-License-Identifier: BSD-3-Clause
//
// Progress while the application computes (parameter async): starts and stops the
// handler of coop/async/handler.h, and keeps apart what it and the application do.
//
// Where Open MPI takes no locks (below MPI_THREAD_MULTIPLE) the two take turns:
// every entry point of this pml holds an Inside, every callback from a
// transport a Polling, and so do the functions behind MPI_Wait and
// MPI_Test, which are Open MPI's own: they are called through a table that
// start_async() puts ours into. What the handler must not do even so, because it
// touches what Open MPI shares between requests, waits for the application.
#pragma once

#include "coop/async/handler.h"
#include "module.h"

namespace coop::pml {

enum class Async : std::uint8_t { kOff, kInterrupt, kAuto };

void start_async() noexcept;
void stop_async() noexcept;

// Whether the end of `request` has to be left to the application: it calls back
// into other parts of Open MPI, or gives back what they hold.
inline bool ends_later(const ompi_request_t& request, bool gives_back) noexcept {
    return (request.req_complete_cb != nullptr || gives_back) && module.handler.active() && module.handler.turn().on() && module.handler.is_running_here();
}

enum class Fin : std::uint8_t { kAuto, kAfter, kFenced };

// Whether the FIN of a message that this process reads shall be posted with the read.
inline bool posts_fin_with_read() noexcept {
    if (module.config.fin != static_cast<std::int64_t>(Fin::kAuto)) return module.config.fin == static_cast<std::int64_t>(Fin::kFenced);
    return module.handler.active() && module.handler.is_running_here();
}

// RTS and CTS: somebody's transfer cannot begin before they are seen.
inline bool is_urgent(wire::Kind kind) noexcept { return module.handler.active() && (kind == wire::Kind::kRts || kind == wire::Kind::kCts); }

}  // namespace coop::pml
