// SPDX-License-Identifier: BSD-3-Clause
// Whom one-sided communication may not wait for: programs that poll their own window, processes that take nothing, requests
// of other processes.
#include <atomic>

#include "window.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;

Word fetched(const Window& window, int target) {
    Word value = 0;
    CHECK_MPI(MPI_Fetch_and_op(nullptr, &value, MPI_UINT64_T, target, window.at(target, 0), MPI_NO_OP, window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    return value;
}

// All others add 1 to the word of rank 0, which calls poll() until it has seen all of them.
template <class F>
void count_at_rank_0(const Window& window, F poll) {
    if (window.rank == 0) {
        while (poll() != static_cast<Word>(window.processes - 1)) {
        }
        return;
    }
    const Word one = 1;
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
    CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, window.at(0, 0), 1, MPI_UINT64_T, MPI_SUM, window.win));
    CHECK_MPI(MPI_Win_unlock(0, window.win));
}

template <class F>
void with_windows(const mpitest::Env& env, F f) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, sizeof(Word));
        window.reset([](unsigned char* memory) { std::memset(memory, 0, sizeof(Word)); });
        f(window);
        MPI_Barrier(members.comm);
    }
}

}  // namespace

CASE(a_process_polls_its_own_memory_in_an_epoch) {
    with_windows(env, [](Window& window) {
        if (window.rank == 0) CHECK_MPI(MPI_Win_lock_all(0, window.win));
        count_at_rank_0(window, [&] { return fetched(window, 0); });
        if (window.rank == 0) CHECK_MPI(MPI_Win_unlock_all(window.win));
    });
}

CASE(a_process_polls_its_own_memory_by_locks) {
    with_windows(env, [](Window& window) {
        count_at_rank_0(window, [&] {
            Word value = 0;
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
            CHECK_MPI(MPI_Get(&value, 1, MPI_UINT64_T, 0, window.at(0, 0), 1, MPI_UINT64_T, window.win));
            CHECK_MPI(MPI_Win_unlock(0, window.win));
            return value;
        });
    });
}

// Shared locks do not exclude each other, so it does not matter that an exclusive request waits for each of them.
CASE(readers_of_all_do_not_wait_for_each_other_behind_writers) {
    if (env.size < 4) return;
    with_windows(env, [](Window& window) {
        if (window.processes < 4) return;
        const bool reads = window.rank < 2;
        const Word value = 7;
        if (reads) CHECK_MPI(MPI_Win_lock_all(0, window.win));
        // They have their own locks before the writers ask.
        if (reads) fetched(window, window.rank);
        MPI_Barrier(window.comm);
        if (window.rank == 2 || window.rank == 3) {
            const int target = window.rank - 2;
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
            CHECK_MPI(MPI_Put(&value, 1, MPI_UINT64_T, target, window.at(target, 0), 1, MPI_UINT64_T, window.win));
            CHECK_MPI(MPI_Win_unlock(target, window.win));
        }
        if (reads) {
            // Time for the writers' requests; without it the case shows nothing, but does not fail.
            for (int i = 0; i < 2000; ++i) fetched(window, window.rank);
            const Word other = fetched(window, 1 - window.rank);
            CHECK(other == 0 || other == value);  // the writer comes first if the other reader has gone
            CHECK_MPI(MPI_Win_unlock_all(window.win));
        }
        MPI_Barrier(window.comm);
        if (reads) window.locally([&](const unsigned char* memory) { CHECK_EQ(memory[0], 7); });
    });
}

// Rank 2 asks rank 0 for much, and calls MPI no more until rank 1 has got something from rank 0.
CASE(a_process_that_takes_nothing_holds_up_no_other) {
    const Members node(Flavor::kShared, env.comm);
    if (size_of(node.comm) != env.size || env.size < 3) return;
    constexpr std::size_t kBytes = 8 << 20;
    Window window(Flavor::kCreate, env.comm, kBytes), flags(Flavor::kShared, node.comm, sizeof(Word));
    window.reset([](unsigned char* memory) { std::memset(memory, 3, kBytes); });
    flags.reset([](unsigned char* memory) { std::memset(memory, 0, sizeof(Word)); });
    MPI_Aint size;
    int unit;
    void* of_rank_2 = nullptr;
    CHECK_MPI(MPI_Win_shared_query(flags.win, 2, &size, &unit, &of_rank_2));
    auto& may_go_on = *static_cast<std::atomic<Word>*>(of_rank_2);
    const unsigned char value = 9;
    if (env.rank == 2) {
        Bytes all(kBytes);
        MPI_Request request;
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
        CHECK_MPI(MPI_Rget(all.data(), kBytes, MPI_BYTE, 0, window.at(0, 0), kBytes, MPI_BYTE, window.win, &request));
        int done = 0;
        for (int i = 0; i < 50 && !done; ++i) CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, env.comm);
        while (may_go_on.load() == 0) {
        }
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_MPI(MPI_Win_unlock(0, window.win));
        CHECK_UNTOUCHED(3, all.data(), kBytes);
    } else if (env.rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 2, 1, env.comm, MPI_STATUS_IGNORE);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win));
        CHECK_MPI(MPI_Put(&value, 1, MPI_BYTE, 1, window.at(1, 0), 1, MPI_BYTE, window.win));
        CHECK_MPI(MPI_Win_flush(1, window.win));
        MPI_Send(nullptr, 0, MPI_BYTE, 1, 2, env.comm);
        CHECK_MPI(MPI_Win_unlock(1, window.win));
    } else if (env.rank == 1) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, 2, env.comm, MPI_STATUS_IGNORE);
        window.locally([&](const unsigned char* memory) { CHECK_EQ(memory[0], 9); });
        may_go_on.store(1);
    }
    MPI_Barrier(env.comm);
}
