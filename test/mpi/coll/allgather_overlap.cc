// SPDX-License-Identifier: BSD-3-Clause
// MPI_Iallgather by coll/rdmaag while a rank computes, with pml_coop_async: the calls of the other ranks, which need steps
// of that rank, become complete before it calls MPI again. Argument: file=PATH, an empty file through which the ranks
// synchronise without MPI.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "pending.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

constexpr double kLimit = 20;  // seconds

// A counter in the file.
std::atomic<int>& open_counter() {
    for (const std::string& word : mpitest::settings().arguments) {
        if (word.rfind("file=", 0) != 0) continue;
        const int file = open(word.substr(5).c_str(), O_RDWR);
        CHECK(file >= 0 && ftruncate(file, sizeof(std::atomic<int>)) == 0);
        void* memory = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        CHECK(memory != MAP_FAILED);
        return *static_cast<std::atomic<int>*>(memory);
    }
    mpitest::fail(__FILE__, __LINE__, "no argument file=PATH");
}

void compute_until(const std::atomic<int>& counter, int value) {
    for (const double end = MPI_Wtime() + kLimit; counter.load() < value;)
        if (MPI_Wtime() > end)
            mpitest::fail(__FILE__, __LINE__,
                          std::to_string(value - counter.load()) + " ranks wait for the one that computes");
}

// The calls of all ranks but one are complete before that one calls MPI again.
void others_complete(Gathering& all, std::atomic<int>& complete_ones, const Shape& shape, std::size_t outstanding,
                     int count) {
    static int target = 0;
    static std::uint64_t number = 0;
    for (int computes = 0; computes < all.size(); ++computes) {
        MPI_Barrier(all.comm());
        target += all.size() - 1;
        Several several;
        for (std::size_t i = 0; i < outstanding; ++i)
            several.emplace_back(all.comm(), ++number, equal_blocks(all.size(), count), false, shape);
        if (all.rank() == computes) compute_until(complete_ones, target);
        complete(several, kWaitall);
        if (all.rank() != computes) complete_ones.fetch_add(1);
    }
    MPI_Barrier(all.comm());
}

}  // namespace

CASE(calls_become_complete_while_a_rank_computes) {
    std::atomic<int>& complete_ones = open_counter();
    Gathering all(duplicate(env.comm));
    all.equal(8);
    for (const int bytes : {1, 3000, 20000, 300000}) others_complete(all, complete_ones, Shape{}, 1, bytes);
    // More than a window of calls.
    for (const int bytes : {8, 20000}) others_complete(all, complete_ones, Shape{}, 11, bytes);
    // Calls that the computing rank leaves to its next call of MPI.
    Shape gaps;
    MPI_Type_create_resized(MPI_INT, 0, 12, &gaps.type);
    MPI_Type_commit(&gaps.type);
    gaps.extent = 12;
    gaps.part_bytes = 4;
    for (const int ints : {2, 10000}) others_complete(all, complete_ones, gaps, 6, ints);
    MPI_Type_free(&gaps.type);
}
