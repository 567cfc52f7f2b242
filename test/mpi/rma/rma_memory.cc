// SPDX-License-Identifier: BSD-3-Clause
// How much memory a process needs for operations that are under way, however many the program starts in one epoch: each case
// limits the growth of the process's memory.
#include <cstdio>
#include <cstdlib>

#include "window.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 300; });

constexpr std::size_t kMostGrowth = std::size_t{32} << 20;
constexpr std::size_t kWord = 8, kStride = 2 * kWord;

// A line of /proc/self/status, in bytes.
std::size_t memory_of(const char* name) {
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    CHECK(file != nullptr);
    char line[256];
    std::size_t kib = 0;
    while (std::fgets(line, sizeof line, file))
        if (std::strncmp(line, name, std::strlen(name)) == 0)
            kib = std::strtoull(line + std::strlen(name), nullptr, 10);
    std::fclose(file);
    CHECK(kib > 0);
    return kib << 10;
}

// The largest growth of this process's memory since the constructor.
class Growth {
public:
    Growth() {
        // The highest value so far becomes the present one.
        if (std::FILE* const file = std::fopen("/proc/self/clear_refs", "w")) {
            std::fputs("5", file);
            std::fclose(file);
        }
        start_ = memory_of("VmRSS:");
    }
    std::size_t bytes() const {
        const std::size_t most = memory_of("VmHWM:");
        return most > start_ ? most - start_ : 0;
    }

private:
    std::size_t start_;
};

// The case fails if some process has grown too much.
void check_growth(const Window& window, const Growth& growth, const char* what) {
    const unsigned long long own = growth.bytes();
    std::vector<unsigned long long> all(as_size(window.processes));
    MPI_Gather(&own, 1, MPI_UNSIGNED_LONG_LONG, all.data(), 1, MPI_UNSIGNED_LONG_LONG, 0, window.comm);
    if (window.rank == 0) {
        std::printf("%s: memory has grown by", what);
        for (const unsigned long long each : all) std::printf(" %.1f", static_cast<double>(each) / (1 << 20));
        std::printf(" MiB\n");
        std::fflush(stdout);
    }
    CHECK(own <= kMostGrowth);
    MPI_Barrier(window.comm);
}

void fill(Window& window, unsigned char value) {
    window.reset([&](unsigned char* memory) { std::memset(memory, value, window.bytes); });
}

unsigned char value_of(int rank, std::size_t i) { return static_cast<unsigned char>(i * 7 + as_size(rank) + 1); }

constexpr std::size_t kSources =
    1024;  // blocks at an origin, from which it puts all others: registered memory costs, too

// All others put `count` blocks to the last process, each to a place of its own with a gap behind it, and it stays that way.
// epoch(puts) opens and closes an epoch around the call puts(), which is made by the origins.
template <class F>
void put_blocks(Window& window, std::size_t count, std::size_t block, std::size_t stride, F epoch) {
    const int target = window.processes - 1, origins = target;
    const std::size_t share = count / as_size(origins) * stride;
    fill(window, 0);
    Bytes data(kSources * block);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value_of(window.rank, i / block);
    MPI_Barrier(window.comm);
    epoch([&] {
        for (std::size_t i = 0; i < count / as_size(origins); ++i)
            CHECK_MPI(MPI_Put(&data[i % kSources * block], as_int(block), MPI_BYTE, target,
                              window.at(target, as_size(window.rank) * share + i * stride), as_int(block), MPI_BYTE,
                              window.win));
    });
    window.inspect([&](const unsigned char* memory) {
        if (window.rank != target) return;
        for (int origin = 0; origin < origins; ++origin)
            for (std::size_t i = 0; i < share; ++i) {
                const std::size_t number = i / stride % kSources;
                const unsigned char expected = i % stride < block ? value_of(origin, number) : 0;
                CHECK_EQ(memory[as_size(origin) * share + i], expected);
            }
    });
}

// The last process only takes part in the fences.
template <class F>
auto by_fences(const Window& window, F measured) {
    return [&window, measured](auto operations) {
        CHECK_MPI(MPI_Win_fence(0, window.win));
        const Growth growth;
        if (window.rank != window.processes - 1) operations();
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        measured(growth);
    };
}
template <class F>
auto by_lock_all(const Window& window, F measured) {
    return [&window, measured](auto operations) {
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        MPI_Barrier(window.comm);
        const Growth growth;
        if (window.rank != window.processes - 1) operations();
        CHECK_MPI(MPI_Win_flush_all(window.win));
        MPI_Barrier(window.comm);
        measured(growth);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    };
}

