// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: own communicators, a shared one, wildcards, matched probes.
#include <cstring>
#include <functional>
#include <thread>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

const mpitest::Configure configure([](mpitest::Settings& s) { s.thread_level = MPI_THREAD_MULTIPLE; });

constexpr int kThreads = 4;

int as_int(std::size_t n) { return static_cast<int>(n); }

void in_threads(const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
    for (std::thread& t : threads) t.join();
}

std::size_t size_of(int i) {
    constexpr std::size_t sizes[] = {0, 8, 700, 5000, 70000, sizes::kRendezvous};
    return sizes[i % 6];
}

std::uint64_t key_of(int rank, int thread, int i) {
    return pattern::key(
        {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(thread), static_cast<std::uint64_t>(i)});
}

// `count` messages around the ring; thread t uses tag t.
void ring(MPI_Comm comm, int rank, int size, int t, int count) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < count; ++i) {
        const std::size_t n = size_of(i + t);
        Bytes out(n), in(n);
        pattern::fill(key_of(rank, t, i), 0, out.data(), n);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv(in.data(), as_int(n), MPI_BYTE, i % 2 == 0 ? from : MPI_ANY_SOURCE, t, comm, &requests[0]);
        if (i % 3 == 0) MPI_Issend(out.data(), as_int(n), MPI_BYTE, to, t, comm, &requests[1]);
        else MPI_Isend(out.data(), as_int(n), MPI_BYTE, to, t, comm, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        CHECK_EQ(statuses[0].MPI_SOURCE, from);
        CHECK_PATTERN(key_of(from, t, i), in.data(), n);
    }
}

}  // namespace

CASE(threads_with_own_communicators) {
    std::vector<MPI_Comm> comms(kThreads);
    for (MPI_Comm& c : comms) MPI_Comm_dup(env.comm, &c);
    in_threads([&](int t) { ring(comms[static_cast<std::size_t>(t)], env.rank, env.size, t, 60); });
    for (MPI_Comm& c : comms) MPI_Comm_free(&c);
}

CASE(threads_share_a_communicator_by_tag) {
    in_threads([&](int t) { ring(env.comm, env.rank, env.size, t, 60); });
}

CASE(threads_receive_whatever_comes) {
    // All threads of rank 0 take messages from all threads of all other ranks; the head identifies each message.
    struct Head {
        std::int32_t rank, thread, i, bytes;
    };
    constexpr int kEach = 40;
    if (env.rank == 0) {
        const int total = kEach * (env.size - 1);  // per receiving thread
        std::vector<std::vector<char>> seen(static_cast<std::size_t>(env.size * kThreads), std::vector<char>(kEach, 0));
        in_threads([&](int) {
            Bytes data(sizeof(Head) + sizes::kRendezvous);
            for (int k = 0; k < total; ++k) {
                MPI_Status status;
                MPI_Recv(data.data(), as_int(data.size()), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &status);
                Head head;
                memcpy(&head, data.data(), sizeof head);
                int count = 0;
                MPI_Get_count(&status, MPI_BYTE, &count);
                CHECK_EQ(count, sizeof head + static_cast<std::size_t>(head.bytes));
                CHECK_EQ(status.MPI_SOURCE, head.rank);
                CHECK_EQ(status.MPI_TAG, head.thread);
                CHECK_PATTERN(key_of(head.rank, head.thread, head.i), data.data() + sizeof head,
                              static_cast<std::size_t>(head.bytes));
                // Only the thread that received the message writes the cell.
                char& cell = seen[static_cast<std::size_t>(head.rank * kThreads + head.thread)]
                                 [static_cast<std::size_t>(head.i)];
                CHECK_EQ(cell, 0);
                cell = 1;
            }
        });
        for (int r = kThreads; r < env.size * kThreads; ++r)
            for (char cell : seen[static_cast<std::size_t>(r)]) CHECK_EQ(cell, 1);
    } else {
        in_threads([&](int t) {
            for (int i = 0; i < kEach; ++i) {
                const std::size_t n = size_of(i);
                const Head head = {env.rank, t, i, as_int(n)};
                Bytes data(sizeof head + n);
                memcpy(data.data(), &head, sizeof head);
                pattern::fill(key_of(env.rank, t, i), 0, data.data() + sizeof head, n);
                MPI_Send(data.data(), as_int(data.size()), MPI_BYTE, 0, t, env.comm);
            }
        });
    }
}

CASE(matched_probe_gives_each_message_to_one_thread) {
    constexpr int kEach = 80;
    if (env.rank == 0) {
        in_threads([&](int t) {
            for (int k = 0; k < kEach * (env.size - 1); ++k) {
                MPI_Message message = MPI_MESSAGE_NULL;
                MPI_Status status;
                int flag = 0, count = 0;
                if (t % 2 == 0) MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &message, &status);
                else
                    while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, env.comm, &flag, &message, &status);
                MPI_Get_count(&status, MPI_BYTE, &count);
                Bytes data(static_cast<std::size_t>(count));
                if (k % 2 == 0) {
                    MPI_Mrecv(data.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
                } else {
                    MPI_Request request;
                    MPI_Imrecv(data.data(), count, MPI_BYTE, &message, &request);
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                }
                CHECK_EQ(count, size_of(status.MPI_TAG));
                CHECK_PATTERN(key_of(status.MPI_SOURCE, 0, status.MPI_TAG), data.data(), data.size());
            }
        });
    } else {
        in_threads([&](int t) {
            for (int i = t; i < kThreads * kEach; i += kThreads) {
                Bytes data(size_of(i));
                pattern::fill(key_of(env.rank, 0, i), 0, data.data(), data.size());
                MPI_Send(data.data(), as_int(data.size()), MPI_BYTE, 0, i, env.comm);
            }
        });
    }
}

CASE(one_thread_waits_while_another_makes_it_happen) {
    // The waiting thread must not keep other threads out of MPI.
    if (env.rank > 1) return;
    const int peer = 1 - env.rank;
    for (int i = 0; i < 50; ++i) {
        int value = -1;
        std::thread waiting([&] { MPI_Recv(&value, 1, MPI_INT, peer, 1, env.comm, MPI_STATUS_IGNORE); });
        int token = 0;
        MPI_Sendrecv(&i, 1, MPI_INT, peer, 2, &token, 1, MPI_INT, peer, 2, env.comm, MPI_STATUS_IGNORE);
        CHECK_EQ(token, i);
        MPI_Send(&i, 1, MPI_INT, peer, 1, env.comm);
        waiting.join();
        CHECK_EQ(value, i);
    }
}

CASE(threads_cancel_and_repost) {
    in_threads([&](int t) {
        for (int i = 0; i < 50; ++i) {
            int value = -1, cancelled = 0;
            MPI_Request request;
            MPI_Status status;
            MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1000 + t, env.comm, &request);  // an unused tag
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &cancelled);
            CHECK(cancelled != 0);
            ring(env.comm, env.rank, env.size, t, 1);
        }
    });
}

CASE(threads_make_communicators_at_the_same_time) {
    std::vector<MPI_Comm> comms(kThreads);
    for (MPI_Comm& c : comms) MPI_Comm_dup(env.comm, &c);
    in_threads([&](int t) {
        for (int i = 0; i < 8; ++i) {
            MPI_Comm comm;
            MPI_Comm_dup(comms[static_cast<std::size_t>(t)], &comm);
            ring(comm, env.rank, env.size, t, 3);
            MPI_Comm_free(&comm);
        }
    });
    for (MPI_Comm& c : comms) MPI_Comm_free(&c);
}
