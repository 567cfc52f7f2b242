// SPDX-License-Identifier: BSD-3-Clause
// Waiting and testing: any, some, all, get_status; null requests and empty lists.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

constexpr std::size_t kMessages = 24;
std::size_t size_of(std::size_t i) { return i % 3 == 0 ? sizes::kRendezvous + i : i * 100; }

// Starts kMessages nonblocking sends on rank 0 and the receives for them on rank 1. Other ranks have no requests.
struct Exchange {
    std::vector<Bytes> data;
    std::vector<MPI_Request> requests;

    explicit Exchange(const mpitest::Env& env) {
        if (env.rank > 1) return;
        for (std::size_t i = 0; i < kMessages; ++i) {
            data.emplace_back(size_of(i));
            requests.emplace_back();
            if (env.rank == 0) {
                pattern::fill(i, 0, data[i].data(), data[i].size());
                MPI_Isend(data[i].data(), as_int(data[i].size()), MPI_BYTE, 1, as_int(i), env.comm, &requests[i]);
            } else {
                MPI_Irecv(data[i].data(), as_int(data[i].size()), MPI_BYTE, 0, as_int(i), env.comm, &requests[i]);
            }
        }
    }

    void check(const mpitest::Env& env, std::size_t i, const MPI_Status& status) const {
        CHECK(requests[i] == MPI_REQUEST_NULL);
        if (env.rank != 1) return;
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK_EQ(status.MPI_TAG, i);
        CHECK_EQ(status.MPI_SOURCE, 0);
        CHECK_EQ(count, size_of(i));
        CHECK_PATTERN(i, data[i].data(), data[i].size());
    }
    int size() const { return as_int(requests.size()); }
};

}  // namespace

CASE(waitany_returns_each_once) {
    Exchange x(env);
    std::vector<bool> seen(x.requests.size());
    MPI_Status status;
    int index = -1;
    for (std::size_t k = 0; k < x.requests.size(); ++k) {
        MPI_Waitany(x.size(), x.requests.data(), &index, &status);
        const auto i = static_cast<std::size_t>(index);
        CHECK(i < seen.size() && !seen[i]);
        seen[i] = true;
        x.check(env, i, status);
    }
    MPI_Waitany(x.size(), x.requests.data(), &index, &status);
    CHECK_EQ(index, MPI_UNDEFINED);
}

CASE(waitsome_returns_each_once) {
    Exchange x(env);
    std::vector<bool> seen(x.requests.size());
    std::vector<int> indices(kMessages);
    std::vector<MPI_Status> statuses(kMessages);
    int n = 0;
    for (std::size_t left = x.requests.size(); left > 0; left -= static_cast<std::size_t>(n)) {
        MPI_Waitsome(x.size(), x.requests.data(), &n, indices.data(), statuses.data());
        CHECK(n >= 1);
        for (int k = 0; k < n; ++k) {
            const auto i = static_cast<std::size_t>(indices[static_cast<std::size_t>(k)]);
            CHECK(i < seen.size() && !seen[i]);
            seen[i] = true;
            x.check(env, i, statuses[static_cast<std::size_t>(k)]);
        }
    }
    MPI_Waitsome(x.size(), x.requests.data(), &n, indices.data(), statuses.data());
    CHECK_EQ(n, MPI_UNDEFINED);
}

CASE(testall_is_all_or_nothing) {
    Exchange x(env);
    std::vector<MPI_Status> statuses(kMessages);
    int flag = 0;
    while (!flag) {
        MPI_Testall(x.size(), x.requests.data(), &flag, statuses.data());
        for (const MPI_Request& r : x.requests)
            if (!flag) CHECK(r != MPI_REQUEST_NULL);
    }
    for (std::size_t i = 0; i < x.requests.size(); ++i) x.check(env, i, statuses[i]);
}

CASE(testany_and_testsome_finish_the_rest) {
    Exchange x(env);
    std::vector<int> indices(kMessages);
    std::vector<MPI_Status> statuses(kMessages);
    std::size_t left = x.requests.size();
    while (left > 0) {
        int index = MPI_UNDEFINED, flag = 0, n = 0;
        MPI_Status status;
        MPI_Testany(x.size(), x.requests.data(), &index, &flag, &status);
        if (flag && index != MPI_UNDEFINED) x.check(env, static_cast<std::size_t>(index), status), --left;
        MPI_Testsome(x.size(), x.requests.data(), &n, indices.data(), statuses.data());
        if (n == MPI_UNDEFINED) CHECK_EQ(left, 0);
        for (int k = 0; k < n; ++k) {
            x.check(env, static_cast<std::size_t>(indices[static_cast<std::size_t>(k)]),
                    statuses[static_cast<std::size_t>(k)]);
            --left;
        }
    }
}

CASE(get_status_does_not_free_the_request) {
    Exchange x(env);
    for (std::size_t i = 0; i < x.requests.size(); ++i) {
        MPI_Status peeked, status;
        int flag = 0;
        while (!flag) MPI_Request_get_status(x.requests[i], &flag, &peeked);
        CHECK(x.requests[i] != MPI_REQUEST_NULL);
        MPI_Request_get_status(x.requests[i], &flag, &peeked);
        CHECK(flag != 0);
        MPI_Wait(&x.requests[i], &status);
        x.check(env, i, status);
        if (env.rank == 1) {
            CHECK_EQ(peeked.MPI_TAG, status.MPI_TAG);
            CHECK_EQ(peeked.MPI_SOURCE, status.MPI_SOURCE);
        }
    }
}

CASE(waiting_for_a_request_in_the_middle_completes_only_that) {
    if (env.rank > 1) return;
    int values[3] = {-1, -1, -1};
    MPI_Request requests[3];
    if (env.rank == 1) {
        for (int i = 0; i < 3; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 0, i, env.comm, &requests[i]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        CHECK_EQ(values[1], 10);
        int flag = 1;
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(flag, 0);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 5, env.comm);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK_EQ(values[0], 0);
        CHECK_EQ(values[2], 20);
    } else {
        for (int i : {1, 0, 2}) {
            values[i] = 10 * i;
            MPI_Send(&values[i], 1, MPI_INT, 1, i, env.comm);
            if (i == 1) MPI_Recv(nullptr, 0, MPI_BYTE, 1, 5, env.comm, MPI_STATUS_IGNORE);
        }
    }
}

CASE(null_requests_and_null_processes_are_complete) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    int flag = 0, value = 5, count = -1;
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag != 0);
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, env.comm, &requests[0]);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, env.comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(value, 5);
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, env.comm);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, env.comm, &status);
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 0);
}
