// SPDX-License-Identifier: BSD-3-Clause
// Windows themselves: what MPI tells of them, units and sizes that differ by process, memory that several windows share,
// communicators of every form, very many windows, windows that are freed by MPI_Finalize.
#include <sys/mman.h>

#include <memory>

#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;
Word as_word(int n) { return static_cast<Word>(n); }

template <class T>
T attribute(MPI_Win win, int key) {
    void* value = nullptr;
    int flag = 0;
    CHECK_MPI(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK_EQ(flag, 1);
    return static_cast<T>(value);
}

// Puts, gets and adds from each process to each, at several places of windows of at least `bytes` bytes.
void use(Window& window, std::size_t bytes, std::size_t step) {
    window.reset([&](unsigned char* memory) {
        if (window.bytes >= bytes) std::memset(memory, 1, bytes);
    });
    std::vector<unsigned char> has(as_size(window.processes));
    const unsigned char mine = window.bytes >= bytes;
    MPI_Allgather(&mine, 1, MPI_BYTE, has.data(), 1, MPI_BYTE, window.comm);
    const auto place = [&](int origin) { return as_size(origin) * step; };
    CHECK(bytes >= place(window.processes - 1) + step && step >= 16);
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int t = 0; t < window.processes; ++t) {
        if (has[as_size(t)] == 0) continue;
        const Word value = 1000 * as_word(window.rank) + as_word(t), add = 5;
        Word back = 0, fetched = 0;
        const MPI_Aint at = window.at(t, place(window.rank)), second = window.at(t, place(window.rank) + 8);
        CHECK_MPI(MPI_Put(&value, 1, MPI_UINT64_T, t, at, 1, MPI_UINT64_T, window.win));
        CHECK_MPI(MPI_Accumulate(&add, 1, MPI_UINT64_T, t, second, 1, MPI_UINT64_T, MPI_REPLACE, window.win));
        CHECK_MPI(MPI_Fetch_and_op(&value, &fetched, MPI_UINT64_T, t, second, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_flush(t, window.win));
        CHECK_MPI(MPI_Get(&back, 1, MPI_UINT64_T, t, at, 1, MPI_UINT64_T, window.win));
        CHECK_MPI(MPI_Win_flush_local(t, window.win));
        CHECK_EQ(back, value);
        CHECK_EQ(fetched, add);
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    window.inspect([&](const unsigned char* memory) {
        if (mine == 0) return;
        Bytes expected(bytes, 1);
        for (int origin = 0; origin < window.processes; ++origin) {
            const Word value = 1000 * as_word(origin) + as_word(window.rank), sum = value + 5;
            std::memcpy(&expected[place(origin)], &value, sizeof value);
            std::memcpy(&expected[place(origin) + 8], &sum, sizeof sum);
        }
        check_bytes(memory, expected, "memory");
    });
}

MPI_Comm reordered(MPI_Comm comm, int color) {
    MPI_Comm part;
    MPI_Comm_split(comm, color, -rank_in(comm), &part);
    return part;
}

}  // namespace

CASE(attributes_group_and_name) {
    constexpr int kMpiFlavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                                   MPI_WIN_FLAVOR_DYNAMIC};
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        const std::size_t bytes = as_size(rank_in(members.comm) + 1) * 256;
        Window window(flavor, members.comm, bytes, 4);
        const bool dynamic = flavor == Flavor::kDynamic;
        CHECK_EQ(*attribute<int*>(window.win, MPI_WIN_CREATE_FLAVOR), kMpiFlavors[static_cast<int>(flavor)]);
        CHECK_EQ(*attribute<int*>(window.win, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
        CHECK_EQ(*attribute<int*>(window.win, MPI_WIN_DISP_UNIT), dynamic ? 1 : 4);
        CHECK_EQ(*attribute<MPI_Aint*>(window.win, MPI_WIN_SIZE), dynamic ? 0 : bytes);
        // The base of a dynamic window is MPI_BOTTOM.
        CHECK(dynamic || attribute<unsigned char*>(window.win, MPI_WIN_BASE) == window.memory);
        MPI_Group group, all;
        MPI_Win_get_group(window.win, &group);
        MPI_Comm_group(members.comm, &all);
        int result = -1;
        MPI_Group_compare(group, all, &result);
        CHECK_EQ(result, MPI_IDENT);
        MPI_Group_free(&group);
        MPI_Group_free(&all);
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length = -1;
        CHECK_MPI(MPI_Win_set_name(window.win, "halo of the left"));
        CHECK_MPI(MPI_Win_get_name(window.win, name, &length));
        CHECK(std::string(name) == "halo of the left");
        CHECK_EQ(length, 16);
        use(window, 256, 16);
    }
}

CASE(info_of_a_window) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        MPI_Info info, used;
        MPI_Info_create(&info);
        MPI_Info_set(info, "no_such_hint_exists", "42");
        MPI_Info_set(info, "same_size", "true");
        MPI_Info_set(info, "same_disp_unit", "true");
        MPI_Info_set(info, "no_locks", "false");
        Window window(flavor, members.comm, 1024, 1, info);
        CHECK_MPI(MPI_Win_get_info(window.win, &used));
        CHECK(used != MPI_INFO_NULL);
        MPI_Info_free(&used);
        CHECK_MPI(MPI_Win_set_info(window.win, info));
        MPI_Info_free(&info);
        use(window, 1024, 16);
    }
}

