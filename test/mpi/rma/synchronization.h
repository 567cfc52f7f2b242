// SPDX-License-Identifier: BSD-3-Clause
//
// The ways to open and close epochs of all processes to all processes of a window, with the assertions that hold here:
// no process stores into its window during the epoch, and locks never conflict with those of others.
#pragma once

#include <algorithm>

#include "window.h"

namespace {

enum class Sync {
    kFence,
    kFenceAsserted,
    kPscw,
    kPscwTest,
    kPscwAsserted,
    kLockExclusive,
    kLockShared,
    kLockNoCheck,
    kLockFlush,
    kLockFlushLocal,
    kLocks,
    kLockAll,
    kLockAllNoCheck,
    kFlush,
    kFlushLocal,
    kFlushAll,
    kFlushLocalAll
};

class Epoch {
public:
    // `only_reads`: no process changes memory in this epoch.
    Epoch(Sync sync, const Window& window, bool only_reads)
        : sync_(sync), window_(window), no_put_(only_reads ? MPI_MODE_NOPUT : 0) {
        MPI_Win_get_group(window.win, &all_);
    }
    ~Epoch() { MPI_Group_free(&all_); }
    Epoch(const Epoch&) = delete;

    static bool is_passive(Sync sync) { return sync >= Sync::kLockExclusive; }

    // Calls start(target) in an epoch to each process, and completed(target) as soon as MPI promises that the calls are
    // complete at this process.
    template <class Start, class Completed>
    void run(Start start, Completed completed) {
        std::vector<int> rest;
        open();
        for (int i = 0; i < window_.processes; ++i) {
            const int target = (window_.rank + i) % window_.processes;
            begin(target);
            start(target);
            const bool flushed = flush(target);
            if (flushed) completed(target);
            const bool left = leave(target);
            if (left && !flushed) completed(target);
            if (!left && !flushed) rest.push_back(target);
        }
        const bool flushed = flush_all();
        if (flushed) std::for_each(rest.begin(), rest.end(), completed);
        close();
        if (!flushed) std::for_each(rest.begin(), rest.end(), completed);
    }

private:
    void open() {
        switch (sync_) {
        case Sync::kFence: CHECK_MPI(MPI_Win_fence(0, win())); break;
        case Sync::kFenceAsserted:
            CHECK_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE | no_put_, win()));
            break;
        case Sync::kPscw:
        case Sync::kPscwTest:
            CHECK_MPI(MPI_Win_post(all_, 0, win()));
            CHECK_MPI(MPI_Win_start(all_, 0, win()));
            break;
        case Sync::kPscwAsserted:
            CHECK_MPI(MPI_Win_post(all_, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | no_put_, win()));
            MPI_Barrier(window_.comm);
            CHECK_MPI(MPI_Win_start(all_, MPI_MODE_NOCHECK, win()));
            break;
        case Sync::kLocks:
            for (int t = 0; t < window_.processes; ++t) CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, win()));
            break;
        case Sync::kLockAllNoCheck: CHECK_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win())); break;
        case Sync::kLockAll:
        case Sync::kFlush:
        case Sync::kFlushLocal:
        case Sync::kFlushAll:
        case Sync::kFlushLocalAll: CHECK_MPI(MPI_Win_lock_all(0, win())); break;
        case Sync::kLockExclusive:
        case Sync::kLockShared:
        case Sync::kLockNoCheck:
        case Sync::kLockFlush:
        case Sync::kLockFlushLocal: break;
        }
    }

    void begin(int target) {
        if (sync_ == Sync::kLockExclusive) CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win()));
        else if (sync_ == Sync::kLockNoCheck) CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, win()));
        else if (locks_each()) CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win()));
    }

    bool flush(int target) {
        if (sync_ == Sync::kFlush || sync_ == Sync::kLockFlush) CHECK_MPI(MPI_Win_flush(target, win()));
        else if (sync_ == Sync::kFlushLocal || sync_ == Sync::kLockFlushLocal)
            CHECK_MPI(MPI_Win_flush_local(target, win()));
        else return false;
        return true;
    }
    bool leave(int target) {
        if (!locks_each()) return false;
        CHECK_MPI(MPI_Win_unlock(target, win()));
        return true;
    }
    bool flush_all() {
        if (sync_ == Sync::kFlushAll) CHECK_MPI(MPI_Win_flush_all(win()));
        else if (sync_ == Sync::kFlushLocalAll) CHECK_MPI(MPI_Win_flush_local_all(win()));
        else return false;
        return true;
    }

    void close() {
        int flag = 0;
        switch (sync_) {
        case Sync::kFence: CHECK_MPI(MPI_Win_fence(0, win())); break;
        case Sync::kFenceAsserted:
            CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win()));
            break;
        case Sync::kPscw:
        case Sync::kPscwAsserted:
            CHECK_MPI(MPI_Win_complete(win()));
            CHECK_MPI(MPI_Win_wait(win()));
            break;
        case Sync::kPscwTest:
            CHECK_MPI(MPI_Win_complete(win()));
            while (flag == 0) CHECK_MPI(MPI_Win_test(win(), &flag));
            break;
        case Sync::kLocks:
            for (int t = window_.processes; t-- > 0;) CHECK_MPI(MPI_Win_unlock(t, win()));
            break;
        case Sync::kLockAll:
        case Sync::kLockAllNoCheck:
        case Sync::kFlush:
        case Sync::kFlushLocal:
        case Sync::kFlushAll:
        case Sync::kFlushLocalAll: CHECK_MPI(MPI_Win_unlock_all(win())); break;
        case Sync::kLockExclusive:
        case Sync::kLockShared:
        case Sync::kLockNoCheck:
        case Sync::kLockFlush:
        case Sync::kLockFlushLocal: break;
        }
    }

    MPI_Win win() const { return window_.win; }
    bool locks_each() const { return sync_ >= Sync::kLockExclusive && sync_ <= Sync::kLockFlushLocal; }

    Sync sync_;
    const Window& window_;
    int no_put_;
    MPI_Group all_ = MPI_GROUP_NULL;
};

}  // namespace
