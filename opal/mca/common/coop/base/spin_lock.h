// SPDX-License-Identifier: BSD-3-Clause
//
// A lock for short critical sections, at most a copy of a medium message, SpinGuard, which holds it, and Baton, which lets
// one thread at a time drive a state machine without blocking the others.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>  // std::lock_guard

#include "coop/base/relax.h"

namespace coop {

class SpinLock {
public:
    void lock() noexcept {
        while (flag_.exchange(true, std::memory_order_acquire)) wait();
    }
    void unlock() noexcept { flag_.store(false, std::memory_order_release); }

private:
    // If its owner has lost its CPU, perhaps to this thread, it takes a long time until it is free.
    void wait() noexcept {
        constexpr unsigned kPatience = 100;
        for (unsigned looks = 1; flag_.load(std::memory_order_relaxed); ++looks)
            if (looks % kPatience != 0) relax();
            else sched_yield();
    }

    std::atomic<bool> flag_{false};
};

// Holds the lock, unless `threads` is false: then no other thread uses what the lock protects.
class SpinGuard {
public:
    SpinGuard(SpinLock& lock, bool threads) noexcept : lock_(threads ? &lock : nullptr) {
        if (lock_) lock_->lock();
    }
    ~SpinGuard() {
        if (lock_) lock_->unlock();
    }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

private:
    SpinLock* lock_;
};

// The thread that takes the baton runs. A thread that finds it taken leaves a note, and the runner repeats its
// step. This works across threads and for re-entry: a transport may call back from within a call that we make
// to it.
//
//     if (!baton.take()) return;            // the runner will handle our event
//     do { step(); } while (!baton.pass());
//
// With `threads` false it handles re-entry only, and avoids locked instructions.
class Baton {
public:
    bool take(bool threads = true) noexcept {
        if (threads) return notes_.fetch_add(1, std::memory_order_acq_rel) == 0;
        const std::uint32_t notes = notes_.load(std::memory_order_relaxed);
        notes_.store(notes + 1, std::memory_order_relaxed);
        return notes == 0;
    }

    // Returns true and frees the baton if no note was left since the last check. Otherwise clears the notes,
    // and the caller must run again.
    bool pass(bool threads = true) noexcept {
        std::uint32_t seen = 1;
        if (!threads) {
            seen = notes_.load(std::memory_order_relaxed);
            notes_.store(seen == 1 ? 0 : 1, std::memory_order_relaxed);
            return seen == 1;
        }
        if (notes_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel)) return true;
        // exchange, not store: reading the notes makes the events of their writers visible
        notes_.exchange(1, std::memory_order_acq_rel);
        return false;
    }

    void reset() noexcept { notes_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<std::uint32_t> notes_{0};
};

}  // namespace coop
