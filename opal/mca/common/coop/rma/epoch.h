// SPDX-License-Identifier: BSD-3-Clause
//
// The epochs of one process in one window: which calls MPI permits now, and what they
// change. (MPI 3.1, section 11.5)
//
//     access      kNone ── fence ──► kFence ── put, get, … ──► kFenceUsed
//                 kNone, kFence ── start ──► kStarted ── complete ──► kNone
//                 kNone, kFence ── lock_all ──► kLockAll ── unlock_all ──► kNone
//                 kNone, kFence ── lock ──► kLocks ── unlock of the last ──► kNone
//     exposure    kNone ── post ──► kPosted ── wait, or test that says true ──► kNone
//
// The two are independent, except that fence and free require that nothing is posted, and
// post ends kFence. A fence opens an epoch only if a communication call follows; so kFence
// permits every other synchronization, and kFenceUsed only another fence. kEpochRules has
// every state and call; the machine uses it, and the documentation shows it.
//
// The promises MPI_MODE_NOPRECEDE, NOSTORE and NOPUT are not relied upon, because a program
// may break them: a fence completes everything in any case.
// MPI_MODE_NOCHECK of a lock is remembered, since its unlock has nothing to release.
//
// Calls that are always permitted (sync, attach, detach, shared_query) are not in the table.
// Communication calls with a request have the same rules as those without, also in active epochs.
//
// Units: ranks of the window. Memory: O(ranks in a group or locked); after a release it is
// kept for the next ones. Threading: none; the caller holds the lock of the window. Errors:
// a verdict other than kProceed, and nothing has changed. If several apply, it is the first of
// kNoLocks, kBadRank, kNotSynchronized. start() and lock() may throw std::bad_alloc; then nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coop/base/export.h"

namespace coop::rma {

enum class Verdict : std::uint8_t {
    kProceed,
    kNotSynchronized,  // the state does not permit the call
    kBadRank,          // the target, or a rank of the group passed to start(), is not in the window
    kNoLocks,          // the window was created with the hint no_locks
};

enum class Access : std::uint8_t {
    kNone,
    kFence,      // after a fence; no communication yet
    kFenceUsed,  // communication since the last fence
    kStarted,
    kLockAll,
    kLocks,  // at least one target is locked
};
constexpr std::size_t kAccesses = 6;

enum class Exposure : std::uint8_t { kNone, kPosted };

enum class Call : std::uint8_t {
    kFence,
    kFenceNoSucceed,
    kStart,
    kComplete,
    kPost,
    kWait,  // and test
    kLock,
    kUnlock,
    kLockAll,
    kUnlockAll,
    kFlush,     // and flush_local
    kFlushAll,  // and flush_local_all
    kAccess,    // put, get, accumulate, …
    kFree,
};
constexpr std::size_t kCalls = 14;

// none, fence, fence used, started, lock_all, locks
COOP_EXPORT const char* name(Access state) noexcept;
// As in MPI, without MPI_Win_.
COOP_EXPORT const char* name(Call call) noexcept;

// --- rules ---

enum class If : std::uint8_t { kNever, kAlways, kInGroup, kLocked, kNotLocked };  // the target of the call

// Whether the call is permitted in one state of access, and the state after it. kLocks ends with the last target.
struct Cell {
    If condition = If::kNever;
    Access next{};  // valid unless kNever
};

enum class Needs : std::uint8_t { kNothing, kUnexposed, kPosted };  // of the exposure

struct EpochRule {
    Call call;
    Needs needs;
    Cell in[kAccesses];
};

namespace rules {
constexpr Cell kNo{};
constexpr Cell to(Access next, If condition = If::kAlways) { return {condition, next}; }
constexpr Cell kNone = to(Access::kNone), kFence = to(Access::kFence), kUsed = to(Access::kFenceUsed),
               kStarted = to(Access::kStarted), kAll = to(Access::kLockAll), kLocks = to(Access::kLocks);
constexpr Cell kInGroup = to(Access::kStarted, If::kInGroup), kLocked = to(Access::kLocks, If::kLocked),
               kNotLocked = to(Access::kLocks, If::kNotLocked);

constexpr EpochRule kEpochRules[] = {
    // in: kNone, kFence, kFenceUsed, kStarted, kLockAll, kLocks
    {Call::kFence, Needs::kUnexposed, {kFence, kFence, kFence, kNo, kNo, kNo}},
    {Call::kFenceNoSucceed, Needs::kUnexposed, {kNone, kNone, kNone, kNo, kNo, kNo}},
    {Call::kStart, Needs::kNothing, {kStarted, kStarted, kNo, kNo, kNo, kNo}},
    {Call::kComplete, Needs::kNothing, {kNo, kNo, kNo, kNone, kNo, kNo}},
    {Call::kPost, Needs::kUnexposed, {kNone, kNone, kNo, kStarted, kAll, kLocks}},
    {Call::kWait, Needs::kPosted, {kNone, kFence, kUsed, kStarted, kAll, kLocks}},
    {Call::kLock, Needs::kNothing, {kLocks, kLocks, kNo, kNo, kNo, kNotLocked}},
    {Call::kUnlock, Needs::kNothing, {kNo, kNo, kNo, kNo, kNo, kLocked}},
    {Call::kLockAll, Needs::kNothing, {kAll, kAll, kNo, kNo, kNo, kNo}},
    {Call::kUnlockAll, Needs::kNothing, {kNo, kNo, kNo, kNo, kNone, kNo}},
    {Call::kFlush, Needs::kNothing, {kNo, kNo, kNo, kNo, kAll, kLocked}},
    {Call::kFlushAll, Needs::kNothing, {kNo, kNo, kNo, kNo, kAll, kLocks}},
    {Call::kAccess, Needs::kNothing, {kNo, kUsed, kUsed, kInGroup, kAll, kLocked}},
    {Call::kFree, Needs::kUnexposed, {kNone, kFence, kNo, kNo, kNo, kNo}},
};
static_assert(std::size(kEpochRules) == kCalls);
static_assert([] {
    for (std::size_t i = 0; i < kCalls; ++i)
        if (kEpochRules[i].call != static_cast<Call>(i)) return false;
    return true;
}());
}  // namespace rules

constexpr const EpochRule& rule_of(Call call) noexcept { return rules::kEpochRules[static_cast<std::size_t>(call)]; }

// --- machine ---

struct FenceAsserts {
    bool no_precede = false;
    bool no_succeed = false;
};

class COOP_EXPORT Epochs {
public:
    Epochs(std::uint32_t processes, bool no_locks) : processes_(processes), no_locks_(no_locks) {}
    bool no_locks() const noexcept { return no_locks_; }

