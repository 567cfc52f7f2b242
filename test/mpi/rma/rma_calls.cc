// SPDX-License-Identifier: BSD-3-Clause
// Every communication call in every kind of epoch on windows of every flavour, from each process to each process, itself
// included: the whole memory, all results and the memory around them are compared.
#include <list>

#include "operation.h"
#include "synchronization.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

constexpr std::size_t kSizes[] = {1, 8, 105, 4096, 20000};
constexpr std::size_t kGap = 24;

// Where the calls of a process with each size work in the memory of a target.
struct Places {
    Places() {
        std::size_t at = 8;
        for (const std::size_t size : kSizes) places.push_back(at), at += (size + kGap) / 8 * 8;
        of_one_process = at;
    }
    std::size_t of(int origin, std::size_t i) const { return as_size(origin) * of_one_process + places[i]; }
    std::vector<std::size_t> places;
    std::size_t of_one_process;
};
const Places kPlaces;

std::uint64_t number(int origin, int target, std::size_t i) {
    return (static_cast<std::uint64_t>(origin) * 1000 + static_cast<std::uint64_t>(target)) * 100 + i;
}

// A window whose contents are known, and what other processes then make of it.
class Matrix {
public:
    Matrix(Flavor flavor, MPI_Comm comm)
        : window_(flavor, comm, kPlaces.of_one_process * as_size(size_of(comm))),
          name_(kFlavorNames[static_cast<int>(flavor)]) {}

    void exercise(Sync sync, Call call) {
        ++round_;
        const std::string what = name_ + ", " + kCallNames[static_cast<int>(call)];
        window_.reset(
            [&](unsigned char* memory) { pattern::fill(contents_of(window_.rank), 0, memory, window_.bytes); });
        std::vector<std::list<Operation>> operations(as_size(window_.processes));
        Epoch epoch(sync, window_, only_reads(call));
        epoch.run(
            [&](int target) {
                for (std::size_t i = 0; i < std::size(kSizes); ++i) {
                    Operation& one = operations[as_size(target)].emplace_back(
                        call, key(call, number(window_.rank, target, i)), kSizes[i]);
                    one.start(window_, target, kPlaces.of(window_.rank, i), before(target, i));
                }
                for (Operation& one : operations[as_size(target)]) one.wait();
            },
            [&](int target) {
                std::size_t i = 0;
                for (Operation& one : operations[as_size(target)]) {
                    one.spoil();
                    one.check_result(before(target, i++), what + " from rank " + std::to_string(target));
                }
            });
        window_.inspect([&](const unsigned char* memory) { check_bytes(memory, expected(call), what); });
    }

private:
    std::uint64_t key(Call call, std::uint64_t n) const {
        return key_of("call", static_cast<std::uint64_t>(call), n, round_);
    }
    std::uint64_t contents_of(int target) const {
        return key_of("contents", static_cast<std::uint64_t>(target), round_);
    }
    Bytes before(int target, std::size_t i) const {
        const Bytes all = message(contents_of(target), window_.bytes);
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(kPlaces.of(window_.rank, i));
        return Bytes(at, at + static_cast<std::ptrdiff_t>(kSizes[i]));
    }
    Bytes expected(Call call) const {
        Bytes all = message(contents_of(window_.rank), window_.bytes);
        for (int origin = 0; origin < window_.processes; ++origin)
            for (std::size_t i = 0; i < std::size(kSizes); ++i)
                Operation::apply(call, key(call, number(origin, window_.rank, i)), kSizes[i],
                                 all.data() + kPlaces.of(origin, i));
        return all;
    }

    Window window_;
    std::string name_;
    std::uint64_t round_ = 0;
};

// Where stock Open MPI crashes or hangs, so that the rest can be tested there.
bool works_here(Flavor flavor, Sync sync, Call call) {
    if (!mpitest::on_ob1()) return true;
    // osc/sm counts the ends of the first epoch in the second one.
    if (sync == Sync::kPscwAsserted && flavor != Flavor::kCreate && flavor != Flavor::kDynamic) return false;
    // osc/rdma over btl/vader sends to an endpoint that is null.
    return call != Call::kCompareAndSwap || flavor == Flavor::kShared;
}

// Calls that return a request are allowed in passive epochs only.
void all_calls(const mpitest::Env& env, Sync sync) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Matrix matrix(flavor, members.comm);
        for (int call = 0; call < (Epoch::is_passive(sync) ? kCalls : kCallsWithoutRequest); ++call)
            if (works_here(flavor, sync, static_cast<Call>(call))) matrix.exercise(sync, static_cast<Call>(call));
    }
}

}  // namespace

CASE(fence) { all_calls(env, Sync::kFence); }
CASE(fence_with_all_assertions) { all_calls(env, Sync::kFenceAsserted); }
CASE(post_start_complete_wait) { all_calls(env, Sync::kPscw); }
CASE(post_start_complete_test) { all_calls(env, Sync::kPscwTest); }
CASE(post_and_start_with_all_assertions) { all_calls(env, Sync::kPscwAsserted); }
CASE(exclusive_locks) { all_calls(env, Sync::kLockExclusive); }
CASE(shared_locks) { all_calls(env, Sync::kLockShared); }
CASE(locks_that_need_no_check) { all_calls(env, Sync::kLockNoCheck); }
CASE(lock_flush_unlock) { all_calls(env, Sync::kLockFlush); }
CASE(lock_flush_local_unlock) { all_calls(env, Sync::kLockFlushLocal); }
CASE(locks_of_all_processes_at_once) { all_calls(env, Sync::kLocks); }
CASE(lock_all) { all_calls(env, Sync::kLockAll); }
CASE(lock_all_that_needs_no_check) { all_calls(env, Sync::kLockAllNoCheck); }
CASE(lock_all_with_flush) { all_calls(env, Sync::kFlush); }
CASE(lock_all_with_flush_local) { all_calls(env, Sync::kFlushLocal); }
CASE(lock_all_with_flush_all) { all_calls(env, Sync::kFlushAll); }
CASE(lock_all_with_flush_local_all) { all_calls(env, Sync::kFlushLocalAll); }

