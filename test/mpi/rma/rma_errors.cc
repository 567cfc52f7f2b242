// SPDX-License-Identifier: BSD-3-Clause
// Calls in the wrong epoch give MPI_ERR_RMA_SYNC, change nothing, and leave a window that works.
#include "issue.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 30; });

constexpr std::size_t kBytes = 256;
constexpr unsigned char kContents = 0x42;

// osc/sm of stock Open MPI does not.
bool checks_epochs(Flavor flavor) { return !mpitest::on_ob1() || flavor == Flavor::kCreate; }

using mpitest::skipped_on_ob1;

#define REFUSED(call) CHECK_ERROR(call, MPI_ERR_RMA_SYNC)

// Calls f(window, rank of the next process, group of all processes) with windows of three flavours, which must work afterwards.
template <class F>
void with_windows(const mpitest::Env& env, F f) {
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kShared}) {
        if (!checks_epochs(flavor)) continue;
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kBytes);
        window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
        MPI_Group all;
        MPI_Comm_group(members.comm, &all);
        f(window, (window.rank + 1) % window.processes, all);
        MPI_Group_free(&all);
        check_usable(window, kContents);
    }
}

}  // namespace

CASE(communication_outside_of_an_epoch) {
    with_windows(env, [](Window& window, int next, MPI_Group) {
        check_all_refused(MPI_ERR_RMA_SYNC, window.win, next, 0, 8, __LINE__);
        check_all_refused(MPI_ERR_RMA_SYNC, window.win, window.rank, 0, 8, __LINE__);
    });
}

CASE(communication_after_the_last_fence) {
    with_windows(env, [](Window& window, int next, MPI_Group) {
        CHECK_MPI(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        check_all_refused(MPI_ERR_RMA_SYNC, window.win, next, 0, 8, __LINE__);
    });
}

// The first operation on a target looks closer than the ones after it. What it has found ends with the epoch.
CASE(communication_after_an_epoch_with_communication) {
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        for (const int target : {next, window.rank}) {
            const auto once = [&] { check_refused(Call::kGet, MPI_SUCCESS, window.win, target, 0, 8, __LINE__); };
            const auto twice = [&] { once(), once(); };
            const auto over = [&] { check_all_refused(MPI_ERR_RMA_SYNC, window.win, target, 0, 8, __LINE__); };
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
            twice();
            CHECK_MPI(MPI_Win_unlock(target, window.win));
            over();
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, MPI_MODE_NOCHECK, window.win));
            twice();
            CHECK_MPI(MPI_Win_unlock(target, window.win));
            over();
            CHECK_MPI(MPI_Win_lock_all(0, window.win));
            twice();
            CHECK_MPI(MPI_Win_unlock_all(window.win));
            over();
            CHECK_MPI(MPI_Win_fence(0, window.win));
            twice();
            REFUSED(MPI_Win_flush(target, window.win));
            CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
            over();
            CHECK_MPI(MPI_Win_post(all, 0, window.win));
            CHECK_MPI(MPI_Win_start(all, 0, window.win));
            twice();
            CHECK_MPI(MPI_Win_complete(window.win));
            over();
            CHECK_MPI(MPI_Win_wait(window.win));
        }
    });
}

CASE(communication_to_a_process_that_is_not_locked) {
    with_windows(env, [](Window& window, int next, MPI_Group) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, window.rank, 0, window.win));
        if (next != window.rank) check_all_refused(MPI_ERR_RMA_SYNC, window.win, next, 0, 8, __LINE__);
        CHECK_MPI(MPI_Win_unlock(window.rank, window.win));
        check_all_refused(MPI_ERR_RMA_SYNC, window.win, window.rank, 0, 8, __LINE__);
    });
}

CASE(communication_to_a_process_outside_of_the_group) {
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        MPI_Group self, none = MPI_GROUP_EMPTY;
        MPI_Group_incl(all, 1, &window.rank, &self);
        CHECK_MPI(MPI_Win_post(self, 0, window.win));
        CHECK_MPI(MPI_Win_start(self, 0, window.win));
        if (next != window.rank)
            for (const Call call : {Call::kPut, Call::kGet, Call::kAccumulate, Call::kFetchAndOp})
                check_refused(call, MPI_ERR_RMA_SYNC, window.win, next, 0, 8, __LINE__);
        CHECK_MPI(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_wait(window.win));
        CHECK_MPI(MPI_Win_start(none, 0, window.win));
        check_refused(Call::kPut, MPI_ERR_RMA_SYNC, window.win, next, 0, 8, __LINE__);
        CHECK_MPI(MPI_Win_complete(window.win));
        MPI_Group_free(&self);
    });
}