    // kProceed: the caller completes everything, and then synchronizes with all processes.
    Verdict fence(FenceAsserts asserts) noexcept {
        return enter(asserts.no_succeed ? Call::kFenceNoSucceed : Call::kFence);
    }

    // `group`: in any order, each rank once, not memory of group(). It may be empty.
    Verdict start(std::span<const std::uint32_t> group);
    Verdict complete() noexcept { return enter(Call::kComplete); }
    // The group of the last start, sorted. complete() does not clear it.
    std::span<const std::uint32_t> group() const noexcept { return group_; }

    Verdict post() noexcept;
    Verdict wait() const noexcept { return judge(Call::kWait); }
    // wait has ended, or test has said true.
    void exposure_over() noexcept { exposure_ = Exposure::kNone; }

    Verdict lock(std::uint32_t target, bool no_check);
    Verdict unlock(std::uint32_t target) noexcept;
    Verdict lock_all(bool no_check) noexcept;
    Verdict unlock_all() noexcept { return enter(Call::kUnlockAll); }
    // Whether the target was locked, by lock or lock_all, with MPI_MODE_NOCHECK. Call it before unlock().
    bool lock_had_no_check(std::uint32_t target) const noexcept;
    // Of the last lock_all; unlock_all() keeps it.
    bool all_no_check() const noexcept { return all_no_check_; }

    Verdict flush(std::uint32_t target) const noexcept { return judge(Call::kFlush, target); }
    Verdict flush_all() const noexcept { return judge(Call::kFlushAll); }

    // Before each communication call: may_access() only asks, for a call whose other arguments may be wrong. Neither
    // allocates. Constant time, and with start or lock logarithmic in their ranks.
    Verdict may_access(std::uint32_t target) const noexcept { return judge(Call::kAccess, target); }
    Verdict access(std::uint32_t target) noexcept { return enter(Call::kAccess, target); }

    Verdict free() const noexcept { return judge(Call::kFree); }

    Access access_state() const noexcept { return access_; }
    Exposure exposure() const noexcept { return exposure_; }

private:
    struct Lock {
        std::uint32_t target;
        bool no_check;
    };

    static const Cell& cell(Call call, Access state) noexcept {
        return rule_of(call).in[static_cast<std::size_t>(state)];
    }
    // For calls without a target, `target` is 0, a rank that always exists.
    Verdict judge(Call call, std::uint32_t target = 0) const noexcept {
        if (target >= processes_) return Verdict::kBadRank;
        if (!suits(rule_of(call).needs)) return Verdict::kNotSynchronized;
        return holds(cell(call, access_).condition, target) ? Verdict::kProceed : Verdict::kNotSynchronized;
    }
    Verdict enter(Call call, std::uint32_t target = 0) noexcept {
        const Verdict verdict = judge(call, target);
        if (verdict == Verdict::kProceed) access_ = cell(call, access_).next;
        return verdict;
    }
    bool suits(Needs needs) const noexcept {
        return needs == Needs::kNothing || (needs == Needs::kPosted) == (exposure_ == Exposure::kPosted);
    }
    bool holds(If condition, std::uint32_t target) const noexcept {
        switch (condition) {
        case If::kNever: return false;
        case If::kAlways: return true;
        case If::kInGroup: return is_in_group(target);
        case If::kLocked: return find(target) != nullptr;
        case If::kNotLocked: return find(target) == nullptr;
        }
        return false;
    }
    bool is_in_group(std::uint32_t target) const noexcept;
    const Lock* find(std::uint32_t target) const noexcept;  // null: not locked

    std::uint32_t processes_;
    bool no_locks_;
    bool all_no_check_ = false;
    Access access_ = Access::kNone;
    Exposure exposure_ = Exposure::kNone;
    std::vector<std::uint32_t> group_;  // sorted
    std::vector<Lock> locks_;           // sorted; empty unless kLocks
};

}  // namespace coop::rma
