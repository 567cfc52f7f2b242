// SPDX-License-Identifier: BSD-3-Clause
// Accesses beyond a window give MPI_ERR_RMA_RANGE and touch nothing; memory that cannot be attached gives
// MPI_ERR_RMA_ATTACH, a shared window of several nodes MPI_ERR_RMA_SHARED, a call for another flavour MPI_ERR_RMA_FLAVOR.
#include <limits>

#include "issue.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 30; });

constexpr std::size_t kBytes = 256;
constexpr unsigned char kContents = 0x42;

#define BEYOND(win, target, at, bytes) check_all_refused(MPI_ERR_RMA_RANGE, win, target, at, bytes, __LINE__)

// Calls f(window, target) in lock_all, for the next process and this one. The window must work afterwards.
template <class F>
void with_windows(const mpitest::Env& env, int unit, F f) {
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kShared}) {
        if (mpitest::on_ob1() && flavor != Flavor::kCreate) continue;  // osc/sm does not check ranges
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kBytes, unit);
        window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        f(window, window.rank);
        f(window, (window.rank + 1) % window.processes);
        CHECK_MPI(MPI_Win_unlock_all(window.win));
        check_usable(window, kContents);
    }
}

MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

// A put and a get with this type at the target must be refused.
void check_type_refused(MPI_Win win, int target, MPI_Aint at, MPI_Datatype type, int line) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    Bytes memory(as_size(bytes), kContents);
    mpitest::check_error_class(MPI_Put(memory.data(), bytes, MPI_BYTE, target, at, 1, type, win), MPI_ERR_RMA_RANGE,
                               "put", "", line);
    mpitest::check_error_class(MPI_Get(memory.data(), bytes, MPI_BYTE, target, at, 1, type, win), MPI_ERR_RMA_RANGE,
                               "get", "", line);
    CHECK_UNTOUCHED(kContents, memory.data(), memory.size());
}

}  // namespace

CASE(just_beyond_the_end) {
    with_windows(env, 1, [](Window& window, int target) {
        BEYOND(window.win, target, kBytes, 1);
        BEYOND(window.win, target, kBytes - 7, 8);
        BEYOND(window.win, target, 1000000, 8);
        // The calls on one element would stay inside.
        for (const Call call :
             {Call::kPut, Call::kGet, Call::kAccumulate, Call::kGetAccumulate, Call::kRput, Call::kRget})
            check_refused(call, MPI_ERR_RMA_RANGE, window.win, target, 0, kBytes + 1, __LINE__);
        // Up to the end is right.
        check_refused(Call::kGet, MPI_SUCCESS, window.win, target, kBytes - 1, 1, __LINE__);
        check_refused(Call::kGet, MPI_SUCCESS, window.win, target, 0, kBytes, __LINE__);
        CHECK_MPI(MPI_Win_flush(target, window.win));
    });
}

// After a fence, another kind of epoch may begin as long as nothing has been transferred. A refused call transfers nothing.
CASE(a_refused_access_does_not_use_the_epoch_of_a_fence) {
    if (mpitest::skipped_on_ob1("osc/rdma remembers the call")) return;
    for (const Flavor flavor : {Flavor::kCreate, Flavor::kAllocate, Flavor::kShared}) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kBytes);
        window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
        const int next = (window.rank + 1) % window.processes;
        CHECK_MPI(MPI_Win_fence(0, window.win));
        BEYOND(window.win, next, kBytes, 8);
        check_refused(Call::kPut, MPI_ERR_RANK, window.win, window.processes, 0, 8, __LINE__);
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        check_refused(Call::kGet, MPI_SUCCESS, window.win, next, 0, 8, __LINE__);
        CHECK_MPI(MPI_Win_unlock(next, window.win));
        check_usable(window, kContents);
    }
}

