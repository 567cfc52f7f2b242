// SPDX-License-Identifier: BSD-3-Clause
// Tags up to MPI_TAG_UB, and the info keys with which a program waives guarantees of MPI.
#include <algorithm>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

constexpr int i_am_here = 4711;

int largest_tag() {
    int* value = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    CHECK(flag != 0);
    return *value;
}

MPI_Comm with_info(const mpitest::Env& env, const char* key) {
    MPI_Comm comm;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, "true");
    MPI_Comm_dup_with_info(env.comm, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

}  // namespace

CASE(tags_up_to_the_upper_bound) {
    const int ub = largest_tag();
    CHECK(ub >= 32767);
    for (int tag : {0, 32767, 65535, 65536, 0x00ffffff, 0x7ffffffe, 0x7fffffff})
        for (std::size_t n : {std::size_t{4}, sizes::kRendezvous}) {
            if (tag > ub) continue;
            Bytes data(n);
            if (env.rank == 0) {
                pattern::fill(static_cast<std::uint64_t>(tag), 0, data.data(), n);
                MPI_Send(data.data(), as_int(n), MPI_BYTE, 1, tag, env.comm);
            } else if (env.rank == 1) {
                MPI_Status status;
                MPI_Recv(data.data(), as_int(n), MPI_BYTE, 0, n == 4 ? tag : MPI_ANY_TAG, env.comm, &status);
                CHECK_EQ(status.MPI_TAG, tag);
                CHECK_PATTERN(static_cast<std::uint64_t>(tag), data.data(), n);
            }
        }
}

CASE(tag_beyond_the_upper_bound_is_an_error) {
    MPI_Comm_set_errhandler(env.comm, MPI_ERRORS_RETURN);
    CHECK_ERROR(MPI_Send(nullptr, 0, MPI_BYTE, 0, -5, env.comm), MPI_ERR_TAG);
    if (largest_tag() != 0x7fffffff)
        CHECK_ERROR(MPI_Send(nullptr, 0, MPI_BYTE, 0, largest_tag() + 1, env.comm), MPI_ERR_TAG);
}

CASE(wildcard_never_takes_internal_messages) {
    // Collectives use negative tags on the same communicator.
    int value = -1, sum = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &request);
    for (int i = 0; i < 50; ++i) {
        MPI_Allreduce(&env.rank, &sum, 1, MPI_INT, MPI_SUM, env.comm);
        CHECK_EQ(sum, env.size * (env.size - 1) / 2);
        int flag = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(flag, 0);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(flag, 0);
    }
    MPI_Barrier(env.comm);  // all probes have ended
    MPI_Send(&i_am_here, 1, MPI_INT, (env.rank + 1) % env.size, 1, env.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(value, i_am_here);
}

CASE(overtaking_allowed_loses_and_doubles_nothing) {
    MPI_Comm comm = with_info(env, "mpi_assert_allow_overtaking");
    constexpr std::size_t kMessages = 200;
    const auto size_of = [](std::size_t i) { return i % 10 == 0 ? sizes::kRendezvous : 8 + i; };
    if (env.rank == 0) {
        std::vector<Bytes> data;
        std::vector<MPI_Request> requests(kMessages);
        for (std::size_t i = 0; i < kMessages; ++i) {
            data.emplace_back(size_of(i));
            pattern::fill(i, 0, data[i].data(), data[i].size());
            MPI_Isend(data[i].data(), as_int(data[i].size()), MPI_BYTE, 1, as_int(i % 4), comm, &requests[i]);
        }
        MPI_Waitall(as_int(kMessages), requests.data(), MPI_STATUSES_IGNORE);
    } else if (env.rank == 1) {
        std::vector<Bytes> data(kMessages, Bytes(sizes::kRendezvous));
        std::vector<MPI_Request> requests(kMessages);
        std::vector<MPI_Status> statuses(kMessages);
        std::vector<bool> seen(kMessages);
        for (std::size_t i = 0; i < kMessages; ++i)
            MPI_Irecv(data[i].data(), as_int(data[i].size()), MPI_BYTE, 0, as_int(i % 4), comm, &requests[i]);
        MPI_Waitall(as_int(kMessages), requests.data(), statuses.data());
        for (std::size_t i = 0; i < kMessages; ++i) {
            int count = 0;
            MPI_Get_count(&statuses[i], MPI_BYTE, &count);
            // Finds the message: it has this tag and size, matches byte by byte, and was not taken before.
            std::size_t k = i % 4;
            while (k < kMessages && (seen[k] || size_of(k) != static_cast<std::size_t>(count) ||
                                     pattern::mismatch(k, 0, data[i].data(), size_of(k)) != pattern::kNone))
                k += 4;
            CHECK(k < kMessages);
            seen[k] = true;
        }
    }
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

CASE(no_any_source_and_no_any_tag_still_deliver_in_order) {
    for (const char* key : {"mpi_assert_no_any_source", "mpi_assert_no_any_tag", "mpi_assert_exact_length"}) {
        MPI_Comm comm = with_info(env, key);
        for (int i = 0; i < 100; ++i) {
            const int to = (env.rank + 1) % env.size, from = (env.rank + env.size - 1) % env.size;
            const int value = env.rank * 1000 + i;
            int got = -1;
            MPI_Sendrecv(&value, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE);
            CHECK_EQ(got, from * 1000 + i);
        }
        MPI_Comm_free(&comm);
    }
}
