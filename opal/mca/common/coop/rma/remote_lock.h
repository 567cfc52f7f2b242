// SPDX-License-Identifier: BSD-3-Clause
//
// The lock of one process's part of a window, in a word that only the HCA of that process changes, so that others can
// take it without the process's CPU. This class says which atomic operation comes next; the caller carries it out.
//
//     bit 63          somebody holds the lock exclusively
//     bits 32 … 62    requests for an exclusive lock that wait
//     bits  0 … 31    shared holders, and those that become holders when the exclusive one leaves
//
//     shared       add 1. Free: held. Held exclusively: read until it is not.
//                  An exclusive request waits: subtract 1, let it pass, and add 1 again.
//     exclusive    compare-and-swap 0 by bit 63. If it was not 0: add a waiting request, and swap when nobody holds it.
//
// A shared request lets an exclusive one pass only once, and gives up after kPatience reads: the exclusive request may
// be waiting for a process that waits for this shared lock. A request that overtakes does not let it pass at all;
// processes that hold other locks of the window use it (lock_queue.h says why).
//
// Units: values of the word. Memory: a few words. Threading: none. Errors: none.
#pragma once

#include <cstdint>

#include "coop/base/export.h"
#include "coop/rma/lock_queue.h"

namespace coop::rma {

struct AtomicStep {
    enum class What : std::uint8_t {
        kAdd,   // `operand`; 0 only reads
        kSwap,  // `value` if the word is `operand`
        kHeld,  // no operation: the lock is held
    };
    What what = What::kHeld;
    bool pause = false;  // somebody holds the lock: wait a little before the operation
    std::uint64_t operand = 0;
    std::uint64_t value = 0;
    bool operator==(const AtomicStep&) const = default;
};

class RemoteLock {
public:
    static constexpr std::uint64_t kExclusive = std::uint64_t{1} << 63;
    static constexpr std::uint64_t kWaiting = std::uint64_t{1} << 32;
    static constexpr std::uint32_t kPatience = 32;

    RemoteLock(LockType type, bool overtakes) noexcept
        : state_(type == LockType::kExclusive ? State::kTry : State::kCount), polite_(!overtakes) {}

    COOP_EXPORT AtomicStep first() const noexcept;
    // The last step found `old` in the word.
    COOP_EXPORT AtomicStep next(std::uint64_t old) noexcept;
    // What a holder adds to the word to release the lock.
    static constexpr std::uint64_t release(LockType type) noexcept {
        return type == LockType::kExclusive ? kExclusive : ~std::uint64_t{0};
    }

private:
    enum class State : std::uint8_t {
        kCount,     // shared: it has added itself
        kBehind,    // … and waits until the exclusive holder leaves
        kBackOut,   // … has subtracted itself again
        kLetPass,   // … and lets an exclusive request pass
        kTry,       // exclusive: it has tried a free lock
        kAnnounce,  // … has added itself to those that wait
        kWait,      // … reads until the lock is free
        kEnter,     // … has tried to take it
        kHeld,
    };
    static constexpr bool is_exclusive(std::uint64_t word) noexcept { return (word & kExclusive) != 0; }
    static constexpr std::uint64_t waiting(std::uint64_t word) noexcept { return (word & ~kExclusive) / kWaiting; }
    static constexpr bool is_free(std::uint64_t word) noexcept { return (word & (kExclusive | (kWaiting - 1))) == 0; }
    AtomicStep held() noexcept;
    AtomicStep count() noexcept;
    AtomicStep enter_or_wait(std::uint64_t word) noexcept;

    State state_;
    bool polite_;
    std::uint32_t reads_ = 0;
    std::uint64_t expected_ = 0;
};

// Whether the only transfer to a process since its lock was taken is one that the release of the lock follows in order. Several
// threads may begin transfers, and one may report that its transfer is in order only after others have released the lock and
// taken it again. So transfers have numbers that are never used twice.
class TransfersUnderLock {
public:
    using Number = std::uint64_t;

    // The lock has been taken.
    void begin_epoch() noexcept { before_ = begun_; }
    Number begin() noexcept { return ++begun_; }
    // None has begun in this epoch.
    bool none() const noexcept { return begun_ == before_; }
    // The transport has got the transfer, and executes the release of the lock after it.
    void is_in_order(Number transfer) noexcept { in_order_ = transfer; }
    // One has begun in this epoch, and it is in order with the release.
    bool only_one_in_order() const noexcept { return begun_ - before_ == 1 && in_order_ == begun_; }

private:
    Number begun_ = 0, before_ = 0, in_order_ = 0;
};

}  // namespace coop::rma
