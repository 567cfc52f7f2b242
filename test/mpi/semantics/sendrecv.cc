// SPDX-License-Identifier: BSD-3-Clause
// Sendrecv and Sendrecv_replace around a ring, with and without null neighbours.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }
std::uint64_t key_of(int rank, std::size_t n) { return pattern::key({static_cast<std::uint64_t>(rank), n}); }

}  // namespace

CASE(ring_of_sendrecv) {
    const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
    for (std::size_t n : sizes::few()) {
        Bytes out(n), in(n + 1000);
        MPI_Status status;
        int count = -1;
        pattern::fill(key_of(env.rank, n), 0, out.data(), n);
        MPI_Sendrecv(out.data(), as_int(n), MPI_BYTE, to, env.rank, in.data(), as_int(in.size()), MPI_BYTE, from, from,
                     env.comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(count, n);
        CHECK_EQ(status.MPI_SOURCE, from);
        CHECK_EQ(status.MPI_TAG, from);
        CHECK_PATTERN(key_of(from, n), in.data(), n);
    }
}

CASE(ring_of_sendrecv_replace) {
    const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
    for (std::size_t n : sizes::few()) {
        Bytes data(n);
        pattern::fill(key_of(env.rank, n), 0, data.data(), n);
        MPI_Sendrecv_replace(data.data(), as_int(n), MPI_BYTE, to, 3, from, MPI_ANY_TAG, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(key_of(from, n), data.data(), n);
    }
}

CASE(replace_keeps_the_gaps_of_a_type) {
    const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
    for (std::size_t n : {std::size_t{100}, std::size_t{200000}}) {
        MPI_Datatype type;
        MPI_Type_vector(as_int(n), 2, 3, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        Bytes data(3 * n, 0x44);
        for (std::size_t i = 0; i < n; ++i) pattern::fill(key_of(env.rank, n), 2 * i, &data[3 * i], 2);
        MPI_Sendrecv_replace(data.data(), 1, type, to, 3, MPI_ANY_SOURCE, 3, env.comm, MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < n; ++i) {
            CHECK(pattern::mismatch(key_of(from, n), 2 * i, &data[3 * i], 2) == pattern::kNone);
            if (i + 1 < n) CHECK_EQ(data[3 * i + 2], 0x44);
        }
        MPI_Type_free(&type);
    }
}

CASE(line_with_null_neighbours) {
    const int to = env.rank + 1 < env.size ? env.rank + 1 : MPI_PROC_NULL;
    const int from = env.rank > 0 ? env.rank - 1 : MPI_PROC_NULL;
    int value = -7;
    MPI_Status status;
    MPI_Sendrecv(&env.rank, 1, MPI_INT, to, 1, &value, 1, MPI_INT, from, 1, env.comm, &status);
    CHECK_EQ(value, env.rank > 0 ? env.rank - 1 : -7);
    CHECK_EQ(status.MPI_SOURCE, from);
}

CASE(messages_of_unequal_size_cross) {
    if (env.rank > 1) return;
    const std::size_t mine = env.rank == 0 ? 10 : 1000000, theirs = env.rank == 0 ? 1000000 : 10;
    Bytes out(mine), in(theirs);
    pattern::fill(mine, 0, out.data(), mine);
    for (int i = 0; i < 10; ++i) {
        MPI_Sendrecv(out.data(), as_int(mine), MPI_BYTE, 1 - env.rank, 1, in.data(), as_int(theirs), MPI_BYTE,
                     1 - env.rank, 1, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(theirs, in.data(), theirs);
        in.assign(theirs, 0);
    }
}
