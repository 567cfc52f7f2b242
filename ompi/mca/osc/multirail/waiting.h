// SPDX-License-Identifier: BSD-3-Clause
//
// How a thread waits inside of a window.
#pragma once

#include "window.h"

namespace coop::osc {

// Lets transports progress until done() says true, which is called with the mutex.
template <class F>
void Window::wait_for(Lock& lock, F done) {
    while (!done()) {
        ++rounds_;
        lock.unlock();
        opal_progress();
        lock.lock();
    }
}

}  // namespace coop::osc
