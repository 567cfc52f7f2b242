// SPDX-License-Identifier: BSD-3-Clause
//
// Progress while the application computes (parameter async): starts and stops the handler of coop/async/handler.h, and
// prevents it and the application from running in this PML at the same time.
//
// With MPI_THREAD_SINGLE Open MPI takes no locks, so the handler and the application take turns: every entry point
// for messages and communicators holds an Inside, every callback from a transport a Callback. MPI_Wait and MPI_Test are
// functions of Open MPI itself, called through a table; start_async() replaces the entries by functions that hold an
// Inside. Even when it is its turn, the handler leaves to the application what touches data that Open MPI shares
// between requests.
#pragma once

#include "coop/async/handler.h"
#include "module.h"

namespace coop::pml {

enum class Async : std::uint8_t { kOff, kInterrupt, kAuto };

void start_async() noexcept;
void stop_async() noexcept;

// True if completing `request` must be left to the application, because that calls back into other parts of Open MPI or
// frees memory that they own (`gives_back`).
inline bool ends_later(const ompi_request_t& request, bool gives_back) noexcept {
    return module.handler.active() && (request.req_complete_cb != nullptr || gives_back) &&
           module.handler.turn().on() && module.handler.is_running_here();
}

enum class Fin : std::uint8_t { kAuto, kAfter, kFenced };

// True if the FIN of a message that this process reads is to be posted together with the read.
inline bool posts_fin_with_read() noexcept {
    if (module.config.fin != static_cast<std::int64_t>(Fin::kAuto))
        return module.config.fin == static_cast<std::int64_t>(Fin::kFenced);
    return module.handler.active() && module.handler.is_running_here();
}

// An RTS and a CTS are urgent: a transfer cannot begin before the peer has seen them.
inline bool is_urgent(wire::Kind kind) noexcept {
    return module.handler.active() && (kind == wire::Kind::kRts || kind == wire::Kind::kCts);
}

}  // namespace coop::pml
