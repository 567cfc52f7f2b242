// SPDX-License-Identifier: BSD-3-Clause
//
// Communication calls that may be refused, for the tests of errors: their error codes, and whether the window works
// afterwards.
#pragma once

#include "operation.h"

namespace {

// Calls with `bytes` bytes (the calls on one element: with a word or a byte) at the displacement `at`.
inline int issue(Call call, MPI_Win win, int target, MPI_Aint at, int bytes) {
    static unsigned char sent[4096], got[4096];
    static const std::uint64_t one = 1;
    static std::uint64_t result;
    CHECK(bytes <= 4096);
    const MPI_Datatype type = MPI_UINT8_T, single = bytes == 1 ? MPI_UINT8_T : MPI_UINT64_T;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    switch (call) {
    case Call::kPut: code = MPI_Put(sent, bytes, type, target, at, bytes, type, win); break;
    case Call::kGet: code = MPI_Get(got, bytes, type, target, at, bytes, type, win); break;
    case Call::kAccumulate: code = MPI_Accumulate(sent, bytes, type, target, at, bytes, type, MPI_BXOR, win); break;
    case Call::kGetAccumulate:
        code = MPI_Get_accumulate(sent, bytes, type, got, bytes, type, target, at, bytes, type, MPI_BXOR, win);
        break;
    case Call::kFetchAndOp: code = MPI_Fetch_and_op(&one, &result, single, target, at, MPI_SUM, win); break;
    case Call::kCompareAndSwap: code = MPI_Compare_and_swap(&one, &one, &result, single, target, at, win); break;
    case Call::kRput: code = MPI_Rput(sent, bytes, type, target, at, bytes, type, win, &request); break;
    case Call::kRget: code = MPI_Rget(got, bytes, type, target, at, bytes, type, win, &request); break;
    case Call::kRaccumulate:
        code = MPI_Raccumulate(sent, bytes, type, target, at, bytes, type, MPI_BXOR, win, &request);
        break;
    case Call::kRgetAccumulate:
        code = MPI_Rget_accumulate(sent, bytes, type, got, bytes, type, target, at, bytes, type, MPI_BXOR, win,
                                   &request);
        break;
    }
    if (code == MPI_SUCCESS && request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    return code;
}

// Fails unless the call gives an error of this class.
inline void check_refused(Call call, int error_class, MPI_Win win, int target, MPI_Aint at, int bytes, int line) {
    const std::string what = std::string(kCallNames[static_cast<int>(call)]) + " of " + std::to_string(bytes) +
                             " bytes at " + std::to_string(at) + " of rank " + std::to_string(target);
    mpitest::check_error_class(issue(call, win, target, at, bytes), error_class, what.c_str(), "", line);
}
// All of them; compare_and_swap crashes in stock Open MPI (osc/rdma over btl/vader) before its arguments matter.
inline void check_all_refused(int error_class, MPI_Win win, int target, MPI_Aint at, int bytes, int line) {
    for (int call = 0; call < kCalls; ++call)
        if (!mpitest::on_ob1() || static_cast<Call>(call) != Call::kCompareAndSwap)
            check_refused(static_cast<Call>(call), error_class, win, target, at, bytes, line);
}

// After an error the window is as good as before: its memory is unchanged, and epochs of two kinds work.
inline void check_usable(Window& window, unsigned char contents) {
    MPI_Barrier(window.comm);
    window.inspect([&](const unsigned char* memory) { CHECK_UNTOUCHED(contents, memory, window.bytes); });
    const int next = (window.rank + 1) % window.processes,
              before = (window.rank + window.processes - 1) % window.processes;
    const auto mine = static_cast<unsigned char>(window.rank + 100);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK_MPI(i == 0 ? MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win) : MPI_Win_fence(0, window.win));
        CHECK_MPI(MPI_Put(&mine, 1, MPI_BYTE, next, window.at(next, 8 * i), 1, MPI_BYTE, window.win));
        CHECK_MPI(i == 0 ? MPI_Win_unlock(next, window.win) : MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        window.inspect([&](unsigned char* memory) {
            CHECK_EQ(memory[8 * i], before + 100);
            memory[8 * i] = contents;
        });
    }
}

}  // namespace
