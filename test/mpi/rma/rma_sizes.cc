// SPDX-License-Identifier: BSD-3-Clause
// Calls of 1 byte to 4 MiB, around the limits of transports and of osc/multirail's frames, at even and odd places, to the
// next process and to oneself.
#include <sys/mman.h>

#include "operation.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

constexpr std::size_t kMost = 4 << 20, kAround = 32;

std::vector<std::size_t> sizes_of_interest() {
    std::vector<std::size_t> all = {1, 2, 3, 7, 9, 31, 100, 1000, 3000, 50000, 300001, 2000003, kMost};
    for (std::size_t limit = 64; limit <= (1 << 20); limit *= limit >= 65536 ? 16 : limit >= 8192 ? 2 : 4)
        for (const std::size_t n : {limit - 1, limit, limit + 1}) all.push_back(n);
    return all;
}

void every_size(const mpitest::Env& env, Flavor flavor, Call call, Sync sync) {
    const Members members(flavor, env.comm);
    Window window(flavor, members.comm, kMost + 2 * kAround);
    std::uint64_t round = 0;
    for (const std::size_t size : sizes_of_interest()) {
        if (is_short() && size % 4 == 3) continue;
        const int next = (window.rank + 1) % window.processes,
                  before = (window.rank + window.processes - 1) % window.processes;
        const int target = ++round % 8 == 0 ? window.rank : next, origin = round % 8 == 0 ? window.rank : before;
        const std::size_t at = kAround + (round % 3 == 0 ? 1 : 0) * (size % 8), beyond = size + 2 * kAround;
        const auto key = [&](int rank) { return key_of("sent", static_cast<std::uint64_t>(rank), round); };
        const auto contents = [&](int rank) {
            return message(key_of("contents", static_cast<std::uint64_t>(rank), round), beyond);
        };
        Bytes expected = contents(window.rank);
        window.reset([&](unsigned char* memory) { std::copy(expected.begin(), expected.end(), memory); });
        const Bytes theirs = contents(target);
        const Bytes part(theirs.begin() + static_cast<std::ptrdiff_t>(at),
                         theirs.begin() + static_cast<std::ptrdiff_t>(at + size));
        const std::string what = std::string(kCallNames[static_cast<int>(call)]) + " of " + std::to_string(size) +
                                 " bytes";
        Operation one(call, key(window.rank), size);
        Epoch epoch(sync, window, only_reads(call));
        epoch.run(
            [&](int each) {
                if (each != target) return;
                one.start(window, target, at, part);
                one.wait();
            },
            [&](int each) {
                if (each == target) one.check_result(part, what);
            });
        Operation::apply(call, key(origin), size, expected.data() + at);
        window.inspect([&](const unsigned char* memory) { check_bytes(memory, expected, what); });
    }
}

}  // namespace

