// SPDX-License-Identifier: BSD-3-Clause
// Non-overtaking: messages of one source on one communicator match in the order sent, receives in the order posted.
#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

// Small, large and empty in turn: protocols of very different speed.
std::size_t mixed_size(std::size_t i) {
    constexpr std::size_t sizes[] = {8, sizes::kRendezvous, 0, 5000, 70000, 1, 33000};
    return sizes[i % 7];
}

struct Outgoing {
    std::vector<Bytes> data;
    std::vector<MPI_Request> requests;

    void send(const mpitest::Env& env, int to, int tag, std::uint64_t key, std::size_t n) {
        data.emplace_back(n);
        pattern::fill(key, 0, data.back().data(), n);
        requests.emplace_back();
        MPI_Isend(data.back().data(), as_int(n), MPI_BYTE, to, tag, env.comm, &requests.back());
    }
    ~Outgoing() { MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE); }
};

void check_message(const MPI_Status& status, const Bytes& data, std::uint64_t key, std::size_t n) {
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, n);
    CHECK_PATTERN(key, data.data(), n);
}

}  // namespace

CASE(receives_match_in_posted_order) {
    constexpr std::size_t kMessages = 140;
    if (env.rank == 1) {
        std::vector<Bytes> data(kMessages, Bytes(sizes::kRendezvous));
        std::vector<MPI_Request> requests(kMessages);
        std::vector<MPI_Status> statuses(kMessages);
        for (std::size_t i = 0; i < kMessages; ++i)
            MPI_Irecv(data[i].data(), as_int(data[i].size()), MPI_BYTE, 0, 2, env.comm, &requests[i]);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 9, env.comm);
        MPI_Waitall(as_int(kMessages), requests.data(), statuses.data());
        for (std::size_t i = 0; i < kMessages; ++i) check_message(statuses[i], data[i], i, mixed_size(i));
    } else if (env.rank == 0) {
        Outgoing out;
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 9, env.comm, MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < kMessages; ++i) out.send(env, 1, 2, i, mixed_size(i));
    }
}

CASE(unexpected_messages_match_in_sent_order) {
    constexpr std::size_t kMessages = 140;
    if (env.rank == 0) {
        Outgoing out;
        for (std::size_t i = 0; i < kMessages; ++i) out.send(env, 1, 2, i, mixed_size(i));
        // This message comes after all of them, and so after the RTS of the large ones.
        out.send(env, 1, 9, 0, 0);
    } else if (env.rank == 1) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, 9, env.comm, MPI_STATUS_IGNORE);
        Bytes data(sizes::kRendezvous);
        for (std::size_t i = 0; i < kMessages; ++i) {
            MPI_Status status;
            MPI_Recv(data.data(), as_int(data.size()), MPI_BYTE, 0, 2, env.comm, &status);
            check_message(status, data, i, mixed_size(i));
        }
    }
}

CASE(wildcard_and_specific_receives_match_in_posted_order) {
    // Every receive matches every message, by different wildcards.
    constexpr std::size_t kMessages = 80;
    if (env.rank == 1) {
        std::vector<Bytes> data(kMessages, Bytes(sizes::kRendezvous));
        std::vector<MPI_Request> requests(kMessages);
        std::vector<MPI_Status> statuses(kMessages);
        for (std::size_t i = 0; i < kMessages; ++i)
            MPI_Irecv(data[i].data(), as_int(data[i].size()), MPI_BYTE, i % 2 == 0 ? 0 : MPI_ANY_SOURCE,
                      i % 3 == 0 ? MPI_ANY_TAG : 2, env.comm, &requests[i]);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 9, env.comm);
        MPI_Waitall(as_int(kMessages), requests.data(), statuses.data());
        for (std::size_t i = 0; i < kMessages; ++i) {
            CHECK_EQ(statuses[i].MPI_SOURCE, 0);
            CHECK_EQ(statuses[i].MPI_TAG, 2);
            check_message(statuses[i], data[i], i, mixed_size(i));
        }
    } else if (env.rank == 0) {
        Outgoing out;
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 9, env.comm, MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < kMessages; ++i) out.send(env, 1, 2, i, mixed_size(i));
    }
}

CASE(tag_wildcard_takes_the_oldest_message_and_a_tag_passes_by) {
    if (env.rank == 0) {
        Outgoing out;
        for (std::size_t i = 0; i < 30; ++i) out.send(env, 1, as_int(i), i, mixed_size(i));
    } else if (env.rank == 1) {
        Bytes data(sizes::kRendezvous);
        MPI_Status status;
        for (std::size_t i = 29; i >= 20; --i) {
            MPI_Recv(data.data(), as_int(data.size()), MPI_BYTE, 0, as_int(i), env.comm, &status);
            check_message(status, data, i, mixed_size(i));
        }
        for (std::size_t i = 0; i < 20; ++i) {
            MPI_Recv(data.data(), as_int(data.size()), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status);
            CHECK_EQ(status.MPI_TAG, i);
            check_message(status, data, i, mixed_size(i));
        }
    }
}

CASE(source_wildcard_keeps_the_order_of_each_source) {
    constexpr std::size_t kEach = 60;
    if (env.rank == 0) {
        std::vector<std::size_t> next(static_cast<std::size_t>(env.size), 0);
        Bytes data(sizes::kRendezvous);
        for (std::size_t i = 0; i < kEach * static_cast<std::size_t>(env.size - 1); ++i) {
            MPI_Status status;
            MPI_Recv(data.data(), as_int(data.size()), MPI_BYTE, MPI_ANY_SOURCE, 2, env.comm, &status);
            const auto source = static_cast<std::size_t>(status.MPI_SOURCE);
            check_message(status, data, source * 1000 + next[source], mixed_size(next[source]));
            ++next[source];
        }
    } else {
        Outgoing out;
        for (std::size_t i = 0; i < kEach; ++i)
            out.send(env, 0, 2, static_cast<std::uint64_t>(env.rank) * 1000 + i, mixed_size(i));
    }
}

CASE(communicators_do_not_see_each_other) {
    MPI_Comm other;
    MPI_Comm_dup(env.comm, &other);
    if (env.rank == 0) {
        const int in_first = 1, in_other = 2;
        MPI_Send(&in_other, 1, MPI_INT, 1, 5, other);
        MPI_Send(&in_first, 1, MPI_INT, 1, 5, env.comm);
    } else if (env.rank == 1) {
        int value = 0, flag = 0;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, MPI_STATUS_IGNORE);
        CHECK_EQ(value, 1);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(flag, 0);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
        CHECK_EQ(value, 2);
    }
    MPI_Comm_free(&other);
}

CASE(completion_order_is_free_but_matching_is_not) {
    // The small message after a large one may complete first; both must be correct.
    for (int round = 0; round < 20; ++round) {
        if (env.rank == 0) {
            Outgoing out;
            out.send(env, 1, 2, 1, 4u << 20);
            out.send(env, 1, 2, 2, 8);
        } else if (env.rank == 1) {
            Bytes large(4u << 20), small(4u << 20);
            MPI_Request requests[2];
            MPI_Status statuses[2];
            MPI_Irecv(large.data(), as_int(large.size()), MPI_BYTE, 0, MPI_ANY_TAG, env.comm, &requests[0]);
            MPI_Irecv(small.data(), as_int(small.size()), MPI_BYTE, 0, 2, env.comm, &requests[1]);
            MPI_Wait(&requests[1], &statuses[1]);
            check_message(statuses[1], small, 2, 8);
            MPI_Wait(&requests[0], &statuses[0]);
            check_message(statuses[0], large, 1, 4u << 20);
        }
    }
}