// Locks are forbidden; the rest works.
CASE(a_window_without_locks) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 256, 1, info);
        for (const Sync sync : {Sync::kFence, Sync::kPscw}) {
            std::memset(window.memory, 9, 256);
            MPI_Barrier(window.comm);
            const int next = (window.rank + 1) % window.processes,
                      before = (window.rank + window.processes - 1) % window.processes;
            const Bytes sent(100, static_cast<unsigned char>(window.rank + 10));
            Epoch epoch(sync, window, false);
            epoch.run(
                [&](int target) {
                    if (target == next)
                        CHECK_MPI(
                            MPI_Put(sent.data(), 100, MPI_BYTE, next, window.at(next, 3), 100, MPI_BYTE, window.win));
                },
                [](int) {});
            Bytes expected(256, 9);
            std::fill_n(expected.begin() + 3, 100, static_cast<unsigned char>(before + 10));
            check_bytes(window.memory, expected, "memory");
            MPI_Barrier(window.comm);
        }
    }
    MPI_Info_free(&info);
}

CASE(units_of_1_4_and_8_bytes) {
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kShared})
        for (const int unit : {1, 4, 8}) {
            const Members members(flavor, env.comm);
            Window window(flavor, members.comm, 2048, unit);
            use(window, 2048, 32);
        }
}

CASE(units_and_sizes_differ_by_process) {
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kShared})
        for (int shift = 0; shift < 4; ++shift) {
            const Members members(flavor, env.comm);
            const int rank = rank_in(members.comm) + shift;
            constexpr int kUnits[] = {1, 8, 4, 2};
            Window window(flavor, members.comm, 1024 + 4096 * as_size(rank % 3), kUnits[rank % 4]);
            use(window, 1024, 64);
        }
}

CASE(some_or_all_processes_have_no_memory) {
    for (const Flavor flavor : kFlavors)
        for (int with = -1; with < 2; ++with) {
            const Members members(flavor, env.comm);
            Window window(flavor, members.comm, rank_in(members.comm) % 2 == with ? 512 : 0, 8);
            use(window, 512, 16);
        }
    // A null pointer is the base of a window without memory.
    MPI_Win win;
    CHECK_MPI(MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, env.comm, &win));
    CHECK_MPI(MPI_Win_fence(0, win));
    CHECK_MPI(MPI_Put(nullptr, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, win));
    CHECK_MPI(MPI_Win_fence(0, win));
    CHECK_MPI(MPI_Win_free(&win));
}

