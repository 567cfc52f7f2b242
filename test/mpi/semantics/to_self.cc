// SPDX-License-Identifier: BSD-3-Clause
// Messages to oneself.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

Bytes message(std::uint64_t key, std::size_t n) {
    Bytes data(n);
    pattern::fill(key, 0, data.data(), n);
    return data;
}

}  // namespace

CASE(isend_then_receive_at_every_edge_size) {
    for (std::size_t n : sizes::edges()) {
        const Bytes out = message(n, n);
        Bytes in(n);
        MPI_Request request;
        MPI_Status status;
        MPI_Isend(out.data(), as_int(n), MPI_BYTE, env.rank, 1, env.comm, &request);
        MPI_Recv(in.data(), as_int(n), MPI_BYTE, env.rank, 1, env.comm, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK_EQ(status.MPI_SOURCE, env.rank);
        CHECK_PATTERN(n, in.data(), n);
    }
}

CASE(irecv_then_blocking_send_in_all_modes) {
    using Call = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    for (std::size_t n : sizes::few())
        for (Call call : {MPI_Send, MPI_Ssend, MPI_Rsend}) {
            const Bytes out = message(n, n);
            Bytes in(n);
            MPI_Request request;
            MPI_Irecv(in.data(), as_int(n), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &request);
            call(out.data(), as_int(n), MPI_BYTE, env.rank, 1, env.comm);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_PATTERN(n, in.data(), n);
        }
}

CASE(sendrecv_to_self) {
    for (std::size_t n : sizes::few()) {
        const Bytes out = message(n, n);
        Bytes in(n);
        MPI_Sendrecv(out.data(), as_int(n), MPI_BYTE, env.rank, 1, in.data(), as_int(n), MPI_BYTE, env.rank, 1,
                     env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(n, in.data(), n);
        MPI_Sendrecv_replace(in.data(), as_int(n), MPI_BYTE, env.rank, 1, env.rank, 1, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(n, in.data(), n);
    }
}

CASE(many_unexpected_to_self_in_reverse_tag_order) {
    constexpr std::size_t kMessages = 200;
    std::vector<Bytes> out;
    std::vector<MPI_Request> requests(kMessages);
    const auto size_of = [](std::size_t i) { return i % 10 == 0 ? sizes::kRendezvous : i; };
    for (std::size_t i = 0; i < kMessages; ++i) {
        out.push_back(message(i, size_of(i)));
        MPI_Isend(out[i].data(), as_int(out[i].size()), MPI_BYTE, env.rank, as_int(i), env.comm, &requests[i]);
    }
    for (std::size_t i = kMessages; i-- > 0;) {
        Bytes in(size_of(i));
        MPI_Recv(in.data(), as_int(in.size()), MPI_BYTE, env.rank, as_int(i), env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(i, in.data(), in.size());
    }
    MPI_Waitall(as_int(kMessages), requests.data(), MPI_STATUSES_IGNORE);
}

CASE(comm_self_is_separate_from_the_world) {
    for (std::size_t n : {std::size_t{8}, sizes::kRendezvous}) {
        const Bytes first = message(1, n), second = message(2, n);
        Bytes in(n);
        MPI_Request requests[2];
        MPI_Isend(first.data(), as_int(n), MPI_BYTE, 0, 1, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(second.data(), as_int(n), MPI_BYTE, env.rank, 1, env.comm, &requests[1]);
        MPI_Recv(in.data(), as_int(n), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(2, in.data(), n);
        MPI_Recv(in.data(), as_int(n), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        CHECK_PATTERN(1, in.data(), n);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

CASE(noncontiguous_to_contiguous_to_self) {
    for (std::size_t n : {std::size_t{300}, std::size_t{300000}}) {
        MPI_Datatype type;
        MPI_Type_vector(as_int(n / 3), 3, 5, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        Bytes out(n / 3 * 5, 0x66), in(n), back(n / 3 * 5, 0x66);
        for (std::size_t i = 0; i < n / 3; ++i) pattern::fill(n, i * 3, &out[i * 5], 3);
        MPI_Sendrecv(out.data(), 1, type, env.rank, 1, in.data(), as_int(n), MPI_BYTE, env.rank, 1, env.comm,
                     MPI_STATUS_IGNORE);
        CHECK_PATTERN(n, in.data(), n);
        MPI_Sendrecv(in.data(), as_int(n), MPI_BYTE, env.rank, 1, back.data(), 1, type, env.rank, 1, env.comm,
                     MPI_STATUS_IGNORE);
        CHECK(back == out);
        MPI_Type_free(&type);
    }
}
