// SPDX-License-Identifier: BSD-3-Clause
// Processes of a node that read and write each other's memory: layouts of both sides, attached memory that changes meanwhile,
// accumulates of all processes with the owner among them, more long blocks than may be under way.
//
// Arguments: `killed`: only for the case of that name, which ends the job; `denied`: only for the case in which the kernel
// refuses copies by one process from then on.
#include <csignal>

#include <unistd.h>

#include "../../lib/deny.h"
#include "window.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

using Word = std::uint64_t;

bool has_argument(const char* word) {
    const auto& all = mpitest::settings().arguments;
    return std::find(all.begin(), all.end(), word) != all.end();
}

class Vector {
public:
    Vector(std::size_t blocks, std::size_t bytes, std::size_t stride) {
        MPI_Type_vector(as_int(blocks), as_int(bytes), as_int(stride), MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    ~Vector() { MPI_Type_free(&type); }
    Vector(const Vector&) = delete;
    MPI_Datatype type = MPI_DATATYPE_NULL;
};

// `data` in blocks with gaps, which keep `gap`.
Bytes spread(const Bytes& data, std::size_t bytes, std::size_t stride, std::size_t size, unsigned char gap) {
    Bytes all(size, gap);
    for (std::size_t i = 0; i < data.size(); ++i) all[i / bytes * stride + i % bytes] = data[i];
    return all;
}

struct Shape {
    std::size_t bytes, stride;
};
// Short and long blocks, dense and not, and one block.
constexpr Shape kShapes[] = {{1, 2}, {8, 24}, {8, 200}, {40, 41}, {600, 1000}, {5000, 9000}, {30000, 30000}};
constexpr std::size_t kData = 30000;
constexpr std::size_t size_of(const Shape& shape) { return (kData / shape.bytes + 1) * shape.stride; }

void put_and_get(const Window& window, const Shape& here, const Shape& there, std::uint64_t key, int target) {
    const std::size_t own = size_of(here), its = size_of(there);
    const Vector mine(kData / here.bytes, here.bytes, here.stride),
        their(kData / there.bytes, there.bytes, there.stride);
    const Bytes data = message(key, kData), from = spread(data, here.bytes, here.stride, own, 1);
    CHECK_MPI(MPI_Put(from.data(), 1, mine.type, target, window.at(target, 0), 1, their.type, window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    Bytes to(own, 2), all(its);
    CHECK_MPI(MPI_Get(to.data(), 1, mine.type, target, window.at(target, 0), 1, their.type, window.win));
    CHECK_MPI(
        MPI_Get(all.data(), as_int(its), MPI_BYTE, target, window.at(target, 0), as_int(its), MPI_BYTE, window.win));
    CHECK_MPI(MPI_Win_flush(target, window.win));
    check_bytes(to.data(), spread(data, here.bytes, here.stride, own, 2), "got");
    check_bytes(all.data(), spread(data, there.bytes, there.stride, its, 3), "window");
}

void fetch_and_add(const Window& window, int target, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        const Word one = 1;
        Word before;
        CHECK_MPI(MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, window.at(target, 0), MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_flush(target, window.win));
        CHECK(before >= static_cast<Word>(i));
    }
}

Word first_word(const unsigned char* memory) {
    Word word;
    std::memcpy(&word, memory, sizeof word);
    return word;
}

}  // namespace

CASE(every_layout_of_both_sides) {
    const std::size_t bytes = size_of(kShapes[2]);
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, bytes);
        const int target = (window.rank + 1) % window.processes;
        std::uint64_t round = 0;
        for (const Shape& here : kShapes)
            for (const Shape& there : kShapes) {
                window.reset([&](unsigned char* memory) { std::memset(memory, 3, bytes); });
                CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
                put_and_get(window, here, there, key_of("layout", as_size(window.rank), ++round), target);
                CHECK_MPI(MPI_Win_unlock(target, window.win));
                MPI_Barrier(window.comm);
            }
    }
}

CASE(accumulates_of_all_and_of_the_owner_exclude_each_other) {
    const int rounds = rounds_of(3000);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 64);
        window.reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        fetch_and_add(window, 0, rounds);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        window.inspect([&](const unsigned char* memory) {
            if (window.rank == 0) CHECK_EQ(first_word(memory), static_cast<Word>(rounds * window.processes));
        });
    }
}

// Some may be executed here and others by the target.
CASE(accumulates_keep_their_order) {
    const int rounds = rounds_of(100);
    constexpr Word kSteps = 7;
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kDynamic}) {
        Window window(flavor, env.comm, as_size(env.size) * sizeof(Word));
        window.reset([&](unsigned char* memory) { std::memset(memory, 0, window.bytes); });
        const int target = (window.rank + 1) % window.processes;
        const MPI_Aint at = window.at(target, as_size(window.rank) * sizeof(Word));
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        for (Word round = 1; round <= static_cast<Word>(rounds); ++round) {
            Word values[kSteps], found = 0;
            for (Word i = 0; i < kSteps; ++i) {
                values[i] = round * kSteps + i;
                CHECK_MPI(
                    MPI_Accumulate(&values[i], 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, MPI_REPLACE, window.win));
            }
            CHECK_MPI(MPI_Fetch_and_op(nullptr, &found, MPI_UINT64_T, target, at, MPI_NO_OP, window.win));
            CHECK_MPI(MPI_Win_flush(target, window.win));
            CHECK_EQ(found, values[kSteps - 1]);
        }
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        MPI_Barrier(window.comm);
    }
}