CASE(put_in_fences_of_a_created_window) { every_size(env, Flavor::kCreate, Call::kPut, Sync::kFence); }
CASE(get_in_fences_of_a_created_window) { every_size(env, Flavor::kCreate, Call::kGet, Sync::kFenceAsserted); }
CASE(put_under_locks_of_an_allocated_window) { every_size(env, Flavor::kAllocate, Call::kPut, Sync::kLockShared); }
CASE(get_under_locks_of_a_created_window) { every_size(env, Flavor::kCreate, Call::kGet, Sync::kLockExclusive); }
CASE(put_and_flush_in_a_dynamic_window) { every_size(env, Flavor::kDynamic, Call::kPut, Sync::kFlush); }
CASE(get_and_flush_local_in_an_allocated_window) { every_size(env, Flavor::kAllocate, Call::kGet, Sync::kFlushLocal); }
CASE(put_in_a_shared_window) { every_size(env, Flavor::kShared, Call::kPut, Sync::kFlushAll); }
CASE(put_between_post_and_wait) { every_size(env, Flavor::kCreate, Call::kPut, Sync::kPscw); }
CASE(get_between_post_and_wait) { every_size(env, Flavor::kDynamic, Call::kGet, Sync::kPscw); }
CASE(accumulate_in_fences) { every_size(env, Flavor::kCreate, Call::kAccumulate, Sync::kFence); }
CASE(accumulate_under_locks) { every_size(env, Flavor::kAllocate, Call::kAccumulate, Sync::kLockShared); }
CASE(get_accumulate_between_post_and_wait) { every_size(env, Flavor::kCreate, Call::kGetAccumulate, Sync::kPscwTest); }
CASE(get_accumulate_and_flush) { every_size(env, Flavor::kCreate, Call::kGetAccumulate, Sync::kFlush); }
CASE(rput) { every_size(env, Flavor::kCreate, Call::kRput, Sync::kLockAll); }
CASE(rget) { every_size(env, Flavor::kAllocate, Call::kRget, Sync::kLockAll); }
CASE(raccumulate) { every_size(env, Flavor::kDynamic, Call::kRaccumulate, Sync::kLockAll); }
CASE(rget_accumulate) { every_size(env, Flavor::kCreate, Call::kRgetAccumulate, Sync::kLockAll); }

// The transport cannot register what lies between the blocks.
CASE(long_puts_from_both_sides_of_memory_that_does_not_exist) {
    constexpr std::size_t kBlock = 64 << 10, kBytes = 3 * kBlock;
    Window window(Flavor::kAllocate, env.comm, 2 * kBlock);
    void* const all = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    auto* const from = static_cast<unsigned char*>(all);
    const auto key = [](int rank) { return key_of("both sides", static_cast<std::uint64_t>(rank)); };
    pattern::fill(key(window.rank), 0, from, kBlock);
    pattern::fill(key(window.rank), kBlock, from + 2 * kBlock, kBlock);
    CHECK(munmap(from + kBlock, kBlock) == 0);
    MPI_Datatype blocks;
    MPI_Type_vector(2, static_cast<int>(kBlock), static_cast<int>(2 * kBlock), MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    for (const bool locks : {false, true})
        for (int round = 0; round < 5; ++round) {
            window.reset([](unsigned char* memory) { std::memset(memory, 0, 2 * kBlock); });
            CHECK_MPI(locks ? MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win) : MPI_Win_fence(0, window.win));
            CHECK_MPI(MPI_Put(from, 1, blocks, next, window.at(next, 0), 2 * kBlock, MPI_BYTE, window.win));
            CHECK_MPI(locks ? MPI_Win_unlock(next, window.win) : MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
            window.inspect([&](const unsigned char* memory) { CHECK_PATTERN(key(before), memory, 2 * kBlock); });
        }
    MPI_Type_free(&blocks);
    munmap(from, kBlock);
    munmap(from + 2 * kBlock, kBlock);
}

// HCAs need no right to write to the origin of a put.
CASE(long_puts_from_memory_that_may_only_be_read) {
    constexpr std::size_t kBytes = 256 << 10;
    Window window(Flavor::kAllocate, env.comm, kBytes);
    void* const pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    const auto key = [](int rank) { return key_of("only read", static_cast<std::uint64_t>(rank)); };
    pattern::fill(key(window.rank), 0, static_cast<unsigned char*>(pages), kBytes);
    CHECK(mprotect(pages, kBytes, PROT_READ) == 0);
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    for (const bool locks : {false, true}) {
        window.reset([](unsigned char* memory) { std::memset(memory, 0, kBytes); });
        CHECK_MPI(locks ? MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win) : MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Put(pages, kBytes, MPI_BYTE, next, window.at(next, 0), kBytes, MPI_BYTE, window.win));
        CHECK_MPI(locks ? MPI_Win_unlock(next, window.win) : MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        window.inspect([&](const unsigned char* memory) { CHECK_PATTERN(key(before), memory, kBytes); });
    }
    munmap(pages, kBytes);
}
