// SPDX-License-Identifier: BSD-3-Clause
// Thousands of messages without a posted receive.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

}  // namespace

CASE(twenty_thousand_eager_messages_received_in_reverse_tag_order) {
    constexpr int kMessages = 20000;
    if (env.rank == 0) {
        std::vector<std::uint64_t> values(kMessages);
        for (int i = 0; i < kMessages; ++i) {
            values[static_cast<std::size_t>(i)] = pattern::word(9, static_cast<std::uint64_t>(i));
            MPI_Send(&values[static_cast<std::size_t>(i)], 8, MPI_BYTE, 1, i, env.comm);
        }
        MPI_Send(nullptr, 0, MPI_BYTE, 1, kMessages, env.comm);
    } else if (env.rank == 1) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, kMessages, env.comm, MPI_STATUS_IGNORE);  // sent after all of them
        for (int i = kMessages; i-- > 0;) {
            std::uint64_t value = 0;
            MPI_Recv(&value, 8, MPI_BYTE, 0, i, env.comm, MPI_STATUS_IGNORE);
            CHECK(value == pattern::word(9, static_cast<std::uint64_t>(i)));
        }
    }
}

CASE(hundreds_of_rendezvous_received_in_reverse_tag_order) {
    constexpr std::size_t kMessages = 400, n = 70000;
    if (env.rank == 0) {
        std::vector<Bytes> data(kMessages, Bytes(n));
        std::vector<MPI_Request> requests(kMessages);
        for (std::size_t i = 0; i < kMessages; ++i) {
            pattern::fill(i, 0, data[i].data(), n);
            MPI_Isend(data[i].data(), as_int(n), MPI_BYTE, 1, as_int(i), env.comm, &requests[i]);
        }
        MPI_Send(nullptr, 0, MPI_BYTE, 1, as_int(kMessages), env.comm);
        MPI_Waitall(as_int(kMessages), requests.data(), MPI_STATUSES_IGNORE);
    } else if (env.rank == 1) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, as_int(kMessages), env.comm, MPI_STATUS_IGNORE);
        for (std::size_t i = kMessages; i-- > 0;) {
            Bytes data(n);
            MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, as_int(i), env.comm, MPI_STATUS_IGNORE);
            CHECK_PATTERN(i, data.data(), n);
        }
    }
}

CASE(unexpected_messages_of_all_ranks_at_one) {
    constexpr int kEach = 1500;
    if (env.rank != 0) {
        for (int i = 0; i < kEach; ++i) {
            Bytes data(static_cast<std::size_t>(i));
            pattern::fill(static_cast<std::uint64_t>(env.rank), 0, data.data(), data.size());
            MPI_Send(data.data(), i, MPI_BYTE, 0, i, env.comm);
        }
        MPI_Send(nullptr, 0, MPI_BYTE, 0, kEach, env.comm);
    } else {
        for (int source = 1; source < env.size; ++source)
            MPI_Recv(nullptr, 0, MPI_BYTE, source, kEach, env.comm, MPI_STATUS_IGNORE);
        // Tag by tag, from any source.
        for (int i = 0; i < kEach; ++i)
            for (int k = 1; k < env.size; ++k) {
                Bytes data(static_cast<std::size_t>(i));
                MPI_Status status;
                MPI_Recv(data.data(), i, MPI_BYTE, MPI_ANY_SOURCE, i, env.comm, &status);
                CHECK_PATTERN(static_cast<std::uint64_t>(status.MPI_SOURCE), data.data(), data.size());
            }
    }
}

CASE(ten_thousand_posted_receives_matched_in_reverse) {
    constexpr int kMessages = 10000;
    if (env.rank == 1) {
        std::vector<int> values(kMessages, -1);
        std::vector<MPI_Request> requests(kMessages);
        for (int i = 0; i < kMessages; ++i)
            MPI_Irecv(&values[static_cast<std::size_t>(i)], 1, MPI_INT, 0, i, env.comm,
                      &requests[static_cast<std::size_t>(i)]);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, env.comm);
        MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < kMessages; ++i) CHECK_EQ(values[static_cast<std::size_t>(i)], 3 * i);
    } else if (env.rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, env.comm, MPI_STATUS_IGNORE);
        for (int i = kMessages; i-- > 0;) {
            const int value = 3 * i;
            MPI_Send(&value, 1, MPI_INT, 1, i, env.comm);
        }
    }
}
