// SPDX-License-Identifier: BSD-3-Clause
// All sizes at the limits of protocols, and large ones; posted and unexpected; both directions at once.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

constexpr std::size_t kMargin = 16;

Bytes message(std::uint64_t key, std::size_t n) {
    Bytes data(n);
    pattern::fill(key, 0, data.data(), n);
    return data;
}

// The partner of a rank: ranks 0 and 1, 2 and 3, … exchange messages.
int partner(const mpitest::Env& env) { return env.rank ^ 1; }
bool paired(const mpitest::Env& env) { return partner(env) < env.size; }

void one_way(const mpitest::Env& env, std::size_t n, bool posted) {
    if (env.rank % 2 == 0) {
        const Bytes data = message(n, n);
        if (posted) MPI_Recv(nullptr, 0, MPI_BYTE, partner(env), 2, env.comm, MPI_STATUS_IGNORE);
        MPI_Request request;
        MPI_Isend(data.data(), as_int(n), MPI_BYTE, partner(env), 1, env.comm, &request);
        if (!posted) MPI_Send(nullptr, 0, MPI_BYTE, partner(env), 2, env.comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        Bytes data(n + kMargin, 0x3b);
        MPI_Request request;
        MPI_Status status;
        if (!posted) MPI_Recv(nullptr, 0, MPI_BYTE, partner(env), 2, env.comm, MPI_STATUS_IGNORE);
        MPI_Irecv(data.data(), as_int(n + kMargin), MPI_BYTE, partner(env), 1, env.comm, &request);
        if (posted) MPI_Send(nullptr, 0, MPI_BYTE, partner(env), 2, env.comm);
        MPI_Wait(&request, &status);
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(count, n);
        CHECK_PATTERN(n, data.data(), n);
        CHECK_UNTOUCHED(0x3b, data.data() + n, kMargin);
    }
}

}  // namespace

CASE(every_edge_size_to_a_posted_receive) {
    if (!paired(env)) return;
    for (std::size_t n : sizes::edges()) one_way(env, n, true);
}

CASE(every_edge_size_unexpected) {
    if (!paired(env)) return;
    for (std::size_t n : sizes::edges()) one_way(env, n, false);
}

CASE(all_small_sizes) {
    if (!paired(env)) return;
    for (std::size_t n = 0; n < 600; ++n) one_way(env, n, n % 2 == 0);
}

CASE(large_sizes) {
    if (!paired(env) || env.rank > 1) return;
    for (std::size_t n : {(std::size_t{32} << 20) - 1, (std::size_t{32} << 20) + 4097}) {
        one_way(env, n, true);
        one_way(env, n, false);
    }
}

CASE(unaligned_buffers) {
    if (!paired(env)) return;
    for (std::size_t n : {std::size_t{1000}, std::size_t{5001}, std::size_t{70001}, std::size_t{1000003}})
        for (std::size_t shift : {1, 3, 7}) {
            const int peer = partner(env);
            Bytes out(n + shift), in(n + 2 * shift + kMargin, 0x3b);
            pattern::fill(static_cast<std::uint64_t>(env.rank), 0, out.data() + shift, n);
            MPI_Sendrecv(out.data() + shift, as_int(n), MPI_BYTE, peer, 1, in.data() + 2 * shift, as_int(n), MPI_BYTE,
                         peer, 1, env.comm, MPI_STATUS_IGNORE);
            CHECK_UNTOUCHED(0x3b, in.data(), 2 * shift);
            CHECK_PATTERN(static_cast<std::uint64_t>(peer), in.data() + 2 * shift, n);
            CHECK_UNTOUCHED(0x3b, in.data() + 2 * shift + n, kMargin);
        }
}

CASE(both_directions_at_once) {
    if (!paired(env)) return;
    const int peer = partner(env);
    for (std::size_t n : sizes::few()) {
        constexpr std::size_t kWindow = 8;
        std::vector<Bytes> in(kWindow, Bytes(n)), out;
        std::vector<MPI_Request> requests(2 * kWindow);
        for (std::size_t i = 0; i < kWindow; ++i) {
            out.push_back(message(pattern::key({n, i, static_cast<std::uint64_t>(env.rank)}), n));
            MPI_Isend(out[i].data(), as_int(n), MPI_BYTE, peer, as_int(i), env.comm, &requests[kWindow + i]);
            MPI_Irecv(in[i].data(), as_int(n), MPI_BYTE, peer, as_int(i), env.comm, &requests[i]);
        }
        MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (std::size_t i = 0; i < kWindow; ++i)
            CHECK_PATTERN(pattern::key({n, i, static_cast<std::uint64_t>(peer)}), in[i].data(), n);
    }
}

CASE(many_large_messages_at_once) {
    // More rendezvous in flight than any transport has descriptors or queue slots for.
    if (!paired(env) || env.rank > 1) return;
    constexpr std::size_t kWindow = 300, n = 150000;
    std::vector<Bytes> data(kWindow);
    std::vector<MPI_Request> requests(kWindow);
    for (std::size_t i = 0; i < kWindow; ++i) {
        data[i] = env.rank == 0 ? message(i, n) : Bytes(n);
        if (env.rank == 0) MPI_Isend(data[i].data(), as_int(n), MPI_BYTE, 1, as_int(i), env.comm, &requests[i]);
        // from the last to the first
        else MPI_Irecv(data[i].data(), as_int(n), MPI_BYTE, 0, as_int(kWindow - 1 - i), env.comm, &requests[i]);
    }
    MPI_Waitall(as_int(kWindow), requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; env.rank == 1 && i < kWindow; ++i) CHECK_PATTERN(kWindow - 1 - i, data[i].data(), n);
}
