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
#include <utility>

#include "module.h"
#include "node.h"

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

    // The library: before it completes the request for the user, and after.
    // From in between on the user may free it, and a completion callback may
    // even start it again: then what follows is the new round's business.
    void completing() noexcept {
        change([](std::uint32_t bits) { return bits | kCompleting; });
    }
    // True when the user has freed it: recycle now.
    [[nodiscard]] bool library_done() noexcept {
        const std::uint32_t before = change([](std::uint32_t bits) { return bits & kCompleting ? (bits & ~kCompleting) | kDone : bits; });
        return (before & kCompleting) && (before & kFreed);
    }

    // The user. True when the library was done: recycle now.
    [[nodiscard]] bool user_freed() noexcept {
        return change([](std::uint32_t bits) { return bits | kFreed; }) & kDone;
    }
    // Whether a persistent request may be started; takes it from a completion under way.
    [[nodiscard]] bool may_start() noexcept {
        return change([](std::uint32_t bits) { return bits & ~kCompleting; }) & (kDone | kCompleting);
    }

    bool is_freed() const noexcept { return bits_.load(std::memory_order_acquire) & kFreed; }

private:
    static constexpr std::uint32_t kDone = 1, kFreed = 2, kCompleting = 4;

    // Applies `next` and returns the bits before it.
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

// Lets whoever comes first take the request's steps, for all who come meanwhile.
// `take_steps` returns true once, when the protocol is over.
template <class Request, class TakeSteps>
void drive(Request& r, TakeSteps take_steps) noexcept {
    if (!r.baton.take(module.threads)) return;
    bool over = false;
    do {
        over |= take_steps(r);
    } while (!r.baton.pass(module.threads));
    if (over) drop(r);
}

// What a step says: kGoOn: the step has changed, take the next.
enum class Next { kGoOn, kWait };

// Gives back a reference that we took ourselves: never the last, our caller holds one.
template <class Request>
void drop_ours(Request& r) noexcept {
    static_cast<void>(r.references.drop());
}

// Retries the step when the transport may have resources again.
template <class Request>
Next wait_for_resources(Request& r) noexcept {
    r.references.take();
    if (!defer(r.deferred)) drop_ours(r);
    return Next::kWait;
}

// Goes on with a copy once others have had their turn.
template <class Request>
Next wait_for_turn(Request& r, bool in_front) noexcept {
    r.references.take();
    if (!go_on_copying(r.deferred, in_front)) drop_ours(r);
    return Next::kWait;
}

// What is still on our load for this message comes off it.
template <class Request>
void settle_load(Request& r) noexcept {
    if (r.load > 0) rndv::subtract_load(*my_board(), std::exchange(r.load, 0));
}

// Takes a request's id out of the table: its rendezvous is over.
template <class Request>
void forget(HandleTable<Request>& table, Request& r) noexcept {
    if (!r.id) return;
    table.release(r.id, module.threads);
    r.id = 0;
    module.counters.down(Gauge::kRendezvous);
}

}  // namespace coop::pml