CASE(a_process_is_locked_twice) {
    if (skipped_on_ob1("osc/rdma grants the second lock")) return;
    with_windows(env, [](Window& window, int next, MPI_Group) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
    });
}

CASE(a_process_is_locked_twice_without_a_check) {
    if (skipped_on_ob1("osc/rdma grants the second lock")) return;
    with_windows(env, [](Window& window, int next, MPI_Group) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, MPI_MODE_NOCHECK, window.win));
        REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, next, MPI_MODE_NOCHECK, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
    });
}

CASE(an_unlock_without_a_lock) {
    with_windows(env, [](Window& window, int next, MPI_Group) {
        REFUSED(MPI_Win_unlock(next, window.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, window.rank, 0, window.win));
        if (next != window.rank) REFUSED(MPI_Win_unlock(next, window.win));
        REFUSED(MPI_Win_unlock_all(window.win));
        CHECK_MPI(MPI_Win_unlock(window.rank, window.win));
        REFUSED(MPI_Win_unlock(window.rank, window.win));
        REFUSED(MPI_Win_unlock_all(window.win));
    });
}

CASE(locks_within_lock_all) {
    if (skipped_on_ob1("osc/rdma grants locks of single processes within lock_all")) return;
    with_windows(env, [](Window& window, int next, MPI_Group) {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_lock_all(0, window.win));
        REFUSED(MPI_Win_unlock(next, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_lock_all(0, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
    });
}

CASE(flushes_without_a_lock) {
    with_windows(env, [](Window& window, int next, MPI_Group) {
        REFUSED(MPI_Win_flush(next, window.win));
        REFUSED(MPI_Win_flush_local(next, window.win));
        REFUSED(MPI_Win_flush_all(window.win));
        REFUSED(MPI_Win_flush_local_all(window.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, window.rank, 0, window.win));
        if (next != window.rank) {
            REFUSED(MPI_Win_flush(next, window.win));
            REFUSED(MPI_Win_flush_local(next, window.win));
        }
        CHECK_MPI(MPI_Win_flush(window.rank, window.win));
        CHECK_MPI(MPI_Win_unlock(window.rank, window.win));
    });
}

CASE(flushes_in_active_epochs) {
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        CHECK_MPI(MPI_Win_fence(0, window.win));
        check_refused(Call::kPut, MPI_SUCCESS, window.win, next, static_cast<MPI_Aint>(kBytes), 0, __LINE__);
        REFUSED(MPI_Win_flush(next, window.win));
        REFUSED(MPI_Win_flush_all(window.win));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        CHECK_MPI(MPI_Win_post(all, 0, window.win));
        CHECK_MPI(MPI_Win_start(all, 0, window.win));
        REFUSED(MPI_Win_flush(next, window.win));
        REFUSED(MPI_Win_flush_local_all(window.win));
        CHECK_MPI(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_wait(window.win));
    });
}

CASE(a_complete_without_a_start) {
    if (skipped_on_ob1("osc/rdma takes it for the end of an epoch without targets")) return;
    with_windows(env, [](Window& window, int, MPI_Group all) {
        REFUSED(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_post(all, 0, window.win));
        REFUSED(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_start(all, 0, window.win));
        REFUSED(MPI_Win_start(all, 0, window.win));
        CHECK_MPI(MPI_Win_complete(window.win));
        REFUSED(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_wait(window.win));
    });
}

CASE(a_wait_or_test_without_a_post) {
    with_windows(env, [](Window& window, int, MPI_Group all) {
        int flag = 0;
        REFUSED(MPI_Win_wait(window.win));
        REFUSED(MPI_Win_test(window.win, &flag));
        CHECK_MPI(MPI_Win_post(all, 0, window.win));
        CHECK_MPI(MPI_Win_start(all, 0, window.win));
        CHECK_MPI(MPI_Win_complete(window.win));
        while (flag == 0) CHECK_MPI(MPI_Win_test(window.win, &flag));
        REFUSED(MPI_Win_wait(window.win));
        REFUSED(MPI_Win_test(window.win, &flag));
    });
}

