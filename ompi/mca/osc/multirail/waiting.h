// SPDX-License-Identifier: BSD-3-Clause
//
// How a thread waits inside of a window.
#pragma once

#include "coop/base/relax.h"
#include "window.h"

namespace coop::osc {

// Spins for a moment until done() returns true, which depends on memory that another process of the node writes.
template <class F>
bool soon(F done) {
    constexpr int kLooks = 100;
    for (int i = 0; i < kLooks; ++i) {
        if (done()) return true;
        relax();
    }
    return false;
}

// In passive epochs of HCAs, threads wait for one transport, and let it alone progress. Other transports, and what else
// Open MPI progresses, get one round of so many.
constexpr std::uint32_t kRoundsOfRdma = 8;

// Lets transports progress until done() returns true. done() is called with the mutex held.
template <class F>
void Window::wait_for(Lock& lock, F done) {
    while (!(all_mapped_ ? soon(done) : done())) {
        const bool rdma_alone = by_hcas() && ++rdma_rounds_ % kRoundsOfRdma != 0;
        ++rounds_;
        lock.unlock();
        if (rdma_alone) rdma_->btl_component->btl_progress();
        else opal_progress();
        lock.lock();
    }
}

}  // namespace coop::osc