// The first operation on a target looks closer than the ones after it, which check the range as well.
CASE(beyond_the_end_after_an_operation) {
    with_windows(env, 1, [](Window& window, int target) {
        check_refused(Call::kGet, MPI_SUCCESS, window.win, target, 0, 8, __LINE__);
        BEYOND(window.win, target, kBytes, 1);
        BEYOND(window.win, target, kBytes - 7, 8);
        check_refused(Call::kGet, MPI_SUCCESS, window.win, target, kBytes - 8, 8, __LINE__);
        CHECK_MPI(MPI_Win_flush(target, window.win));
    });
}

CASE(beyond_the_end_in_units) {
    with_windows(env, 8, [](Window& window, int target) {
        BEYOND(window.win, target, kBytes / 8, 1);
        for (const Call call : {Call::kPut, Call::kGet, Call::kAccumulate, Call::kRput, Call::kRget})
            check_refused(call, MPI_ERR_RMA_RANGE, window.win, target, kBytes / 8 - 1, 9, __LINE__);
        check_refused(Call::kGet, MPI_SUCCESS, window.win, target, kBytes / 8 - 1, 8, __LINE__);
        CHECK_MPI(MPI_Win_flush(target, window.win));
    });
}

// The displacement in bytes does not fit 64 bits; cut off, it would be inside.
CASE(displacements_that_overflow) {
    if (mpitest::skipped_on_ob1("osc/rdma multiplies without a check, and accesses the window")) return;
    with_windows(env, 8, [](Window& window, int target) {
        constexpr MPI_Aint kMost = std::numeric_limits<MPI_Aint>::max();
        BEYOND(window.win, target, MPI_Aint{1} << 61, 8);
        BEYOND(window.win, target, (MPI_Aint{1} << 61) + 1, 8);
        BEYOND(window.win, target, MPI_Aint{1} << 60, 8);
        BEYOND(window.win, target, kMost, 8);
        BEYOND(window.win, target, kMost / 8 + 1, 8);
    });
    with_windows(env, 1, [](Window& window, int target) {
        BEYOND(window.win, target, std::numeric_limits<MPI_Aint>::max() - 3, 8);
    });
}

CASE(types_that_begin_before_the_window) {
    if (mpitest::skipped_on_ob1("osc/rdma checks the end only")) return;
    MPI_Datatype type;
    const int lengths[] = {4, 4};
    const MPI_Aint places[] = {-4, 8};
    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &type);
    type = committed(type);
    with_windows(env, 1, [&](Window& window, int target) {
        check_type_refused(window.win, target, 0, type, __LINE__);
        check_type_refused(window.win, target, 3, type, __LINE__);
        Bytes got(8);
        CHECK_MPI(MPI_Get(got.data(), 8, MPI_BYTE, target, 4, 1, type, window.win));
        CHECK_MPI(MPI_Win_flush(target, window.win));
        CHECK_UNTOUCHED(kContents, got.data(), 8);
    });
    MPI_Type_free(&type);
}

CASE(types_that_end_beyond_the_window) {
    MPI_Datatype type, wide;
    MPI_Type_vector(4, 4, 64, MPI_BYTE, &type);
    type = committed(type);
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, MPI_Aint{1} << 40};
    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &wide);
    wide = committed(wide);
    with_windows(env, 1, [&](Window& window, int target) {
        // It ends at 3 * 64 + 4.
        check_type_refused(window.win, target, kBytes - 195, type, __LINE__);
        check_type_refused(window.win, target, 0, wide, __LINE__);
        Bytes got(16);
        CHECK_MPI(MPI_Get(got.data(), 16, MPI_BYTE, target, kBytes - 196, 1, type, window.win));
        CHECK_MPI(MPI_Win_flush(target, window.win));
        CHECK_UNTOUCHED(kContents, got.data(), 16);
    });
    MPI_Type_free(&type);
    MPI_Type_free(&wide);
}

