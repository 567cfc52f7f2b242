// SPDX-License-Identifier: BSD-3-Clause
//
// When a request may be touched, and when its memory may be used again.
//
// References: whoever calls advance() of a request, or gives a pointer to it
// to a transport, holds one; so does the protocol itself until its last step.
// Who drops the last one finishes the request. (A callback of one thread may
// still be on its way out of advance() when another thread sees the end.)
//
// Fate: a request's memory goes back to its free list once the library is done
// with it AND the user has freed it, in either order, from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "module.h"

namespace coop::pml {

// A number that threads share, where there are threads: without them, a locked
// instruction less each time.
class Count {
public:
    void start(std::uint32_t n) noexcept { n_.store(n, std::memory_order_relaxed); }
    std::uint32_t now() const noexcept { return n_.load(std::memory_order_acquire); }

    // Both return the new value.
    std::uint32_t up() noexcept { return add(1); }
    std::uint32_t down() noexcept { return add(UINT32_MAX); }

private:
    std::uint32_t add(std::uint32_t n) noexcept {
        if (module.threads) return n_.fetch_add(n, std::memory_order_acq_rel) + n;
        const std::uint32_t sum = n_.load(std::memory_order_relaxed) + n;
        n_.store(sum, std::memory_order_relaxed);
        return sum;
    }

    std::atomic<std::uint32_t> n_{0};
};

class References {
public:
    void start(std::uint32_t n) noexcept { count_.start(n); }
    void take() noexcept { count_.up(); }
    [[nodiscard]] bool drop() noexcept { return count_.down() == 0; }  // true when it was the last

private:
    Count count_;
};

class Fate {
public:
    void start() noexcept { bits_.store(0, std::memory_order_relaxed); }
    void start_idle() noexcept { bits_.store(kDone, std::memory_order_relaxed); }  // persistent, not started yet

    // Each returns true when the other side was there first: recycle now.
    [[nodiscard]] bool library_done() noexcept { return add(kDone) & kFreed; }
    [[nodiscard]] bool user_freed() noexcept { return add(kFreed) & kDone; }

    bool is_done() const noexcept { return bits_.load(std::memory_order_acquire) & kDone; }
    bool is_freed() const noexcept { return bits_.load(std::memory_order_acquire) & kFreed; }

private:
    static constexpr std::uint32_t kDone = 1, kFreed = 2;

    std::uint32_t add(std::uint32_t bit) noexcept {
        if (module.threads) return bits_.fetch_or(bit, std::memory_order_acq_rel);
        const std::uint32_t bits = bits_.load(std::memory_order_relaxed);
        bits_.store(bits | bit, std::memory_order_relaxed);
        return bits;
    }

    std::atomic<std::uint32_t> bits_{kDone};
};

}  // namespace coop::pml