// One epoch after the other on the same window, of different kinds.
CASE(epochs_of_all_kinds_follow_each_other) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Matrix matrix(flavor, members.comm);
        for (int i = 0; i <= static_cast<int>(Sync::kFlushLocalAll); ++i) {
            const Sync sync = static_cast<Sync>(i * 5 % (static_cast<int>(Sync::kFlushLocalAll) + 1));
            const Call call = static_cast<Call>(i % kCallsWithoutRequest);
            if (works_here(flavor, sync, call)) matrix.exercise(sync, call);
        }
    }
}

CASE(calls_to_no_process_do_nothing) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 64);
        window.reset([](unsigned char* memory) { std::memset(memory, 7, 64); });
        Bytes sent(64, 1), result(64, 2);
        std::uint64_t one = 1, compared = 2, returned = 3;
        MPI_Request requests[4];
        const auto calls = [&] {
            CHECK_MPI(MPI_Put(sent.data(), 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Get(result.data(), 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Accumulate(&one, 1, MPI_UINT64_T, MPI_PROC_NULL, 0, 1, MPI_UINT64_T, MPI_SUM, window.win));
            CHECK_MPI(MPI_Get_accumulate(&one, 1, MPI_UINT64_T, &returned, 1, MPI_UINT64_T, MPI_PROC_NULL, 0, 1,
                                         MPI_UINT64_T, MPI_SUM, window.win));
            CHECK_MPI(MPI_Fetch_and_op(&one, &returned, MPI_UINT64_T, MPI_PROC_NULL, 0, MPI_SUM, window.win));
            CHECK_MPI(MPI_Compare_and_swap(&one, &compared, &returned, MPI_UINT64_T, MPI_PROC_NULL, 0, window.win));
        };
        CHECK_MPI(MPI_Win_fence(0, window.win));
        calls();
        CHECK_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        calls();
        CHECK_MPI(MPI_Rput(sent.data(), 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, window.win, &requests[0]));
        CHECK_MPI(MPI_Rget(result.data(), 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, window.win, &requests[1]));
        CHECK_MPI(MPI_Raccumulate(&one, 1, MPI_UINT64_T, MPI_PROC_NULL, 0, 1, MPI_UINT64_T, MPI_SUM, window.win,
                                  &requests[2]));
        CHECK_MPI(MPI_Rget_accumulate(&one, 1, MPI_UINT64_T, &returned, 1, MPI_UINT64_T, MPI_PROC_NULL, 0, 1,
                                      MPI_UINT64_T, MPI_SUM, window.win, &requests[3]));
        CHECK_MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        CHECK_UNTOUCHED(2, result.data(), 64);
        CHECK_EQ(returned, 3);
        window.inspect([](const unsigned char* memory) { CHECK_UNTOUCHED(7, memory, 64); });
    }
}

// Counts of 0 at any displacement inside, and elements without bytes; buffers may be null.
CASE(calls_without_data_do_nothing) {
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 64);
        window.reset([](unsigned char* memory) { std::memset(memory, 7, 64); });
        for (int target = 0; target < window.processes; ++target) {
            MPI_Request requests[4];
            const MPI_Aint at = window.at(target, 16), first = window.at(target, 0);
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
            CHECK_MPI(MPI_Put(nullptr, 0, MPI_BYTE, target, at, 0, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Put(nullptr, 3, empty, target, at, 0, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Put(nullptr, 0, MPI_INT, target, at, 4, empty, window.win));
            CHECK_MPI(MPI_Get(nullptr, 0, MPI_BYTE, target, first, 0, MPI_BYTE, window.win));
            CHECK_MPI(MPI_Accumulate(nullptr, 0, MPI_INT, target, at, 0, MPI_INT, MPI_SUM, window.win));
            CHECK_MPI(MPI_Get_accumulate(nullptr, 0, MPI_INT, nullptr, 0, MPI_INT, target, at, 0, MPI_INT, MPI_SUM,
                                         window.win));
            CHECK_MPI(MPI_Rput(nullptr, 0, MPI_BYTE, target, at, 0, MPI_BYTE, window.win, &requests[0]));
            CHECK_MPI(MPI_Rget(nullptr, 0, MPI_BYTE, target, at, 0, MPI_BYTE, window.win, &requests[1]));
            CHECK_MPI(MPI_Raccumulate(nullptr, 0, MPI_INT, target, at, 0, MPI_INT, MPI_SUM, window.win, &requests[2]));
            CHECK_MPI(MPI_Rget_accumulate(nullptr, 0, MPI_INT, nullptr, 0, MPI_INT, target, at, 0, MPI_INT, MPI_SUM,
                                          window.win, &requests[3]));
            CHECK_MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
            CHECK_MPI(MPI_Win_unlock(target, window.win));
        }
        window.inspect([](const unsigned char* memory) { CHECK_UNTOUCHED(7, memory, 64); });
    }
    MPI_Type_free(&empty);
}