// Locks and accumulates in alternating kinds of epochs: those that the target executes, and those that the origin does.
CASE(active_and_passive_epochs_alternate) {
    const int rounds = rounds_of(50);
    Window window(Flavor::kCreate, env.comm, 64);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
    const Word one = 1;
    for (int i = 0; i < rounds; ++i) {
        CHECK_MPI(MPI_Win_fence(0, window.win));
        for (int k = 0; k < 5; ++k)
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win));
        for (int k = 0; k < 5; ++k)
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, window.win));
        CHECK_MPI(MPI_Win_unlock(0, window.win));
        MPI_Barrier(window.comm);
    }
    window.inspect([&](const unsigned char* memory) {
        if (window.rank == 0) CHECK_EQ(first_word(memory), static_cast<Word>(10 * rounds * window.processes));
    });
}

// Rank 0 attaches and detaches other memory all the time; the others find what they need.
CASE(attached_memory_is_found_while_other_memory_comes_and_goes) {
    const int rounds = rounds_of(2000);
    Window window(Flavor::kDynamic, env.comm, 64);
    window.reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
    static unsigned char others[200][32];
    if (window.rank == 0) {
        for (int i = 0; i < rounds / 10; ++i) {
            for (auto& each : others) CHECK_MPI(MPI_Win_attach(window.win, each, sizeof each));
            for (auto& each : others) CHECK_MPI(MPI_Win_detach(window.win, each));
        }
    } else {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        fetch_and_add(window, 0, rounds);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    }
    window.inspect([&](const unsigned char* memory) {
        if (window.rank == 0) CHECK_EQ(first_word(memory), static_cast<Word>(rounds * (window.processes - 1)));
    });
}

// With a small osc_multirail_rendezvous_min, they travel as messages of the PML.
CASE(many_long_blocks_in_an_epoch) {
    constexpr std::size_t kBlocks = 300, kBytes = 4000;
    Window window(Flavor::kCreate, env.comm, kBlocks * kBytes);
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    const Bytes data = message(key_of("blocks", as_size(window.rank)), kBlocks * kBytes),
                expected = message(key_of("blocks", as_size(before)), kBlocks * kBytes);
    Bytes found(kBlocks * kBytes);
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (std::size_t i = 0; i < kBlocks; ++i)
        CHECK_MPI(MPI_Put(&data[i * kBytes], kBytes, MPI_BYTE, next, window.at(next, i * kBytes), kBytes, MPI_BYTE,
                          window.win));
    CHECK_MPI(MPI_Win_fence(0, window.win));
    check_bytes(window.memory, expected, "put");
    CHECK_MPI(MPI_Win_fence(0, window.win));
    for (std::size_t i = 0; i < kBlocks; ++i)
        CHECK_MPI(MPI_Get(&found[i * kBytes], kBytes, MPI_BYTE, next, window.at(next, i * kBytes), kBytes, MPI_BYTE,
                          window.win));
    CHECK_MPI(MPI_Win_fence(0, window.win));
    check_bytes(found.data(), data, "got");
}

// The kernel refuses rank 1 further copies, so that its accumulates are executed by the target. They stay atomic with those
// of the others.
CASE(the_kernel_refuses_one_process_later) {
    if (!has_argument("denied")) return;
    const int rounds = rounds_of(3000);
    Window created(Flavor::kCreate, env.comm, 64), dynamic(Flavor::kDynamic, env.comm, 64);
    for (Window* const each : {&created, &dynamic})
        each->reset([](unsigned char* memory) { std::memset(memory, 0, 64); });
    if (env.rank == 1) CHECK_EQ(deny(SYS_process_vm_readv, SYS_process_vm_writev), 0);
    // Others have to ask again what is attached.
    Bytes more(64);
    CHECK_MPI(MPI_Win_attach(dynamic.win, more.data(), 64));
    MPI_Barrier(env.comm);
    for (Window* const each : {&dynamic, &created}) {
        CHECK_MPI(MPI_Win_lock_all(0, each->win));
        fetch_and_add(*each, 0, rounds);
        for (Word seen = 0; env.rank != 0;) {
            const Word next = seen + 1, expected = seen;
            CHECK_MPI(MPI_Compare_and_swap(&next, &expected, &seen, MPI_UINT64_T, 0, each->at(0, 8), each->win));
            CHECK_MPI(MPI_Win_flush(0, each->win));
            if (seen == expected) break;
        }
        CHECK_MPI(MPI_Win_unlock_all(each->win));
        each->inspect([&](const unsigned char* memory) {
            if (each->rank != 0) return;
            CHECK_EQ(first_word(memory), static_cast<Word>(rounds * each->processes));
            CHECK_EQ(first_word(memory + 8), static_cast<Word>(each->processes - 1));
        });
    }
    CHECK_MPI(MPI_Win_detach(dynamic.win, more.data()));
}

// The job must end by itself. Locks, copies and accumulates are under way when the target dies.
CASE(a_target_is_killed) {
    if (!has_argument("killed")) return;
    Window window(Flavor::kCreate, env.comm, 100'000);
    MPI_Barrier(window.comm);
    if (window.rank == 0) {
        usleep(200'000);
        raise(SIGKILL);
    }
    const Bytes data(100'000, 7);
    for (;;) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win));
        CHECK_MPI(MPI_Put(data.data(), 100'000, MPI_BYTE, 0, 0, 100'000, MPI_BYTE, window.win));
        fetch_and_add(window, 0, 0);
        CHECK_MPI(MPI_Win_unlock(0, window.win));
    }
}
