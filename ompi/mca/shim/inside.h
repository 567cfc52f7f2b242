// SPDX-License-Identifier: BSD-3-Clause
//
// The asynchronous handler of pml/coop (coop/async/handler.h), for components other than the PML: where it is active, it
// also continues non-blocking allgathers while the application computes. With MPI_THREAD_SINGLE, application and
// handler take turns, so every entry point of a component that uses transports is in such a turn.
#pragma once

#include "coop/async/handler.h"

namespace coop {

inline async::HandlerLink& handler() noexcept {
    static async::HandlerLink& link = async::process_handler();
    return link;
}

// Whether packets may arrive by interrupt.
inline bool has_interrupts() noexcept {
    const async::Handler* const active = handler().get();
    return active && active->active();
}

// RAII scope of an entry point. Its end requests the interrupts that outstanding calls need.
class Inside {
public:
    Inside() noexcept : handler_(handler().get()) {
        if (handler_) handler_->enter();
    }
    ~Inside() {
        if (handler_) handler_->leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    async::Handler* const handler_;
};

}  // namespace coop
