// SPDX-License-Identifier: BSD-3-Clause
// Cancelling receives.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

bool was_cancelled(MPI_Request& request) {
    MPI_Status status;
    int flag = -1;
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    return flag != 0;
}

}  // namespace

CASE(unmatched_receive_is_cancelled) {
    int buffer = 7;
    for (int source : {0, MPI_ANY_SOURCE})
        for (int tag : {3, MPI_ANY_TAG}) {
            MPI_Request request;
            MPI_Irecv(&buffer, 1, MPI_INT, source, tag, env.comm, &request);
            MPI_Cancel(&request);
            CHECK(was_cancelled(request));
            CHECK(request == MPI_REQUEST_NULL);
        }
    CHECK_EQ(buffer, 7);
    MPI_Barrier(env.comm);  // no rank sends before this is over
}

CASE(message_goes_to_the_receive_after_a_cancelled_one) {
    for (std::size_t n : {sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 1) {
            Bytes wrong(n, 0x11), right(n);
            MPI_Request first, second;
            MPI_Irecv(wrong.data(), as_int(n), MPI_BYTE, 0, 3, env.comm, &first);
            MPI_Irecv(right.data(), as_int(n), MPI_BYTE, 0, 3, env.comm, &second);
            MPI_Cancel(&first);
            CHECK(was_cancelled(first));
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 4, env.comm);
            MPI_Wait(&second, MPI_STATUS_IGNORE);
            CHECK_PATTERN(n, right.data(), n);
            CHECK_UNTOUCHED(0x11, wrong.data(), n);
        } else if (env.rank == 0) {
            Bytes data(n);
            pattern::fill(n, 0, data.data(), n);
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 4, env.comm, MPI_STATUS_IGNORE);
            MPI_Send(data.data(), as_int(n), MPI_BYTE, 1, 3, env.comm);
        }
    }
}

CASE(matched_receive_is_not_cancelled_and_completes) {
    for (std::size_t n : {sizes::kEager, sizes::kRendezvous}) {
        if (env.rank == 1) {
            Bytes data(n);
            MPI_Request request;
            MPI_Probe(0, 3, env.comm, MPI_STATUS_IGNORE);  // it has arrived: the receive matches at once
            MPI_Irecv(data.data(), as_int(n), MPI_BYTE, 0, 3, env.comm, &request);
            MPI_Cancel(&request);
            CHECK(!was_cancelled(request));
            CHECK_PATTERN(n, data.data(), n);
        } else if (env.rank == 0) {
            Bytes data(n);
            pattern::fill(n, 0, data.data(), n);
            MPI_Send(data.data(), as_int(n), MPI_BYTE, 1, 3, env.comm);
        }
    }
}

CASE(persistent_receive_can_be_cancelled_and_started_again) {
    if (env.rank == 1) {
        int value = 0;
        MPI_Request request;
        MPI_Recv_init(&value, 1, MPI_INT, 0, 3, env.comm, &request);
        for (int i = 0; i < 10; ++i) {
            MPI_Start(&request);
            MPI_Cancel(&request);
            CHECK(was_cancelled(request));
            MPI_Start(&request);
            MPI_Send(&i, 1, MPI_INT, 0, 4, env.comm);
            CHECK(!was_cancelled(request));
            CHECK_EQ(value, i * 5);
        }
        MPI_Request_free(&request);
    } else if (env.rank == 0) {
        for (int i = 0; i < 10; ++i) {
            int value = 0;
            MPI_Recv(&value, 1, MPI_INT, 1, 4, env.comm, MPI_STATUS_IGNORE);
            value *= 5;
            MPI_Send(&value, 1, MPI_INT, 1, 3, env.comm);
        }
    }
}

CASE(cancelled_receives_leave_the_others_in_order) {
    constexpr std::size_t kReceives = 60;  // every third is cancelled
    if (env.rank == 1) {
        std::vector<int> values(kReceives, -1);
        std::vector<MPI_Request> requests(kReceives);
        for (std::size_t i = 0; i < kReceives; ++i)
            MPI_Irecv(&values[i], 1, MPI_INT, i % 2 == 0 ? 0 : MPI_ANY_SOURCE, i % 5 == 0 ? MPI_ANY_TAG : 3, env.comm,
                      &requests[i]);
        for (std::size_t i = 0; i < kReceives; i += 3) MPI_Cancel(&requests[i]);
        for (std::size_t i = 0; i < kReceives; i += 3) CHECK(was_cancelled(requests[i]));
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 4, env.comm);
        int next = 0;
        for (std::size_t i = 0; i < kReceives; ++i) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            CHECK_EQ(values[i], i % 3 == 0 ? -1 : next++);
        }
    } else if (env.rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 4, env.comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < static_cast<int>(kReceives) * 2 / 3; ++i) MPI_Send(&i, 1, MPI_INT, 1, 3, env.comm);
    }
}

CASE(cancelled_and_freed_receive_is_gone) {
    // Freed before the cancel was completed: the message finds no posted receive.
    if (env.rank == 1) {
        int wrong = -1, right = -1;
        MPI_Request request;
        MPI_Irecv(&wrong, 1, MPI_INT, 0, 3, env.comm, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 4, env.comm);
        MPI_Recv(&right, 1, MPI_INT, 0, 3, env.comm, MPI_STATUS_IGNORE);
        CHECK_EQ(right, 42);
        CHECK_EQ(wrong, -1);
    } else if (env.rank == 0) {
        const int value = 42;
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 4, env.comm, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 1, 3, env.comm);
    }
}
