// SPDX-License-Identifier: BSD-3-Clause
// Many communicators, and messages on one that the receiver has not created yet.
#include <unistd.h>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

}  // namespace

CASE(three_hundred_duplicates_keep_their_messages_apart) {
    std::vector<MPI_Comm> comms(300);
    for (MPI_Comm& c : comms) MPI_Comm_dup(env.comm, &c);
    const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
    std::vector<int> values(comms.size()), got(comms.size(), -1);
    std::vector<MPI_Request> requests(comms.size());
    for (std::size_t i = 0; i < comms.size(); ++i) {
        values[i] = env.rank * 1000 + as_int(i);
        MPI_Isend(&values[i], 1, MPI_INT, to, 0, comms[i], &requests[i]);
    }
    for (std::size_t i = comms.size(); i-- > 0;) {
        MPI_Recv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], MPI_STATUS_IGNORE);
        CHECK_EQ(got[i], from * 1000 + as_int(i));
    }
    MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (MPI_Comm& c : comms) MPI_Comm_free(&c);
}

CASE(message_may_be_there_before_the_communicator) {
    // Rank 0 leaves MPI_Comm_split first and sends at once; the others leave it later. Whether a message is really
    // early depends on timing, hence the repeats.
    for (int round = 0; round < 30; ++round) {
        if (env.rank != 0 && round % 3 == env.rank % 3) usleep(2000);
        MPI_Comm comm;
        if (round % 2 == 0) MPI_Comm_dup(env.comm, &comm);
        else MPI_Comm_split(env.comm, 0, env.rank, &comm);
        if (env.rank == 0) {
            std::vector<Bytes> data;
            std::vector<MPI_Request> requests;
            for (int peer = 1; peer < env.size; ++peer)
                for (int i = 0; i < 6; ++i) {
                    const std::size_t n = i % 3 == 2 ? sizes::kRendezvous : static_cast<std::size_t>(i) * 300;
                    data.emplace_back(n);
                    pattern::fill(static_cast<std::uint64_t>(round * 10 + i), 0, data.back().data(), n);
                    requests.emplace_back();
                    MPI_Isend(data.back().data(), as_int(n), MPI_BYTE, peer, 3, comm, &requests.back());
                }
            MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        } else {
            for (int i = 0; i < 6; ++i) {
                const std::size_t n = i % 3 == 2 ? sizes::kRendezvous : static_cast<std::size_t>(i) * 300;
                Bytes in(n);
                MPI_Recv(in.data(), as_int(n), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
                CHECK_PATTERN(static_cast<std::uint64_t>(round * 10 + i), in.data(), n);
            }
        }
        MPI_Comm_free(&comm);
    }
}

CASE(nonblocking_duplicate_and_traffic_meet) {
    // MPI_Comm_idup completes at different times on the ranks, so messages often arrive before the communicator exists.
    for (int round = 0; round < 50; ++round) {
        MPI_Comm comm;
        MPI_Request made;
        MPI_Comm_idup(env.comm, &comm, &made);
        if (env.rank % 2 == 1) {
            int flag = 0;
            for (int i = 0; i < 100 * (round % 5); ++i)
                MPI_Iprobe(MPI_ANY_SOURCE, 77, env.comm, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&made, MPI_STATUS_IGNORE);
        const int to = (env.rank + 1) % env.size, value = env.rank + round;
        int got = -1;
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, to, 0, comm, &request);
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE);
        CHECK_EQ(got, (env.rank + env.size - 1) % env.size + round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&comm);
    }
}

CASE(communicator_may_be_freed_with_receives_pending) {
    // MPI keeps a freed communicator until its pending operations complete.
    for (std::size_t n : {std::size_t{10}, sizes::kRendezvous}) {
        MPI_Comm comm;
        MPI_Comm_dup(env.comm, &comm);
        Bytes in(n), out(n);
        pattern::fill(static_cast<std::uint64_t>(env.rank), 0, out.data(), n);
        const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
        MPI_Request requests[2];
        MPI_Irecv(in.data(), as_int(n), MPI_BYTE, from, 0, comm, &requests[0]);
        MPI_Isend(out.data(), as_int(n), MPI_BYTE, to, 0, comm, &requests[1]);
        MPI_Comm_free(&comm);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK_PATTERN(static_cast<std::uint64_t>(from), in.data(), n);
    }
}

CASE(split_subsets_and_reordered_ranks) {
    for (int colours = 1; colours <= 3; ++colours) {
        MPI_Comm comm;
        MPI_Comm_split(env.comm, env.rank % colours, -env.rank, &comm);  // highest first
        int rank = -1, size = 0;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        std::vector<int> got(static_cast<std::size_t>(size), -1);
        std::vector<MPI_Request> requests;
        for (int peer = 0; peer < size; ++peer) {
            requests.resize(requests.size() + 2);
            MPI_Irecv(&got[static_cast<std::size_t>(peer)], 1, MPI_INT, peer, 1, comm, &requests[requests.size() - 2]);
            MPI_Isend(&env.rank, 1, MPI_INT, peer, 1, comm, &requests.back());
        }
        MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        const int lowest = env.rank % colours;
        for (int peer = 0; peer < size; ++peer)
            CHECK_EQ(got[static_cast<std::size_t>(peer)], lowest + (size - 1 - peer) * colours);
        MPI_Comm_free(&comm);
    }
}
