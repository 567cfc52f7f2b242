// SPDX-License-Identifier: BSD-3-Clause
// Messages that answer one: answers [refused]. Up to 2 KiB they use the slot beside a ring of the lane; with "refused" there may be
// none, and only the data is checked. Two ranks. Only for pml/coop, with pml_coop_lane 1 and pml_coop_lane_after 0.
#include <unistd.h>

#include <algorithm>

#include "lane_message.h"
#include "mpi_test.h"

namespace {

mpitest::Configure configure([](mpitest::Settings& s) { s.hang_seconds = 200; });

// Processes that share a core use no slots.
bool is_crowded() { return sysconf(_SC_NPROCESSORS_ONLN) < 2; }

void round_trips(const mpitest::Env& env, int count, std::size_t bytes) {
    Bytes data(bytes);
    for (int i = 0; i < count; ++i) {
        if (env.rank == 0) CHECK_MPI(MPI_Send(data.data(), as_int(bytes), MPI_BYTE, 1, 0, env.comm));
        CHECK_MPI(MPI_Recv(data.data(), as_int(bytes), MPI_BYTE, 1 - env.rank, 0, env.comm, MPI_STATUS_IGNORE));
        if (env.rank == 1) CHECK_MPI(MPI_Send(data.data(), as_int(bytes), MPI_BYTE, 0, 0, env.comm));
    }
}

int count_of(const MPI_Status& status) {
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count;
}

// Lengths around the borders of the slot, and others.
std::size_t length_of(int i) {
    const int borders[] = {170, 176, 177, 178, 2040, 2047, 2048, 2049, 2056, 5000};
    return static_cast<std::size_t>(i % 3 == 0 ? borders[i / 3 % 10] : i * 37 % 2600);
}

}  // namespace

// Each of these two cases needs fresh processes: other messages make the ring longer, too.
CASE(answers_of_up_to_2_KiB_leave_the_ring_as_it_is) {
    if (refused() || env.size != 2 || is_crowded()) return;
    round_trips(env, 10, 2048);
    const std::size_t before = lane_kib();
    if (before > 1000) return;
    for (const std::size_t bytes : {200, 1000, 2048}) round_trips(env, 3000, bytes);
    CHECK(lane_kib() < before + 50);
}

CASE(messages_that_are_answered_make_the_ring_longer) {
    if (refused() || env.size != 2 || is_crowded()) return;
    round_trips(env, 10, 3000);
    const std::size_t before = lane_kib();
    if (before > 1000) return;
    round_trips(env, 3000, 3000);  // not enough for the trial of a stream, even in a ring of 1 MiB
    CHECK(lane_kib() > before + 500);
}

// Each rank in turn sends one message, now and then several. Then the first may be in the slot and the next ones in the ring.
CASE(answers_of_every_length_arrive_in_order) {
    if (env.size != 2) return;
    const int peer = 1 - env.rank;
    const auto send = [&](int first, int count) {
        std::vector<Message> all;
        std::vector<MPI_Request> requests(static_cast<std::size_t>(count), MPI_REQUEST_NULL);
        for (int i = first; i < first + count; ++i) all.emplace_back(length_of(i), key_of(env.rank, peer, i));
        for (int i = 0; i < count; ++i) {
            Message& m = all[static_cast<std::size_t>(i)];
            m.fill();
            if (first % 2 == 0) CHECK_MPI(MPI_Send(m.data.data(), as_int(m.bytes()), MPI_BYTE, peer, 1, env.comm));
            else
                CHECK_MPI(MPI_Isend(m.data.data(), as_int(m.bytes()), MPI_BYTE, peer, 1, env.comm,
                                    &requests[static_cast<std::size_t>(i)]));
        }
        CHECK_MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE));
    };
    const auto receive = [&](int first, int count) {
        for (int i = first; i < first + count; ++i) {
            Message m(length_of(i), key_of(peer, env.rank, i));
            MPI_Status status;
            const int source = i % 5 == 0 ? MPI_ANY_SOURCE : peer;
            if (i % 7 == 0) {
                CHECK_MPI(MPI_Probe(source, MPI_ANY_TAG, env.comm, &status));
                CHECK_EQ(count_of(status), as_int(m.bytes()));
            }
            CHECK_MPI(MPI_Recv(m.data.data(), as_int(m.data.size()), MPI_BYTE, source, 1, env.comm, &status));
            CHECK_EQ(count_of(status), as_int(m.bytes()));
            m.check();
        }
    };
    for (int round = 0, next = 0; round < 4000; ++round) {
        const int count = round % 11 == 0 ? 3 : 1;
        if (env.rank == 0) send(next, count);
        receive(next, count);
        if (env.rank == 1) send(next, count);
        next += count;
    }
}