CASE(two_posts) {
    with_windows(env, [](Window& window, int, MPI_Group all) {
        CHECK_MPI(MPI_Win_post(all, 0, window.win));
        REFUSED(MPI_Win_post(all, 0, window.win));
        REFUSED(MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win));
        CHECK_MPI(MPI_Win_start(all, 0, window.win));
        CHECK_MPI(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_wait(window.win));
    });
}

CASE(a_fence_within_other_epochs) {
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        REFUSED(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        MPI_Barrier(window.comm);  // a window must not be locked and exposed at once
        CHECK_MPI(MPI_Win_post(all, 0, window.win));
        REFUSED(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Win_start(all, 0, window.win));
        REFUSED(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_wait(window.win));
    });
}

CASE(epochs_within_an_epoch_between_fences) {
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        CHECK_MPI(MPI_Win_fence(0, window.win));
        // The first call makes it an epoch.
        const unsigned char same = kContents;
        CHECK_MPI(MPI_Put(&same, 1, MPI_BYTE, next, window.at(next, 0), 1, MPI_BYTE, window.win));
        REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_lock_all(0, window.win));
        REFUSED(MPI_Win_start(all, 0, window.win));
        if (!mpitest::on_ob1()) REFUSED(MPI_Win_post(all, 0, window.win));  // osc/rdma does not look
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    });
}

CASE(locks_within_start_and_starts_within_a_lock) {
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        CHECK_MPI(MPI_Win_post(all, 0, window.win));
        CHECK_MPI(MPI_Win_start(all, 0, window.win));
        REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_lock_all(0, window.win));
        CHECK_MPI(MPI_Win_complete(window.win));
        CHECK_MPI(MPI_Win_wait(window.win));
        MPI_Barrier(window.comm);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        REFUSED(MPI_Win_start(all, 0, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        REFUSED(MPI_Win_start(all, 0, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    });
}

CASE(locks_of_a_window_without_locks) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        if (!checks_epochs(flavor)) continue;
        Window window(flavor, members.comm, kBytes, 1, info);
        for (const int type : {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE}) REFUSED(MPI_Win_lock(type, 0, 0, window.win));
        REFUSED(MPI_Win_lock_all(0, window.win));
        REFUSED(MPI_Win_lock_all(MPI_MODE_NOCHECK, window.win));
        CHECK_MPI(MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    }
    MPI_Info_free(&info);
}

// The window still exists afterwards.
CASE(a_free_within_an_epoch) {
    if (skipped_on_ob1("windows are freed in any epoch")) return;
    with_windows(env, [](Window& window, int next, MPI_Group all) {
        MPI_Win win = window.win;
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
        REFUSED(MPI_Win_free(&win));
        CHECK(win == window.win);
        CHECK_MPI(MPI_Win_unlock(next, win));
        MPI_Barrier(window.comm);
        CHECK_MPI(MPI_Win_post(all, 0, win));
        CHECK_MPI(MPI_Win_start(all, 0, win));
        REFUSED(MPI_Win_free(&win));
        CHECK(win == window.win);
        CHECK_MPI(MPI_Win_complete(win));
        CHECK_MPI(MPI_Win_wait(win));
    });
}

// The rank is the one argument that Open MPI itself does not check.
CASE(flushes_of_processes_that_do_not_exist) {
    if (skipped_on_ob1("osc/rdma reads beyond its tables")) return;
    with_windows(env, [](Window& window, int, MPI_Group) {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (const int rank : {window.processes, 1000000000, -7}) {
            CHECK_ERROR(MPI_Win_flush(rank, window.win), MPI_ERR_RANK);
            CHECK_ERROR(MPI_Win_flush_local(rank, window.win), MPI_ERR_RANK);
        }
        CHECK_MPI(MPI_Win_flush(MPI_PROC_NULL, window.win));
        CHECK_MPI(MPI_Win_flush_local(MPI_PROC_NULL, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    });
}