void many_puts(const mpitest::Env& env, int in_fences, int with_locks, std::size_t block, std::size_t stride,
               const char* what) {
    const auto scaled = [](int n) { return as_size(n / mpitest::hang_scale()); };
    Window window(Flavor::kCreate, env.comm, scaled(in_fences) * stride);
    const auto measured = [&](const Growth& growth) { check_growth(window, growth, what); };
    put_blocks(window, scaled(in_fences), block, stride, by_fences(window, measured));
    put_blocks(window, scaled(with_locks), block, stride, by_lock_all(window, measured));
}

// Rank 0 is the target, all others get all of its memory, in blocks of `block` bytes; `fetches`: by accumulates.
void many_gets(const mpitest::Env& env, Flavor flavor, std::size_t bytes, std::size_t block, bool fences,
               const char* what, bool fetches = false) {
    const std::size_t size = bytes / as_size(mpitest::hang_scale()) / (is_short() ? 4 : 1) / block * block;
    Window window(flavor, env.comm, env.rank == 0 ? size : 64);
    const auto key = key_of(what, 1);
    window.reset([&](unsigned char* memory) {
        if (window.rank == 0) pattern::fill(key, 0, memory, size);
    });
    Bytes all(window.rank == 0 ? 0 : size, 0xee);
    if (fences) CHECK_MPI(MPI_Win_fence(0, window.win));
    else CHECK_MPI(MPI_Win_lock_all(0, window.win));
    MPI_Barrier(window.comm);
    const Growth growth;
    for (std::size_t at = 0; fetches && at < all.size(); at += block)
        CHECK_MPI(MPI_Get_accumulate(nullptr, 0, MPI_BYTE, &all[at], as_int(block), MPI_BYTE, 0, window.at(0, at),
                                     as_int(block), MPI_BYTE, MPI_NO_OP, window.win));
    for (std::size_t at = 0; !fetches && at < all.size(); at += block)
        CHECK_MPI(MPI_Get(&all[at], as_int(block), MPI_BYTE, 0, window.at(0, at), as_int(block), MPI_BYTE, window.win));
    if (fences) CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
    else CHECK_MPI(MPI_Win_flush_all(window.win));
    MPI_Barrier(window.comm);
    check_growth(window, growth, what);
    if (!fences) CHECK_MPI(MPI_Win_unlock_all(window.win));
    CHECK_PATTERN(key, all.data(), all.size());
}

}  // namespace

CASE(millions_of_short_puts) { many_puts(env, 2500000, 500000, kWord, kStride, "short puts"); }

CASE(many_puts_without_a_copy) { many_puts(env, 20000, 20000, 4096, 4096 + 64, "puts of 4 KiB"); }

CASE(many_puts_of_middle_length) { many_puts(env, 20000, 20000, 2048, 2048 + 64, "puts of 2 KiB"); }

// The target answers with messages, because no HCA may read memory that is attached.
CASE(a_long_get_from_dynamic_memory) {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    many_gets(env, Flavor::kDynamic, kBytes, kBytes / 4 / as_size(mpitest::hang_scale()), true, "a long get in fences");
    many_gets(env, Flavor::kDynamic, kBytes, kBytes / 4 / as_size(mpitest::hang_scale()), false,
              "a long get with locks");
}

// A record of 24 bytes asks the target for 8 KiB.
CASE(many_gets_from_dynamic_memory) {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    many_gets(env, Flavor::kDynamic, kBytes, 8192, true, "gets of 8 KiB in fences");
    many_gets(env, Flavor::kDynamic, kBytes, 8192, false, "gets of 8 KiB with locks");
}

CASE(many_fetches_without_data) {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    many_gets(env, Flavor::kDynamic, kBytes, 8192, true, "fetches of 8 KiB in fences", true);
    many_gets(env, Flavor::kDynamic, kBytes, 8192, false, "fetches of 8 KiB with locks", true);
}

CASE(many_short_gets) {
    constexpr std::size_t kBytes = 4 << 20;
    many_gets(env, Flavor::kCreate, kBytes, kWord, true, "short gets in fences");
    many_gets(env, Flavor::kCreate, kBytes, kWord, false, "short gets with locks");
}
