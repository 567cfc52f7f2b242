// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rma/epoch.h"

#include <algorithm>

namespace coop::rma {

const char* name(Access state) noexcept {
    switch (state) {
    case Access::kNone: return "none";
    case Access::kFence: return "fence";
    case Access::kFenceUsed: return "fence used";
    case Access::kStarted: return "started";
    case Access::kLockAll: return "lock_all";
    case Access::kLocks: return "locks";
    }
    return "?";
}

const char* name(Call call) noexcept {
    switch (call) {
    case Call::kFence: return "fence";
    case Call::kFenceNoSucceed: return "fence with MPI_MODE_NOSUCCEED";
    case Call::kStart: return "start";
    case Call::kComplete: return "complete";
    case Call::kPost: return "post";
    case Call::kWait: return "wait";
    case Call::kLock: return "lock";
    case Call::kUnlock: return "unlock";
    case Call::kLockAll: return "lock_all";
    case Call::kUnlockAll: return "unlock_all";
    case Call::kFlush: return "flush";
    case Call::kFlushAll: return "flush_all";
    case Call::kAccess: return "communication";
    case Call::kFree: return "free";
    }
    return "?";
}

Verdict Epochs::start(std::span<const std::uint32_t> group) {
    for (const std::uint32_t rank : group)
        if (rank >= processes_) return Verdict::kBadRank;
    const Verdict verdict = judge(Call::kStart);
    if (verdict != Verdict::kProceed) return verdict;
    group_.reserve(group.size());  // may throw; the old group is kept then
    group_.assign(group.begin(), group.end());
    std::sort(group_.begin(), group_.end());
    return enter(Call::kStart);
}

Verdict Epochs::post() noexcept {
    const Verdict verdict = enter(Call::kPost);
    if (verdict != Verdict::kProceed) return verdict;
    exposure_ = Exposure::kPosted;
    return verdict;
}

Verdict Epochs::lock(std::uint32_t target, bool no_check) {
    if (no_locks_) return Verdict::kNoLocks;
    const Verdict verdict = judge(Call::kLock, target);
    if (verdict != Verdict::kProceed) return verdict;
    const auto place = std::ranges::lower_bound(locks_, target, {}, &Lock::target);
    locks_.insert(place, {target, no_check});
    access_ = cell(Call::kLock, access_).next;
    return verdict;
}

Verdict Epochs::unlock(std::uint32_t target) noexcept {
    const Verdict verdict = enter(Call::kUnlock, target);
    if (verdict != Verdict::kProceed) return verdict;
    locks_.erase(locks_.begin() + (find(target) - locks_.data()));
    if (locks_.empty()) access_ = Access::kNone;
    return verdict;
}

Verdict Epochs::lock_all(bool no_check) noexcept {
    if (no_locks_) return Verdict::kNoLocks;
    const Verdict verdict = enter(Call::kLockAll);
    if (verdict == Verdict::kProceed) all_no_check_ = no_check;
    return verdict;
}

bool Epochs::lock_had_no_check(std::uint32_t target) const noexcept {
    if (access_ == Access::kLockAll) return all_no_check_;
    const Lock* lock = find(target);
    return lock && lock->no_check;
}

bool Epochs::is_in_group(std::uint32_t target) const noexcept { return std::ranges::binary_search(group_, target); }

const Epochs::Lock* Epochs::find(std::uint32_t target) const noexcept {
    const auto place = std::ranges::lower_bound(locks_, target, {}, &Lock::target);
    return place != locks_.end() && place->target == target ? &*place : nullptr;
}

}  // namespace coop::rma
