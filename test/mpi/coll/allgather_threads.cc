// SPDX-License-Identifier: BSD-3-Clause
// Several threads call MPI_Allgather and MPI_Iallgather at a time, each on a communicator of its own.
#include <thread>

#include "pending.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.thread_level = MPI_THREAD_MULTIPLE; });

constexpr int kThreads = 3;

// Calls in a row; every byte is checked.
void gather(MPI_Comm comm, std::uint64_t thread, int rounds) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    constexpr std::size_t kSizes[] = {8, 5000, 200, 4000, 60000};
    for (int round = 0; round < rounds; ++round) {
        const std::size_t bytes = kSizes[static_cast<std::size_t>(round) % std::size(kSizes)];
        const auto key = [&](int of) {
            return pattern::key({thread, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(of)});
        };
        Buffer mine(bytes), all(bytes * static_cast<std::size_t>(size)), expected = all;
        place(Shape{}, mine.data(), bytes, key(rank));
        for (int of = 0; of < size; ++of)
            place(Shape{}, expected.data() + static_cast<std::size_t>(of) * bytes, bytes, key(of));
        const int n = static_cast<int>(bytes);
        CHECK_MPI(MPI_Allgather(mine.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, comm));
        all.check_equals(expected, "thread " + std::to_string(thread) + ", round " + std::to_string(round));
    }
}

}  // namespace

CASE(threads_gather_on_communicators_of_their_own) {
    const int rounds = mpitest::hang_scale() == 1 ? 200 : 40;
    const auto before = counters().read().all_calls();
    MPI_Comm comms[kThreads];
    for (int i = 0; i < kThreads; ++i)
        if (i == kThreads - 1) MPI_Comm_split(env.comm, 0, env.size - env.rank, &comms[i]);
        else MPI_Comm_dup(env.comm, &comms[i]);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(gather, comms[i], static_cast<std::uint64_t>(i), rounds);
    for (std::thread& thread : threads) thread.join();
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    CHECK_EQ(counters().read().all_calls() - before, kThreads * (rounds - 1));
}

CASE(threads_gather_while_others_exchange_messages) {
    constexpr int kTag = 4, kMessages = 200;
    MPI_Comm comm;
    MPI_Comm_dup(env.comm, &comm);
    std::thread other([&] {
        const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
        std::vector<unsigned char> sent(20000), received(20000);
        for (int i = 0; i < kMessages; ++i) {
            const int n = i % 2 == 0 ? 10 : 20000;
            const auto key = [&](int rank) {
                return pattern::key({static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(rank)});
            };
            pattern::fill(key(env.rank), 0, sent.data(), static_cast<std::size_t>(n));
            MPI_Sendrecv(sent.data(), n, MPI_BYTE, next, kTag, received.data(), n, MPI_BYTE, before, kTag, comm,
                         MPI_STATUS_IGNORE);
            CHECK_PATTERN(key(before), received.data(), static_cast<std::size_t>(n));
        }
    });
    gather(comm, 9, 100);
    other.join();
    MPI_Comm_free(&comm);
}

CASE(threads_have_calls_outstanding_on_communicators_of_their_own) {
    const int rounds = mpitest::hang_scale() == 1 ? 60 : 12;
    std::list<Gathering> gatherings;
    for (int i = 0; i < kThreads; ++i) gatherings.emplace_back(duplicate(env.comm)).equal(8);
    std::vector<std::thread> threads;
    for (Gathering& mine : gatherings)
        threads.emplace_back([&mine, rounds] {
            for (int round = 0; round < rounds; ++round) {
                Several several;
                const auto first = static_cast<std::size_t>(round);
                for (std::size_t i = 0; i < 5; ++i) start(several, mine, 10 * first + i, size_of(first + i));
                complete(several, static_cast<Way>(round % kWays));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

// One thread starts calls, another one completes them.
CASE(another_thread_waits_for_the_calls) {
    Gathering all(duplicate(env.comm));
    all.equal(8);
    for (std::uint64_t round = 0; round < 30; ++round) {
        Several several;
        for (std::uint64_t i = 0; i < 3; ++i) start(several, all, 10 * round + i, size_of(round + i));
        std::thread waiter([&several] { complete(several, kWaitForward); });
        Several more;
        for (std::uint64_t i = 3; i < 7; ++i) start(more, all, 10 * round + i, size_of(round + i));
        complete(more, kWaitBackward);
        waiter.join();
    }
}