// Two created windows and a dynamic one work on parts of the same memory, one after the other.
CASE(windows_overlap) {
    constexpr int kBytes = 4096;
    Bytes memory(kBytes, 0);
    MPI_Win wins[3];
    CHECK_MPI(MPI_Win_create(memory.data(), 3000, 1, MPI_INFO_NULL, env.comm, &wins[0]));
    CHECK_MPI(MPI_Win_create(memory.data() + 1000, 3000, 1, MPI_INFO_NULL, env.comm, &wins[1]));
    CHECK_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, env.comm, &wins[2]));
    CHECK_MPI(MPI_Win_attach(wins[2], memory.data() + 500, 2000));
    MPI_Aint address;
    MPI_Get_address(memory.data(), &address);
    std::vector<MPI_Aint> bases(as_size(env.size));
    MPI_Allgather(&address, 1, MPI_AINT, bases.data(), 1, MPI_AINT, env.comm);
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    Bytes expected = memory;
    for (int round = 0; round < 30; ++round) {
        const int which = round % 3;
        const MPI_Aint at = 1000 + 37 * round, offset = which == 0 ? 0 : which == 1 ? -1000 : bases[as_size(next)];
        const Bytes sent(100, static_cast<unsigned char>(round * 8 + env.rank));
        CHECK_MPI(MPI_Win_fence(0, wins[which]));
        CHECK_MPI(MPI_Put(sent.data(), 100, MPI_BYTE, next, at + offset, 100, MPI_BYTE, wins[which]));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[which]));
        std::fill_n(expected.begin() + at, 100, static_cast<unsigned char>(round * 8 + before));
        check_bytes(memory.data(), expected, "memory");
    }
    CHECK_MPI(MPI_Win_detach(wins[2], memory.data() + 500));
    for (MPI_Win& win : wins) CHECK_MPI(MPI_Win_free(&win));
}

CASE(windows_on_communicators_of_every_form) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        MPI_Comm parts[] = {reordered(members.comm, 0), reordered(members.comm, rank_in(members.comm) % 2),
                            MPI_COMM_SELF};
        std::vector<std::unique_ptr<Window>> windows;
        for (MPI_Comm comm : parts) windows.push_back(std::make_unique<Window>(flavor, comm, 512));
        // Different windows of different processes are in use at the same time.
        for (std::size_t i = 0; i < std::size(parts); ++i) use(*windows[i], 512, 16);
        use(*windows[2], 512, 256);
        use(*windows[1], 512, 16);
        while (!windows.empty()) windows.pop_back();
        for (MPI_Comm& comm : parts)
            if (comm != MPI_COMM_SELF) MPI_Comm_free(&comm);
    }
}

CASE(the_communicator_is_freed_before_the_window) {
    MPI_Comm comm = reordered(env.comm, env.rank % 2);
    Bytes memory(64, 3);
    MPI_Win win;
    CHECK_MPI(MPI_Win_create(memory.data(), 64, 1, MPI_INFO_NULL, comm, &win));
    const int next = (rank_in(comm) + 1) % size_of(comm), before = (rank_in(comm) + size_of(comm) - 1) % size_of(comm);
    const auto mine = static_cast<unsigned char>(rank_in(comm) + 50);
    MPI_Comm_free(&comm);
    CHECK_MPI(MPI_Win_fence(0, win));
    CHECK_MPI(MPI_Put(&mine, 1, MPI_BYTE, next, 63, 1, MPI_BYTE, win));
    CHECK_MPI(MPI_Win_fence(0, win));
    CHECK_EQ(memory[63], before + 50);
    CHECK_UNTOUCHED(3, memory.data(), 63);
    CHECK_MPI(MPI_Win_free(&win));
}

CASE(windows_are_created_and_freed_a_thousand_times) {
    const int rounds = rounds_of(1000);
    MPI_Comm parts[] = {reordered(env.comm, 0), reordered(env.comm, env.rank % 2)};
    const Members node(Flavor::kShared, env.comm);
    for (int i = 0; i < rounds; ++i) {
        const Flavor flavor = kFlavors[i % 4];
        Window window(flavor, flavor == Flavor::kShared ? node.comm : parts[i / 4 % 2], 256);
        const int next = (window.rank + 1) % window.processes;
        const int value = i;
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win));
        CHECK_MPI(MPI_Put(&value, 1, MPI_INT, next, window.at(next, 8), 1, MPI_INT, window.win));
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        window.inspect([&](const unsigned char* memory) {
            int got;
            std::memcpy(&got, memory + 8, sizeof got);
            CHECK_EQ(got, i);
        });
    }
    for (MPI_Comm& comm : parts) MPI_Comm_free(&comm);
}