// The range of the target counts, not that of the caller.
CASE(beyond_the_end_of_a_smaller_window) {
    if (mpitest::skipped_on_ob1("osc/rdma sometimes crashes when the target's window has no bytes")) return;
    Window window(Flavor::kCreate, env.comm, env.rank % 2 == 0 ? kBytes : 0);
    window.reset([&](unsigned char* memory) { std::memset(memory, kContents, window.bytes); });
    CHECK_MPI(MPI_Win_lock_all(0, window.win));
    for (int t = 0; t < env.size; ++t) {
        if (t % 2 == 0) check_refused(Call::kGet, MPI_SUCCESS, window.win, t, kBytes - 8, 8, __LINE__);
        else BEYOND(window.win, t, 0, 1);
    }
    CHECK_MPI(MPI_Win_unlock_all(window.win));
    window.inspect([&](const unsigned char* memory) { CHECK_UNTOUCHED(kContents, memory, window.bytes); });
}

namespace {

// In dynamic windows only the target may know the range: the error comes from the call, or from the flush.
void check_not_attached(MPI_Win win, int target, MPI_Aint at, int bytes, int line) {
    for (const Call call : {Call::kPut, Call::kGet, Call::kAccumulate, Call::kFetchAndOp}) {
        const int code = issue(call, win, target, at, bytes), flushed = MPI_Win_flush(target, win);
        mpitest::check_error_class(code != MPI_SUCCESS ? code : flushed, MPI_ERR_RMA_RANGE,
                                   kCallNames[static_cast<int>(call)], "", line);
    }
}

}  // namespace

CASE(memory_that_is_not_attached) {
    if (mpitest::skipped_on_ob1("osc/rdma accepts a range that only begins in attached memory, or crashes")) return;
    Window window(Flavor::kDynamic, env.comm, kBytes);
    window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
    const int next = (env.rank + 1) % env.size;
    Bytes other(kBytes, kContents);
    MPI_Aint address;
    MPI_Get_address(other.data(), &address);
    std::vector<MPI_Aint> others(as_size(env.size));
    MPI_Allgather(&address, 1, MPI_AINT, others.data(), 1, MPI_AINT, env.comm);
    const auto refuse = [&](MPI_Aint at, int bytes, int line) {
        CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
        check_not_attached(window.win, next, at, bytes, line);
        CHECK_MPI(MPI_Win_unlock(next, window.win));
    };
    refuse(others[as_size(next)], 8, __LINE__);
    refuse(window.at(next, kBytes), 8, __LINE__);
    refuse(window.at(next, kBytes - 4), 8, __LINE__);
    refuse(window.at(next, 0) - 1, 8, __LINE__);
    refuse(0, 8, __LINE__);
    // Attached and used, then detached.
    MPI_Barrier(env.comm);
    CHECK_MPI(MPI_Win_attach(window.win, other.data(), kBytes));
    MPI_Barrier(env.comm);
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window.win));
    check_refused(Call::kGet, MPI_SUCCESS, window.win, next, others[as_size(next)], 8, __LINE__);
    CHECK_MPI(MPI_Win_unlock(next, window.win));
    check_usable(window, kContents);
    CHECK_MPI(MPI_Win_detach(window.win, other.data()));
    CHECK_UNTOUCHED(kContents, other.data(), kBytes);
}

CASE(attachments_that_are_refused) {
    if (mpitest::skipped_on_ob1("osc/rdma attaches memory that overlaps")) return;
    Window window(Flavor::kDynamic, env.comm, kBytes);
    window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
    Bytes memory(1000, kContents);
    unsigned char* part = memory.data() + 200;
    CHECK_MPI(MPI_Win_attach(window.win, part, 300));
    CHECK_ERROR(MPI_Win_attach(window.win, part, 300), MPI_ERR_RMA_ATTACH);
    CHECK_ERROR(MPI_Win_attach(window.win, part + 299, 10), MPI_ERR_RMA_ATTACH);
    CHECK_ERROR(MPI_Win_attach(window.win, part - 100, 101), MPI_ERR_RMA_ATTACH);
    CHECK_ERROR(MPI_Win_attach(window.win, part - 100, 600), MPI_ERR_RMA_ATTACH);
    CHECK_ERROR(MPI_Win_attach(window.win, part + 10, 10), MPI_ERR_RMA_ATTACH);
    // Memory that touches does not overlap.
    CHECK_MPI(MPI_Win_attach(window.win, part + 300, 100));
    CHECK_MPI(MPI_Win_attach(window.win, part - 100, 100));
    for (unsigned char* unknown : {part + 1, part - 1, part + 299, memory.data()})
        CHECK_ERROR(MPI_Win_detach(window.win, unknown), MPI_ERR_RMA_ATTACH);
    for (unsigned char* known : {part, part + 300, part - 100}) {
        CHECK_MPI(MPI_Win_detach(window.win, known));
        CHECK_ERROR(MPI_Win_detach(window.win, known), MPI_ERR_RMA_ATTACH);
    }
    check_usable(window, kContents);
}

