// SPDX-License-Identifier: BSD-3-Clause
// Operations that MPI allows to be unfinished when MPI_Finalize is called, which the harness does after the last case.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

Bytes& lasting(std::size_t n) {  // memory that outlives MPI_Finalize
    static std::vector<Bytes*> all;
    all.push_back(new Bytes(n));
    return *all.back();
}

}  // namespace

CASE(unmatched_cancelled_receives) {
    Bytes& data = lasting(1000);
    for (int i = 0; i < 100; ++i) {
        MPI_Request request;
        MPI_Irecv(data.data(), 1000, MPI_BYTE, MPI_ANY_SOURCE, i, env.comm, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
    }
}

CASE(persistent_requests_never_freed) {
    Bytes& data = lasting(1000);
    for (int i = 0; i < 20; ++i) {
        MPI_Request request;
        MPI_Recv_init(data.data(), 1000, MPI_BYTE, MPI_ANY_SOURCE, 5000 + i, env.comm, &request);
        MPI_Send_init(data.data(), 1000, MPI_BYTE, 0, 5000 + i, env.comm, &request);
    }
}

CASE(communicators_never_freed) {
    for (int i = 0; i < 20; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(env.comm, &comm);
        if (i % 2 == 0)
            MPI_Sendrecv(&i, 0, MPI_INT, env.rank, 1, nullptr, 0, MPI_INT, env.rank, 1, comm, MPI_STATUS_IGNORE);
    }
}

CASE(attached_buffer_with_messages_still_in_it) {
    // MPI_Finalize detaches the buffer, and waits for its messages.
    constexpr std::size_t n = sizes::kRendezvous;
    Bytes& buffer = lasting(4 * (n + MPI_BSEND_OVERHEAD + 64));
    const Bytes data(n, 0x61);
    if (env.rank == 0) {
        MPI_Buffer_attach(buffer.data(), as_int(buffer.size()));
        for (int i = 0; i < 3; ++i) MPI_Bsend(data.data(), as_int(n), MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else if (env.rank == 1) {
        // The harness ends the case with a barrier. These messages are received after the case, hence on
        // MPI_COMM_WORLD.
        Bytes in(n);
        for (int i = 0; i < 3; ++i) {
            MPI_Recv(in.data(), as_int(n), MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(in == data);
        }
    }
}

CASE(freed_sends_that_are_received_just_before_finalize) {
    for (std::size_t n : {std::size_t{10}, std::size_t{30000}, sizes::kRendezvous}) {
        MPI_Request request;
        if (env.rank == 0) {
            Bytes& data = lasting(n);
            pattern::fill(n, 0, data.data(), n);
            MPI_Isend(data.data(), as_int(n), MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        } else if (env.rank == 1) {
            Bytes in(n);
            MPI_Recv(in.data(), as_int(n), MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_PATTERN(n, in.data(), n);
        }
    }
}
