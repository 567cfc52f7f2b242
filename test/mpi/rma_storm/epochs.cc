// SPDX-License-Identifier: BSD-3-Clause
//
// Opens and closes the epochs of a phase, and what belongs to it in MPI's memory model: a rank's own stores take effect
// before others use its window, and it compares its window after the operations of all others.
#include <algorithm>

#include "round_run.h"

namespace rma_storm {

bool RoundRun::stored_in(std::size_t index) const {
    if (index == 0) return true;  // the initial content
    const Phase& p = round_.phases[index];
    return std::any_of(p.areas.begin(), p.areas.end(),
                       [&](const Area& a) { return a.fresh && a.target == arena_.rank; });
}

bool RoundRun::written_in(std::size_t index) const {
    const Phase& p = round_.phases[index];
    return std::any_of(p.operations.begin(), p.operations.end(), [&](const Operation& o) {
        return o.target == arena_.rank &&
               (o.has_operand() || o.call == Call::kGetAccumulate || o.call == Call::kFetchAndOp);
    });
}

void RoundRun::store_fresh() {
    if (index_ == 0) {
        const Bytes content = initial_content(round_, arena_.rank);
        for (const Segment& s : round_.window.segments[static_cast<std::size_t>(arena_.rank)])
            if (s.bytes != 0) window_.store(s.at, content.data() + s.at, s.bytes);
    }
    for (const Area& a : phase().areas) {
        if (!a.fresh || a.target != arena_.rank) continue;
        const std::size_t elements = a.bytes / bytes_of(a.element);
        Bytes content(elements * bytes_of(a.element));
        fill(a.element, a.content, a.key, elements, content.data());
        window_.store(a.at, content.data(), content.size());
    }
}

void RoundRun::open() {
    state().now("opening the epoch");
    switch (phase().kind) {
    case EpochKind::kFence: return open_fence();
    case EpochKind::kPscw: return open_pscw();
    case EpochKind::kLocks:
    case EpochKind::kLockAll: return open_passive();
    }
}

void RoundRun::close() {
    state().now("closing the epoch");
    switch (phase().kind) {
    case EpochKind::kFence: return close_fence();
    case EpochKind::kPscw: return close_pscw();
    case EpochKind::kLocks: return barrier();
    case EpochKind::kLockAll: return close_lock_all();
    }
}

// What can be asserted of this rank before phase `next` begins. `stored`: since the last synchronization.
int RoundRun::fence_asserts(std::size_t next, bool stored) const {
    int asserts = 0;
    // Neighbours store into shared windows.
    if (!stored && round_.window.kind != WindowKind::kShared) asserts |= MPI_MODE_NOSTORE;
    if (next < round_.phases.size() && !written_in(next)) asserts |= MPI_MODE_NOPUT;
    return asserts;
}

void RoundRun::open_fence() {
    store_fresh();
    if (!phase().opens && !phase().stores) return;  // the fence behind the last phase opened it
    int asserts = phase().asserts ? fence_asserts(index_, stored_in(index_)) : 0;
    if (phase().opens && phase().asserts) asserts |= MPI_MODE_NOPRECEDE;
    must(MPI_Win_fence(asserts, win()), "MPI_Win_fence");
}

void RoundRun::close_fence() {
    int asserts = 0;
    const bool again = !phase().closes && round_.phases[index_ + 1].stores;
    if (phase().asserts && phase().closes) asserts = MPI_MODE_NOSUCCEED | fence_asserts(round_.phases.size(), false);
    else if (phase().asserts && !again) asserts = fence_asserts(index_ + 1, false);
    must(MPI_Win_fence(asserts, win()), "MPI_Win_fence");
}

MPI_Group RoundRun::group(bool access) const {
    std::vector<int> ranks;
    for (int other = 0; other < round_.size; ++other) {
        const int origin = access ? arena_.rank : other, target = access ? other : arena_.rank;
        if (phase().access[static_cast<std::size_t>(origin)][static_cast<std::size_t>(target)]) ranks.push_back(other);
    }
    // Any order is allowed.
    for (std::size_t i = ranks.size(); i > 1; --i)
        std::swap(ranks[i - 1], ranks[pattern::mix(round_.key + i + index_) % i]);
    MPI_Group all, some;
    MPI_Comm_group(arena_.comm, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Group_free(&all);
    return some;
}

void RoundRun::open_pscw() {
    store_fresh();
    MPI_Group targets = group(true), origins = group(false);
    int asserts = phase().no_check ? MPI_MODE_NOCHECK : 0;
    if (phase().asserts) asserts |= fence_asserts(index_, stored_in(index_));
    state().now("in MPI_Win_post");
    must(MPI_Win_post(origins, asserts, win()), "MPI_Win_post");
    if (phase().no_check) barrier();  // all posts are done when one starts
    state().now("in MPI_Win_start");
    must(MPI_Win_start(targets, phase().no_check ? MPI_MODE_NOCHECK : 0, win()), "MPI_Win_start");
    MPI_Group_free(&targets);
    MPI_Group_free(&origins);
}

void RoundRun::close_pscw() {
    state().now("in MPI_Win_complete");
    must(MPI_Win_complete(win()), "MPI_Win_complete");
    state().now("in MPI_Win_wait");
    if (random_.one_in(2)) {
        must(MPI_Win_wait(win()), "MPI_Win_wait");
        return;
    }
    for (int flag = 0; flag == 0;) must(MPI_Win_test(win(), &flag), "MPI_Win_test");
}

// A rank stores under a lock of its own window, or between two MPI_Win_sync of an epoch.
void RoundRun::open_passive() {
    if (!phase().opens) {
        if (!phase().stores) return;
        store_fresh();
        must(MPI_Win_sync(win()), "MPI_Win_sync");
        barrier();
        must(MPI_Win_sync(win()), "MPI_Win_sync");
        return;
    }
    if (stored_in(index_)) {
        must(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, arena_.rank, 0, win()), "MPI_Win_lock");
        store_fresh();
        must(MPI_Win_sync(win()), "MPI_Win_sync");
        must(MPI_Win_unlock(arena_.rank, win()), "MPI_Win_unlock");
    }
    barrier();
    if (phase().kind == EpochKind::kLocks) return;
    state().now("in MPI_Win_lock_all");
    must(MPI_Win_lock_all(phase().no_check ? MPI_MODE_NOCHECK : 0, win()), "MPI_Win_lock_all");
}

void RoundRun::close_lock_all() {
    must(MPI_Win_sync(win()), "MPI_Win_sync");
    if (phase().closes) {
        state().now("in MPI_Win_unlock_all");
        must(MPI_Win_unlock_all(win()), "MPI_Win_unlock_all");
        return barrier();
    }
    state().now("flushing all targets");
    if (random_.one_in(2)) must(MPI_Win_flush_all(win()), "MPI_Win_flush_all");
    else
        for (int t = 0; t < round_.size; ++t) must(MPI_Win_flush(t, win()), "MPI_Win_flush");
    barrier();
    must(MPI_Win_sync(win()), "MPI_Win_sync");
}

}  // namespace rma_storm
