// SPDX-License-Identifier: BSD-3-Clause
// Windows of shared memory: where the parts of the processes lie, and loads and stores beside communication calls.
#include <memory>

#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

struct Part {
    MPI_Aint bytes = -1;
    int unit = -1;
    unsigned char* memory = nullptr;
};
Part part_of(MPI_Win win, int rank) {
    Part part;
    CHECK_MPI(MPI_Win_shared_query(win, rank, &part.bytes, &part.unit, &part.memory));
    return part;
}

struct Shared {
    // Process i has sizes[i % n] bytes and its own unit.
    Shared(const mpitest::Env& env, const std::vector<std::size_t>& sizes, const char* hint = nullptr)
        : members(Flavor::kShared, env.comm) {
        MPI_Info info = MPI_INFO_NULL;
        if (hint != nullptr) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "alloc_shared_noncontig", hint);
        }
        for (int i = 0; i < size_of(members.comm); ++i) all.push_back(sizes[as_size(i) % sizes.size()]);
        const int rank = rank_in(members.comm);
        window = std::make_unique<Window>(Flavor::kShared, members.comm, all[as_size(rank)], unit(rank), info);
        if (hint != nullptr) MPI_Info_free(&info);
    }
    static int unit(int rank) { return rank % 2 == 0 ? 8 : 4; }
    MPI_Win win() const { return window->win; }

    Members members;
    std::vector<std::size_t> all;
    std::unique_ptr<Window> window;
};

// All processes fill their parts by stores, and all read all parts by loads.
void check_loads(Shared& shared) {
    Window& window = *shared.window;
    const auto key = [](int rank) { return key_of("stored", static_cast<std::uint64_t>(rank)); };
    CHECK_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window.win));
    pattern::fill(key(window.rank), 0, window.memory, window.bytes);
    CHECK_MPI(MPI_Win_sync(window.win));
    MPI_Barrier(window.comm);
    CHECK_MPI(MPI_Win_sync(window.win));
    for (int rank = 0; rank < window.processes; ++rank) {
        const Part part = part_of(window.win, rank);
        const auto bytes = static_cast<MPI_Aint>(shared.all[as_size(rank)]);
        // With alloc_shared_noncontig, osc/sm tells the size rounded to pages.
        CHECK(mpitest::on_ob1() ? part.bytes >= bytes : part.bytes == bytes);
        CHECK_EQ(part.unit, Shared::unit(rank));
        CHECK_PATTERN(key(rank), part.memory, static_cast<std::size_t>(bytes));
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    MPI_Barrier(window.comm);
}

}  // namespace

CASE(every_process_reads_every_part) {
    for (const auto& sizes :
         std::vector<std::vector<std::size_t>>{{64}, {4096}, {1000, 24, 70000}, {3 << 20}, {0, 800}}) {
        Shared shared(env, sizes);
        check_loads(shared);
        CHECK(part_of(shared.win(), shared.window->rank).memory == shared.window->memory || shared.window->bytes == 0);
    }
}

// The default: each part begins where the one before ends, as the processes see it.
CASE(parts_are_contiguous) {
    for (const char* hint : {static_cast<const char*>(nullptr), "false"}) {
        Shared shared(env, {1000, 24, 70000}, hint);
        for (int rank = 1; rank < shared.window->processes; ++rank) {
            const Part before = part_of(shared.win(), rank - 1), part = part_of(shared.win(), rank);
            CHECK(part.memory == before.memory + before.bytes);
        }
        check_loads(shared);
    }
}

CASE(parts_may_lie_anywhere) {
    Shared shared(env, {1000, 24, 70000}, "true");
    check_loads(shared);
}

CASE(the_query_for_no_process_finds_the_first_memory) {
    for (const auto& sizes : std::vector<std::vector<std::size_t>>{{512}, {0, 800}}) {
        Shared shared(env, sizes);
        int first = 0;
        while (first < shared.window->processes && shared.all[as_size(first)] == 0) ++first;
        if (first == shared.window->processes) continue;
        const Part any = part_of(shared.win(), MPI_PROC_NULL), expected = part_of(shared.win(), first);
        CHECK_EQ(any.bytes, expected.bytes);
        CHECK(any.memory == expected.memory);
        CHECK_EQ(any.unit, expected.unit);
    }
}

// What a call writes is loaded by the owner and by others, and what is stored is fetched.
CASE(loads_and_stores_mix_with_calls) {
    Shared shared(env, {4096});
    Window& window = *shared.window;
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    for (int round = 0; round < rounds_of(100); ++round) {
        const auto value = [round](int rank) {
            return std::uint64_t{1000} * static_cast<std::uint64_t>(round) + static_cast<std::uint64_t>(rank);
        };
        const std::uint64_t mine = value(window.rank), add = 7;
        auto* theirs = reinterpret_cast<std::uint64_t*>(part_of(window.win, next).memory);
        auto* own = reinterpret_cast<std::uint64_t*>(window.memory);
        // A store into the memory of the neighbour, then calls on the same word.
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win));
        theirs[1] = mine;
        CHECK_MPI(MPI_Win_sync(window.win));
        std::uint64_t old = 0;
        CHECK_MPI(MPI_Fetch_and_op(&add, &old, MPI_UINT64_T, next, window.at(next, 8), MPI_SUM, window.win));
        CHECK_MPI(MPI_Put(&mine, 1, MPI_UINT64_T, next, window.at(next, 16), 1, MPI_UINT64_T, window.win));
        CHECK_MPI(MPI_Win_flush(next, window.win));
        CHECK_EQ(old, mine);
        CHECK_EQ(theirs[1], mine + add);
        CHECK_EQ(theirs[2], mine);
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        MPI_Barrier(window.comm);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, window.rank, 0, window.win));
        CHECK_EQ(own[1], value(before) + add);
        CHECK_EQ(own[2], value(before));
        CHECK_MPI(MPI_Win_unlock(window.rank, window.win));
        // In fences.
        CHECK_MPI(MPI_Win_fence(0, window.win));
        theirs[3] = mine;
        CHECK_MPI(MPI_Win_fence(0, window.win));
        CHECK_EQ(own[3], value(before));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    }
}