CASE(a_hundred_windows_exist_at_once) {
    std::vector<std::unique_ptr<Window>> windows;
    for (int i = 0; i < 100; ++i)
        windows.push_back(
            std::make_unique<Window>(i % 2 == 0 ? Flavor::kCreate : Flavor::kAllocate, env.comm, 64 + as_size(i)));
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    std::vector<Bytes> sent;
    for (std::size_t i = 0; i < windows.size(); ++i)
        sent.push_back(message(key_of("one of many", i, as_word(env.rank)), 64 + i));
    for (std::size_t i = 0; i < windows.size(); ++i) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, windows[i]->win));
        CHECK_MPI(MPI_Put(sent[i].data(), as_int(sent[i].size()), MPI_BYTE, next, windows[i]->at(next, 0),
                          as_int(sent[i].size()), MPI_BYTE, windows[i]->win));
    }
    for (auto& window : windows) CHECK_MPI(MPI_Win_unlock(next, window->win));
    MPI_Barrier(env.comm);
    for (std::size_t i = 0; i < windows.size(); ++i)
        windows[i]->locally([&](const unsigned char* memory) {
            CHECK_PATTERN(key_of("one of many", i, as_word(before)), memory, 64 + i);
        });
    MPI_Barrier(env.comm);
    // Freed in another order than created.
    while (!windows.empty()) windows.erase(windows.begin() + static_cast<std::ptrdiff_t>(windows.size() * 2 / 3));
}

// Rank 0 exposes 3 GiB of addresses without memory behind them; the others a page.
CASE(displacements_of_more_than_2_gib) {
    constexpr std::size_t kBytes = std::size_t{3} << 30;
    void* pages = MAP_FAILED;
    const std::size_t bytes = env.rank == 0 ? kBytes : 4096;
    pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(pages != MAP_FAILED);
    auto* memory = static_cast<unsigned char*>(pages);
    for (const int unit : {1, 8}) {
        MPI_Win win;
        CHECK_MPI(MPI_Win_create(pages, static_cast<MPI_Aint>(bytes), unit, MPI_INFO_NULL, env.comm, &win));
        constexpr std::size_t kPlaces[] = {(std::size_t{2} << 30) - 10000, (std::size_t{2} << 30) + 100000,
                                           kBytes - 100000};
        const std::size_t slot = 6000;
        for (const std::size_t place : kPlaces) {
            const Bytes sent = message(key_of("far", place, as_word(env.rank)), slot);
            const MPI_Aint at = static_cast<MPI_Aint>((place + as_size(env.rank) * slot) / as_size(unit));
            Bytes back(slot);
            const Word one = 1;
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
            CHECK_MPI(MPI_Put(sent.data(), as_int(slot), MPI_BYTE, 0, at, as_int(slot), MPI_BYTE, win));
            CHECK_MPI(MPI_Win_flush(0, win));
            CHECK_MPI(MPI_Get(back.data(), as_int(slot), MPI_BYTE, 0, at, as_int(slot), MPI_BYTE, win));
            CHECK_MPI(MPI_Win_flush(0, win));
            check_bytes(back.data(), sent, "far away");
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, at, 1, MPI_UINT64_T, MPI_REPLACE, win));
            CHECK_MPI(MPI_Win_unlock(0, win));
        }
        // A type that reaches over 2 GiB.
        MPI_Datatype type;
        const int lengths[] = {8, 8};
        const MPI_Aint places[] = {0, static_cast<MPI_Aint>(std::size_t{5} << 29)};
        MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        const Word both[] = {as_word(env.rank), 77};
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK_MPI(MPI_Put(both, 16, MPI_BYTE, 0, 8 * (env.rank + 1) / unit, 1, type, win));
        CHECK_MPI(MPI_Win_unlock(0, win));
        MPI_Type_free(&type);
        MPI_Barrier(env.comm);
        if (env.rank == 0) {
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
            for (int rank = 0; rank < env.size; ++rank) {
                for (const std::size_t place : kPlaces) {
                    Bytes expected = message(key_of("far", place, as_word(rank)), slot);
                    const Word one = 1;
                    std::memcpy(expected.data(), &one, sizeof one);
                    check_bytes(memory + place + as_size(rank) * slot, expected, "far away at rank 0");
                }
                Word got[2];
                std::memcpy(&got[0], memory + 8 * (rank + 1), 8);
                std::memcpy(&got[1], memory + 8 * (rank + 1) + places[1], 8);
                CHECK_EQ(got[0], rank);
                CHECK_EQ(got[1], 77);
            }
            CHECK_MPI(MPI_Win_unlock(0, win));
        }
        CHECK_MPI(MPI_Win_free(&win));
    }
    munmap(pages, bytes);
}
