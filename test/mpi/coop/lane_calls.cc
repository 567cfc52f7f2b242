// SPDX-License-Identifier: BSD-3-Clause
// What a call does beside the message that it finds in the lane: lane_calls. Two ranks, a core for each. Only for
// pml/coop, with pml_coop_lane 1, pml_coop_lane_after 0 and lane_max of at least 64 KiB.
#include <chrono>
#include <vector>

#include "lane_message.h"
#include "mpi_test.h"

namespace {

mpitest::Configure configure([](mpitest::Settings& s) { s.hang_seconds = 40; });

using Clock = std::chrono::steady_clock;
enum Tag : int { kGo, kStop };

Clock::time_point in_seconds(int n) { return Clock::now() + std::chrono::seconds(n * mpitest::hang_scale()); }

// Computes for about a microsecond, so that the sender is always ahead.
void compute() {
    for (const auto end = Clock::now() + std::chrono::microseconds(1); Clock::now() < end;) {
    }
}

// Begins a collective call of which rank 0 has to take a step by its progress functions before rank 1 can end.
// Meanwhile rank 0 is only in receive(), which takes `window` messages that are always there. Rank 1 sends them until
// the call has ended.
template <class Receive>
void a_collective_call_ends_during(const mpitest::Env& env, int window, Receive&& receive) {
    if (env.size != 2) return;
    constexpr int kAhead = 2048, kRound = 64;
    MPI_Comm other;
    MPI_Comm_dup(env.comm, &other);
    int mine = env.rank + 1, sum = 0, is_over = 0;
    MPI_Request call;
    if (env.rank == 0) {
        CHECK_MPI(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other, &call));
        while (receive() != kStop) compute();
    } else {
        const auto too_late = in_seconds(20);
        const auto send = [&](int value, int messages) {
            for (int i = 0; i < messages; ++i) CHECK_MPI(MPI_Send(&value, 1, MPI_INT, 0, 0, env.comm));
        };
        send(kGo, kAhead);
        CHECK_MPI(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other, &call));
        while (!is_over && Clock::now() < too_late) {
            send(kGo, kRound);
            CHECK_MPI(MPI_Test(&call, &is_over, MPI_STATUS_IGNORE));
        }
        send(kStop, window);
        CHECK(is_over);
    }
    CHECK_MPI(MPI_Wait(&call, MPI_STATUS_IGNORE));
    CHECK_EQ(sum, 3);
    MPI_Comm_free(&other);
}

}  // namespace

CASE(a_collective_call_ends_while_blocking_receives_find_their_messages) {
    int value = kGo;
    a_collective_call_ends_during(env, 1, [&] {
        CHECK_MPI(MPI_Recv(&value, 1, MPI_INT, 1, 0, env.comm, MPI_STATUS_IGNORE));
        return value;
    });
}

CASE(a_collective_call_ends_while_waits_find_their_messages) {
    int value = kGo;
    a_collective_call_ends_during(env, 1, [&] {
        MPI_Request request;
        CHECK_MPI(MPI_Irecv(&value, 1, MPI_INT, 1, 0, env.comm, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        return value;
    });
}

CASE(a_collective_call_ends_while_waits_for_several_find_their_messages) {
    constexpr int kWindow = 16;
    int values[kWindow];
    a_collective_call_ends_during(env, kWindow, [&] {
        MPI_Request requests[kWindow];
        for (int i = 0; i < kWindow; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 1, 0, env.comm, &requests[i]);
        CHECK_MPI(MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE));
        return values[kWindow - 1];
    });
}
