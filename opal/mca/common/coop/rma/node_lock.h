// SPDX-License-Identifier: BSD-3-Clause
//
// The lock of one process's part of a window, in a word that all processes of a node share: the counterpart of
// lock_queue.h without messages, and of remote_lock.h without HCAs.
//
//     bits 48 … 63    the next ticket
//     bits 32 … 47    whose turn it is: a ticket; the next one: nobody waits
//     bit 31          somebody holds the lock exclusively
//     bits  0 … 30    shared holders
//
// As in a bakery. Where nobody waits and no holder excludes the request, it takes the lock at once, in one atomic step.
// Otherwise it draws a ticket, waits for its turn, then until no holder excludes it, and takes the lock and passes the
// turn on in one step. So requests are granted in their order. One that overtakes draws no ticket, and waits for an
// exclusive holder only; processes that hold other locks of the window ask so (lock_queue.h says why).
//
// Units: tickets. Limit: 65535 processes that wait for one lock. Threading: any process or thread; a request is of one
// thread at a time. What a holder did before release() comes before what later holders do. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "coop/rma/lock_queue.h"

namespace coop::rma {

class NodeLock {
public:
    // A process keeps it for its next request: it guesses from `seen` what is in the word, which saves a look at it.
    struct Request {
        LockType type = LockType::kShared;
        bool overtakes = false;
        std::uint16_t ticket = 0;  // valid if it waits and does not overtake
        std::uint64_t seen = 0;    // the word as this process left it last
    };

    // True: the request holds the lock. False: it waits; call take() until that says true.
    bool ask(Request& request) noexcept {
        for (std::uint64_t word = without_holders(request.seen);;) {
            const bool takes = !excludes(word, request.type) && (request.overtakes || nobody_waits(word));
            if (!takes && request.overtakes) return false;  // the word was read: a guess has no holders
            if (!word_.compare_exchange_weak(word, word + (takes ? share_of(request.type) : kTicket),
                                             std::memory_order_acquire, std::memory_order_relaxed))
                continue;
            request.seen = word;
            request.ticket = next(word);
            return takes;
        }
    }
    bool take(Request& request) noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed);
        while ((request.overtakes || turn(word) == request.ticket) && !excludes(word, request.type)) {
            const std::uint64_t held = word + share_of(request.type);
            if (!word_.compare_exchange_weak(word, request.overtakes ? held : with_next_turn(held),
                                             std::memory_order_acquire, std::memory_order_relaxed))
                continue;
            request.seen = request.overtakes ? word : with_next_turn(word);
            return true;
        }
        return false;
    }
    // Precondition: a request of this type holds the lock.
    void release(LockType type) noexcept { word_.fetch_sub(share_of(type), std::memory_order_release); }

private:
    static constexpr std::uint64_t kExclusive = std::uint64_t{1} << 31, kHolders = 2 * kExclusive - 1;
    static constexpr std::uint64_t kTurn = std::uint64_t{1} << 32, kTurns = std::uint64_t{0xffff} << 32;
    static constexpr std::uint64_t kTicket = std::uint64_t{1} << 48;  // the highest bits: it may overflow

    static constexpr std::uint64_t share_of(LockType type) noexcept {
        return type == LockType::kExclusive ? kExclusive : 1;
    }
    static constexpr bool excludes(std::uint64_t word, LockType type) noexcept {
        return (word & (type == LockType::kExclusive ? kHolders : kExclusive)) != 0;
    }
    static constexpr std::uint16_t next(std::uint64_t word) noexcept { return static_cast<std::uint16_t>(word >> 48); }
    static constexpr std::uint16_t turn(std::uint64_t word) noexcept { return static_cast<std::uint16_t>(word >> 32); }
    static constexpr bool nobody_waits(std::uint64_t word) noexcept { return next(word) == turn(word); }
    static constexpr std::uint64_t with_next_turn(std::uint64_t word) noexcept {
        return (word & ~kTurns) | ((word + kTurn) & kTurns);
    }
    static constexpr std::uint64_t without_holders(std::uint64_t word) noexcept { return word & ~kHolders; }

    std::atomic<std::uint64_t> word_{0};
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

}  // namespace coop::rma