CASE(calls_for_other_flavours) {
    if (mpitest::skipped_on_ob1("osc/rdma attaches memory to any window")) return;
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, kBytes);
        window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
        Bytes memory(64);
        if (flavor != Flavor::kDynamic) {
            CHECK_ERROR(MPI_Win_attach(window.win, memory.data(), 64), MPI_ERR_RMA_FLAVOR);
            CHECK_ERROR(MPI_Win_detach(window.win, memory.data()), MPI_ERR_RMA_FLAVOR);
        }
        MPI_Aint size = 0;
        int unit = 0;
        void* base = nullptr;
        if (flavor != Flavor::kShared)
            CHECK_ERROR(MPI_Win_shared_query(window.win, 0, &size, &unit, &base), MPI_ERR_RMA_FLAVOR);
        check_usable(window, kContents);
    }
}

// Without a node that all processes are on, every process gets the error, and can go on.
CASE(shared_memory_of_several_nodes) {
    MPI_Comm node, all;
    MPI_Comm_split_type(env.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_dup(env.comm, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    const bool one_node = size_of(node) == env.size;
    for (int i = 0; i < 3; ++i) {
        void* base = nullptr;
        MPI_Win win = MPI_WIN_NULL;
        CHECK_ERROR(MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, all, &base, &win),
                    one_node ? MPI_SUCCESS : MPI_ERR_RMA_SHARED);
        if (win != MPI_WIN_NULL) CHECK_MPI(MPI_Win_free(&win));
        Window other(Flavor::kCreate, all, kBytes);
        other.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
        check_usable(other, kContents);
    }
    MPI_Comm_free(&node);
    MPI_Comm_free(&all);
}

// What Open MPI checks before it asks the component.
CASE(wrong_arguments) {
    Window window(Flavor::kCreate, env.comm, kBytes);
    window.reset([](unsigned char* memory) { std::memset(memory, kContents, kBytes); });
    unsigned char byte = kContents;
    const MPI_Win win = window.win;
    CHECK_MPI(MPI_Win_lock_all(0, win));
    CHECK_ERROR(MPI_Put(&byte, 1, MPI_BYTE, env.size, 0, 1, MPI_BYTE, win), MPI_ERR_RANK);
    CHECK_ERROR(MPI_Put(&byte, 1, MPI_BYTE, 0, -1, 1, MPI_BYTE, win), MPI_ERR_DISP);
    CHECK_ERROR(MPI_Put(&byte, -1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win), MPI_ERR_COUNT);
    CHECK_ERROR(MPI_Get(&byte, 1, MPI_BYTE, 0, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
    const double number = 1;
    CHECK_ERROR(MPI_Accumulate(&number, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_LAND, win), MPI_ERR_OP);
    CHECK_MPI(MPI_Win_unlock_all(win));
    CHECK_ERROR(MPI_Win_lock(4711, 0, 0, win), MPI_ERR_LOCKTYPE);
    CHECK_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, env.size, 0, win), MPI_ERR_RANK);
    CHECK_ERROR(MPI_Win_fence(1 << 30, win), MPI_ERR_ASSERT);
    check_usable(window, kContents);
}
