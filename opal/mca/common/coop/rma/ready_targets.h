// SPDX-License-Identifier: BSD-3-Clause
//
// Which targets have been found ready in the access epoch that is open: the state machine of epochs (epoch.h) permits
// operations on them without a change of state, and they have posted, or are locked. The next operation on such a
// target needs one comparison instead of all that.
//
//     begin_epoch()                 fence, start, complete, lock_all, unlock_all: nobody is ready
//     add(target), remove(target)   found ready; its lock is asked for, or given back
//     has(target)                   before each operation
//
// Units: ranks. Memory: 8 bytes for each process. Threading: has() may run beside all other functions; what a thread
// did before add() comes before what another one does after has() said true. The others: the caller's lock. Errors: the
// constructor passes on std::bad_alloc; a target is a process of the window.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace coop::rma {

class ReadyTargets {
public:
    explicit ReadyTargets(std::uint32_t processes) : in_(std::make_unique<Epoch[]>(processes)) {}

    bool has(std::uint32_t target) const noexcept {
        return in_[target].load(std::memory_order_acquire) == epoch_.load(std::memory_order_relaxed);
    }
    void add(std::uint32_t target) noexcept {
        in_[target].store(epoch_.load(std::memory_order_relaxed), std::memory_order_release);
    }
    void remove(std::uint32_t target) noexcept { in_[target].store(kNever, std::memory_order_relaxed); }
    void begin_epoch() noexcept { epoch_.store(epoch_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

private:
    using Epoch = std::atomic<std::uint64_t>;
    static constexpr std::uint64_t kNever = 0;

    Epoch epoch_{kNever + 1};
    std::unique_ptr<Epoch[]> in_;  // by target: the epoch in which it has been found ready
};

}  // namespace coop::rma
