// SPDX-License-Identifier: BSD-3-Clause
//
// Which origin may use which target in a phase, in which thread, and under which lock.
//
// Locks: no rank waits for one lock while it holds another that somebody may wait for. Either a thread holds one lock at a
// time, or (nested) all locks of the phase are shared. One rank may lock all targets while others lock single ones
// exclusively: these do not wait for it while they hold a lock. If several ranks do, and a component locks the targets one by
// one and serves a target in the order of requests, they may wait for each other in a circle. MPI does not say that this must
// not happen (MPICH 4.0.2 hangs), so such a plan is made only if asked for (crowded).
#include "planner.h"

namespace rma_storm {

// Loads and stores in the memory of others need what RMA calls do not: MPI_Win_start and a fence with asserts may return
// before the others have made theirs. Passive phases have barriers.
bool Planner::direct() const {
    if (round_.window.kind != WindowKind::kShared || !options_.has(Feature::kDirect)) return false;
    return passive() || (phase_.kind == EpochKind::kFence && !phase_.asserts);
}

bool Planner::draw_way(Way& way, bool exclusive) {
    for (int attempt = 0; attempt < 8; ++attempt) {
        way.origin = static_cast<int>(random_.below(static_cast<std::uint64_t>(round_.size)));
        way.target = static_cast<int>(random_.below(static_cast<std::uint64_t>(round_.size)));
        if (round_.window.bytes(way.target) != 0 && find_way(way, exclusive)) return true;
    }
    return false;
}

bool Planner::find_way(Way& way, bool exclusive) {
    const auto origin = static_cast<std::size_t>(way.origin), target = static_cast<std::size_t>(way.target);
    way.visit = -1;
    way.thread = static_cast<int>(random_.below(static_cast<std::uint64_t>(threads_)));
    if (phase_.kind == EpochKind::kPscw) return phase_.access[origin][target];
    if (phase_.kind != EpochKind::kLocks) return true;
    if (exclusive && (phase_.nested || all_[origin] || !options_.has(Feature::kExclusive))) return false;
    way.visit = find_visit(way, exclusive);
    way.thread = phase_.visits[static_cast<std::size_t>(way.visit)].thread;
    return true;
}

// A lock epoch of the origin on the target: one that is planned already, or a new one.
int Planner::find_visit(const Way& way, bool exclusive) {
    const bool all = all_[static_cast<std::size_t>(way.origin)];
    for (std::size_t i = 0; i < phase_.visits.size(); ++i) {
        const Visit& v = phase_.visits[i];
        if (v.origin != way.origin || (v.target != way.target && !all)) continue;
        if (exclusive && v.lock != LockKind::kExclusive) continue;
        if (all || phase_.nested || !random_.one_in(4)) return static_cast<int>(i);
    }
    Visit visit{way.origin, all ? -1 : way.target, 0, LockKind::kShared, false, random_.next()};
    // Two threads of a rank must not lock the same target.
    if (!all) visit.thread = way.target % threads_;
    if (all) visit.lock = LockKind::kAll;
    else if (exclusive || (!phase_.nested && options_.has(Feature::kExclusive) && random_.one_in(2)))
        visit.lock = LockKind::kExclusive;
    // Nobody holds an exclusive lock.
    if (phase_.nested) visit.no_check = options_.has(Feature::kAsserts) && random_.one_in(4);
    phase_.visits.push_back(visit);
    return static_cast<int>(phase_.visits.size()) - 1;
}

}  // namespace rma_storm
