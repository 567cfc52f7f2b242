// SPDX-License-Identifier: BSD-3-Clause
// Intercommunicators: even ranks on one side, odd ranks on the other.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

struct Sides {
    MPI_Comm local = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    int rank = 0, remote = 0;  // own rank in the local group; size of the other group

    explicit Sides(const mpitest::Env& env) {
        MPI_Comm_split(env.comm, env.rank % 2, env.rank, &local);
        MPI_Intercomm_create(local, 0, env.comm, 1 - env.rank % 2, 11, &inter);
        MPI_Comm_rank(inter, &rank);
        MPI_Comm_remote_size(inter, &remote);
    }
    ~Sides() {
        MPI_Comm_free(&inter);
        MPI_Comm_free(&local);
    }
};

}  // namespace

CASE(everyone_sends_to_everyone_on_the_other_side) {
    Sides s(env);
    for (std::size_t n : sizes::few()) {
        const int side = env.rank % 2;
        std::vector<Bytes> in(static_cast<std::size_t>(s.remote), Bytes(n)), out = in;
        std::vector<MPI_Request> requests;
        for (int peer = 0; peer < s.remote; ++peer) {
            const auto p = static_cast<std::size_t>(peer);
            pattern::fill(pattern::key({n, static_cast<std::uint64_t>(side), static_cast<std::uint64_t>(s.rank), p}), 0,
                          out[p].data(), n);
            requests.resize(requests.size() + 2);
            MPI_Irecv(in[p].data(), as_int(n), MPI_BYTE, peer, 5, s.inter, &requests[requests.size() - 2]);
            MPI_Isend(out[p].data(), as_int(n), MPI_BYTE, peer, 5, s.inter, &requests.back());
        }
        MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (std::size_t p = 0; p < in.size(); ++p)
            CHECK_PATTERN(
                pattern::key({n, static_cast<std::uint64_t>(1 - side), p, static_cast<std::uint64_t>(s.rank)}),
                in[p].data(), n);
    }
}

CASE(wildcard_sees_ranks_of_the_other_group) {
    Sides s(env);
    const int own = env.rank;
    std::vector<MPI_Request> requests(static_cast<std::size_t>(s.remote));
    for (int peer = 0; peer < s.remote; ++peer)
        MPI_Isend(&own, 1, MPI_INT, peer, s.rank, s.inter, &requests[static_cast<std::size_t>(peer)]);
    for (int i = 0; i < s.remote; ++i) {
        MPI_Status probed, status;
        int value = -1;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, s.inter, &probed);
        MPI_Recv(&value, 1, MPI_INT, probed.MPI_SOURCE, probed.MPI_TAG, s.inter, &status);
        CHECK_EQ(status.MPI_TAG, status.MPI_SOURCE);
        // Rank k of the other side is the k-th even or odd rank of the world.
        CHECK_EQ(value, 2 * status.MPI_SOURCE + 1 - env.rank % 2);
    }
    MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

CASE(merged_communicator_carries_messages) {
    Sides s(env);
    MPI_Comm merged;
    MPI_Intercomm_merge(s.inter, env.rank % 2, &merged);
    int rank = -1, size = 0;
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    CHECK_EQ(size, env.size);
    for (std::size_t n : {std::size_t{100}, sizes::kRendezvous}) {
        const int to = (rank + 1) % size, from = (rank + size - 1) % size;
        Bytes out(n), in(n);
        pattern::fill(static_cast<std::uint64_t>(rank), 0, out.data(), n);
        MPI_Sendrecv(out.data(), as_int(n), MPI_BYTE, to, 1, in.data(), as_int(n), MPI_BYTE, from, 1, merged,
                     MPI_STATUS_IGNORE);
        CHECK_PATTERN(static_cast<std::uint64_t>(from), in.data(), n);
    }
    MPI_Comm_free(&merged);
}

CASE(duplicates_are_separate) {
    Sides s(env);
    MPI_Comm dup;
    MPI_Comm_dup(s.inter, &dup);
    if (s.rank == 0) {
        int one = 1, two = 2, value = 0;
        MPI_Request requests[2];
        MPI_Isend(&one, 1, MPI_INT, 0, 0, dup, &requests[0]);
        MPI_Isend(&two, 1, MPI_INT, 0, 0, s.inter, &requests[1]);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, s.inter, MPI_STATUS_IGNORE);
        CHECK_EQ(value, 2);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, dup, MPI_STATUS_IGNORE);
        CHECK_EQ(value, 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(dup);
    MPI_Comm_free(&dup);
}
