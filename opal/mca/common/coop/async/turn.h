// SPDX-License-Identifier: BSD-3-Clause
//
// Whose turn it is to run the progress engine: the application's, which polls,
// or the handler's, which an interrupt has woken ("hybrid communication
// progress", RDMA Read Based Rendezvous, section 4.3). Never both, also where
// Open MPI takes no locks (MPI_THREAD_SINGLE).
//
//     application: enter() … leave()       as often as it calls the library
//     handler:     try_take() … give_back()    as often as it is interrupted
//
// The lock is biased: the application pays a store and a load of its own memory,
// no locked instruction and no fence; the handler pays for both, by a barrier
// that the kernel has every thread of the process execute (membarrier(2)).
// Where the kernel has none, enter() executes a fence itself.
//
// Threading: enter() and leave() nest, and belong to one thread at a time (what
// MPI_THREAD_SERIALIZED allows); called by the handler's thread they do nothing.
// Errors: none.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "coop/base/export.h"

namespace coop::async {

class COOP_EXPORT Turn {
public:
    // Before the handler's thread is there, and after it has ended; outside of any turn.
    void switch_on() noexcept;
    void switch_off() noexcept { on_ = false; }
    bool on() const noexcept { return on_; }
    // Of the handler's thread, before its first turn.
    void this_is_the_handler() noexcept { handler_.store(pthread_self(), std::memory_order_relaxed); }
    // Whether the caller is the handler, in its turn. (Who asks costs a call: most often nobody has to ask.)
    bool is_handler() const noexcept {
        return handler_has_it_.load(std::memory_order_relaxed) && pthread_equal(pthread_self(), handler_.load(std::memory_order_relaxed));
    }

    // Returns when it is the application's turn. True: from outside, not nested.
    bool enter() noexcept {
        if (is_handler()) return false;
        const std::uint32_t before = depth_.load(std::memory_order_relaxed);
        depth_.store(before + 1, std::memory_order_relaxed);
        if (before > 0) return false;
        if (heavy_) std::atomic_thread_fence(std::memory_order_seq_cst);
        else std::atomic_signal_fence(std::memory_order_seq_cst);
        if (handler_has_it_.load(std::memory_order_acquire)) [[unlikely]] wait();
        return true;
    }
    // Whether this is the last leave(): then the application is about to be outside.
    bool is_outermost() const noexcept { return depth_.load(std::memory_order_relaxed) == 1 && !is_handler(); }
    // True: the application is outside now.
    bool leave() noexcept {
        if (is_handler()) return false;
        const std::uint32_t depth = depth_.load(std::memory_order_relaxed) - 1;
        depth_.store(depth, std::memory_order_release);
        return depth == 0;
    }

    // False: the application is inside.
    [[nodiscard]] bool try_take() noexcept;
    bool is_waited_for() const noexcept { return waiting_.load(std::memory_order_relaxed); }
    void give_back() noexcept { handler_has_it_.store(false, std::memory_order_release); }

private:
    void wait() noexcept;
    void barrier() const noexcept;

    bool on_ = false;
    bool heavy_ = true;        // no membarrier(2): the application executes fences
    std::atomic<std::uint32_t> depth_{0};  // the application's: 0, outside
    std::atomic<bool> handler_has_it_{false};
    std::atomic<bool> waiting_{false};  // the application, for the end of the handler's turn
    std::atomic<pthread_t> handler_{};
};

}  // namespace coop::async
