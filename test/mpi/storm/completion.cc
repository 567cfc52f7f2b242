// SPDX-License-Identifier: BSD-3-Clause
#include "completion.h"

namespace storm {
namespace {

using Done = std::function<void(std::size_t, const MPI_Status&)>;
using Requests = std::vector<MPI_Request>;

std::size_t active(const Requests& requests) {
    std::size_t n = 0;
    for (MPI_Request r : requests) n += r != MPI_REQUEST_NULL;
    return n;
}

int count_of(const Requests& requests) { return static_cast<int>(requests.size()); }

void wait_all(Requests& requests, bool test, const Done& done) {
    Requests before = requests;
    std::vector<MPI_Status> statuses(requests.size());
    int flag = !test;
    if (!test) MPI_Waitall(count_of(requests), requests.data(), statuses.data());
    while (!flag) MPI_Testall(count_of(requests), requests.data(), &flag, statuses.data());
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i] != MPI_REQUEST_NULL) done(i, statuses[i]);
}

void wait_any(Requests& requests, bool test, const Done& done) {
    for (std::size_t left = active(requests); left > 0; --left) {
        int index = MPI_UNDEFINED, flag = 0;
        MPI_Status status;
        if (!test) MPI_Waitany(count_of(requests), requests.data(), &index, &status);
        while (test && !flag) MPI_Testany(count_of(requests), requests.data(), &index, &flag, &status);
        done(static_cast<std::size_t>(index), status);
    }
}

void wait_some(Requests& requests, bool test, const Done& done) {
    std::vector<int> indices(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    for (std::size_t left = active(requests); left > 0;) {
        int n = 0;
        if (test) MPI_Testsome(count_of(requests), requests.data(), &n, indices.data(), statuses.data());
        else MPI_Waitsome(count_of(requests), requests.data(), &n, indices.data(), statuses.data());
        for (int i = 0; i < n; ++i)
            done(static_cast<std::size_t>(indices[static_cast<std::size_t>(i)]), statuses[static_cast<std::size_t>(i)]);
        left -= static_cast<std::size_t>(n);
    }
}

void one_by_one(Requests& requests, bool peek, const Done& done) {
    for (std::size_t i = requests.size(); i-- > 0;) {
        if (requests[i] == MPI_REQUEST_NULL) continue;
        MPI_Status status;
        int flag = !peek;
        while (!flag) MPI_Request_get_status(requests[i], &flag, &status);
        if (!peek) MPI_Wait(&requests[i], &status);
        else MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        done(i, status);
    }
}

}  // namespace

void complete_all(Requests& requests, pattern::Random& random, const Done& done) {
    // Completed persistent requests stay in the array: Waitany and Waitsome skip
    // inactive requests, so each is reported once.
    const bool second = random.one_in(2);
    switch (random.below(4)) {
    case 0: wait_all(requests, second, done); break;
    case 1: wait_any(requests, second, done); break;
    case 2: wait_some(requests, second, done); break;
    default: one_by_one(requests, second, done); break;
    }
}

}  // namespace storm
