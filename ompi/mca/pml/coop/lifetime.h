// SPDX-License-Identifier: BSD-3-Clause
//
// How long a request may be used, and when its memory is reused.
//
// References: every caller of advance() holds one, and so does every transport that has a pointer to the request, and
// the protocol until its last step. Dropping the last reference finishes the request. (A callback on one thread may
// still be returning from advance() when another thread takes the last step.)
//
// Fate: the memory of a request goes back to its free list once the library is done with it AND the user has freed it,
// in either order, on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "module.h"
#include "node.h"

namespace coop::pml {

// A counter that is atomic only if several threads may be inside MPI; without threads it saves a locked instruction per
// change.
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
    [[nodiscard]] bool drop() noexcept { return count_.down() == 0; }  // true if it was the last

private:
    Count count_;
};

class Fate {
public:
    void start() noexcept { bits_.store(0, std::memory_order_relaxed); }
    void start_idle() noexcept { bits_.store(kDone, std::memory_order_relaxed); }  // persistent, not started yet

    // Called by the library before and after it completes the request for the user. In between, the user may free the
    // request, and a completion callback may even start it again; library_done() then leaves it to the new round.
    void completing() noexcept {
        change([](std::uint32_t bits) { return bits | kCompleting; });
    }
    // Returns true if the user has freed the request: recycle it now.
    [[nodiscard]] bool library_done() noexcept {
        const std::uint32_t before = change(
            [](std::uint32_t bits) { return bits & kCompleting ? (bits & ~kCompleting) | kDone : bits; });
        return (before & kCompleting) && (before & kFreed);
    }

    // Called when the user frees the request. Returns true if the library is done with it: recycle it now.
    [[nodiscard]] bool user_freed() noexcept {
        return change([](std::uint32_t bits) { return bits | kFreed; }) & kDone;
    }
    // True if a persistent request may be started. If its last round is just completing, the new round takes it over.
    [[nodiscard]] bool may_start() noexcept {
        return change([](std::uint32_t bits) { return bits & ~kCompleting; }) & (kDone | kCompleting);
    }

    bool is_freed() const noexcept { return bits_.load(std::memory_order_acquire) & kFreed; }

private:
    static constexpr std::uint32_t kDone = 1, kFreed = 2, kCompleting = 4;

    // Applies `next` and returns the previous bits.
    template <class Next>
    std::uint32_t change(Next next) noexcept {
        std::uint32_t bits = bits_.load(std::memory_order_relaxed);
        if (!module.threads) bits_.store(next(bits), std::memory_order_relaxed);
        else
            while (!bits_.compare_exchange_weak(bits, next(bits), std::memory_order_acq_rel)) {
            }
        return bits;
    }

    std::atomic<std::uint32_t> bits_{kDone};
};

// Takes the steps of the request. If another caller is doing so already (another thread, or one further up this stack),
// leaves it a note, and that caller repeats its steps. `take_steps` returns true once, when the protocol is over.
template <class Request, class TakeSteps>
void drive(Request& r, TakeSteps take_steps) noexcept {
    if (!r.baton.take(module.threads)) return;
    bool over = false;
    do {
        over |= take_steps(r);
    } while (!r.baton.pass(module.threads));
    if (over) drop(r);
}

// Result of a step. kGoOn: take the next step. kWait: an event will call advance() again.
enum class Next { kGoOn, kWait };

// Drops a reference that we took ourselves. It is never the last, because our caller holds one.
template <class Request>
void drop_ours(Request& r) noexcept {
    static_cast<void>(r.references.drop());
}

// Retries the step in the progress function, when the transport may have resources again.
template <class Request>
Next wait_for_resources(Request& r) noexcept {
    r.references.take();
    if (!defer(r.deferred)) drop_ours(r);
    return Next::kWait;
}

// Continues a copy after other messages have had their turn; see go_on_copying() for `in_front`.
template <class Request>
Next wait_for_turn(Request& r, bool in_front) noexcept {
    r.references.take();
    if (!go_on_copying(r.deferred, in_front)) drop_ours(r);
    return Next::kWait;
}

// Subtracts from our load what it still counts for this message.
template <class Request>
void settle_load(Request& r) noexcept {
    if (r.load > 0) rndv::subtract_load(*my_board(), std::exchange(r.load, 0));
}

// Releases the id of a request whose rendezvous is over.
template <class Request>
void forget(HandleTable<Request>& table, Request& r) noexcept {
    if (!r.id) return;
    table.release(r.id, module.threads);
    r.id = 0;
    module.counters.down(Gauge::kRendezvous);
}

}  // namespace coop::pml
