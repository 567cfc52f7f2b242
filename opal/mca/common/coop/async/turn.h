// SPDX-License-Identifier: BSD-3-Clause
//
// A biased lock for the progress engine. Either the application runs the engine, by polling, or the handler's
// thread does, after an interrupt has woken it ("hybrid communication progress", RDMA Read Based Rendezvous,
// section 4.3); never both, even if Open MPI takes no locks (MPI_THREAD_SINGLE).
//
//     application: enter() … leave()           around each call of the library
//     handler:     try_take() … give_back()    after each interrupt
//
// The application pays a store and a load of its own memory, without locked instructions or fences. The handler
// pays for both sides: membarrier(2) makes the kernel execute a barrier on every running thread of the process.
// If the kernel does not support it, enter() executes a fence itself.
//
// Threading: enter() and leave() nest and may be called by one thread at a time (as MPI_THREAD_SERIALIZED
// allows); in the handler's thread they do nothing. Errors: none.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "coop/base/export.h"

namespace coop::async {

class COOP_EXPORT Turn {
public:
    // Call these two while the handler's thread does not run, and outside of enter() … leave().
    void switch_on() noexcept;
    void switch_off() noexcept { on_ = false; }
    bool on() const noexcept { return on_; }
    // The handler's thread calls this before its first try_take().
    void this_is_the_handler() noexcept { handler_.store(pthread_self(), std::memory_order_relaxed); }
    // Whether the caller is the handler and holds the lock. Calls pthread_self() only if the handler holds it.
    bool is_handler() const noexcept {
        return handler_has_it_.load(std::memory_order_relaxed) &&
               pthread_equal(pthread_self(), handler_.load(std::memory_order_relaxed));
    }

    // Waits until the handler does not hold the lock. Returns true if the call is not nested.
    bool enter() noexcept {
        if (is_handler()) return false;
        const std::uint32_t before = depth_.load(std::memory_order_relaxed);
        depth_.store(before + 1, std::memory_order_relaxed);
        if (before > 0) return false;
        if (heavy_) std::atomic_thread_fence(std::memory_order_seq_cst);
        else std::atomic_signal_fence(std::memory_order_seq_cst);
        if (handler_has_it_.load(std::memory_order_acquire)) [[unlikely]]
            wait();
        return true;
    }
    // Whether the next leave() is that of the outermost call.
    bool is_outermost() const noexcept { return depth_.load(std::memory_order_relaxed) == 1 && !is_handler(); }
    // Returns true if this was the outermost leave().
    bool leave() noexcept {
        if (is_handler()) return false;
        const std::uint32_t depth = depth_.load(std::memory_order_relaxed) - 1;
        depth_.store(depth, std::memory_order_release);
        return depth == 0;
    }

    // Returns false if the application is inside, or waits to enter.
    [[nodiscard]] bool try_take() noexcept;
    bool is_waited_for() const noexcept { return waiting_.load(std::memory_order_relaxed); }
    void give_back() noexcept { handler_has_it_.store(false, std::memory_order_release); }

private:
    void wait() noexcept;
    void barrier() const noexcept;

    bool on_ = false;
    bool heavy_ = true;                    // membarrier(2) is missing: the application executes fences
    std::atomic<std::uint32_t> depth_{0};  // nesting of the application's calls; 0: outside
    std::atomic<bool> handler_has_it_{false};
    std::atomic<bool> waiting_{false};  // the application waits for give_back()
    std::atomic<pthread_t> handler_{};
};

}  // namespace coop::async
