// SPDX-License-Identifier: BSD-3-Clause
#include "coop/async/turn.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coop::async {
namespace {

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void Turn::switch_on() noexcept {
    heavy_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0;
    depth_.store(0, std::memory_order_relaxed);
    handler_has_it_.store(false, std::memory_order_relaxed);
    handler_.store({}, std::memory_order_relaxed);
    on_ = true;
}

void Turn::barrier() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!heavy_) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

// After the barrier, either the application sees handler_has_it_, or the handler sees depth_ > 0.
bool Turn::try_take() noexcept {
    // A waiting application goes first. This check also avoids the barrier if the application is inside.
    if (waiting_.load(std::memory_order_relaxed) || depth_.load(std::memory_order_relaxed) > 0) return false;
    handler_has_it_.store(true, std::memory_order_relaxed);
    barrier();
    if (depth_.load(std::memory_order_acquire) == 0) return true;
    give_back();
    return false;
}

// The handler holds the lock for a short time only, but its thread may have been descheduled.
void Turn::wait() noexcept {
    constexpr unsigned kSpins = 100;
    waiting_.store(true, std::memory_order_relaxed);
    do {
        depth_.store(0, std::memory_order_release);
        for (unsigned spins = 0; handler_has_it_.load(std::memory_order_acquire); ++spins)
            if (spins > kSpins) sched_yield();
        depth_.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } while (handler_has_it_.load(std::memory_order_acquire));
    waiting_.store(false, std::memory_order_relaxed);
}

}  // namespace coop::async
