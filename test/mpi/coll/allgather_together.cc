// SPDX-License-Identifier: BSD-3-Clause
// Allgathers by coll/rdmaag (gathering.h) next to other things: calls in a row with a rank that is late, point-to-point
// messages of the same communicator, many communicators, and communicators that it has nothing to do with.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gathering.h"

namespace {

constexpr std::size_t kMixed[] = {8, 100000, 1, 3000, 4097, 16, 300000, 500};

// Resident memory of this process, in bytes.
std::size_t resident_bytes() {
    std::size_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

CASE(calls_in_a_row_with_one_rank_late) {
    with_each_number(env, [](Gathering& some) {
        for (int late = 0; late < some.size(); ++late)
            for (const std::size_t bytes : kMixed) {
                if (some.rank() == late) usleep(300);
                some.equal(bytes);
                some.equal(8);
            }
    });
}

// Nothing else happens between the calls, and each call uses the memory of the one before.
CASE(calls_back_to_back) {
    const auto p = static_cast<std::size_t>(env.size);
    const MPI_Comm comm = duplicate(env.comm);
    for (const std::size_t bytes : {8, 2000, 20000}) {
        const int n = static_cast<int>(bytes);
        std::vector<unsigned char> mine(bytes), all(p * bytes);
        for (std::uint64_t call = 0; call < 200; ++call) {
            pattern::fill(pattern::key({call, static_cast<std::uint64_t>(env.rank)}), 0, mine.data(), bytes);
            MPI_Allgather(mine.data(), n, MPI_BYTE, all.data(), n, MPI_BYTE, comm);
            for (std::size_t rank = 0; rank < p; ++rank)
                CHECK_PATTERN(pattern::key({call, rank}), &all[rank * bytes], bytes);
        }
    }
    MPI_Comm closing = comm;
    MPI_Comm_free(&closing);
}

// With "links" there are two connections between two processes; puts use one, and short packets the other.
CASE(notices_do_not_overtake_the_data) {
    const int rounds = has_argument("links") ? 150 : 5;
    Gathering all(duplicate(env.comm));
    for (int round = 0; round < rounds; ++round) all.equal(400000);
}

CASE(messages_of_the_same_communicator_go_on) {
    constexpr int kTag = 7;
    Gathering all(duplicate(env.comm));
    const int next = (env.rank + 1) % env.size, before = (env.rank + env.size - 1) % env.size;
    for (int round = 0; round < 4; ++round)
        for (const std::size_t bytes : {1, 4000, 400000}) {
            const auto n = static_cast<int>(bytes);
            const auto key = [&](int rank) {
                return pattern::key({static_cast<std::uint64_t>(round), bytes, static_cast<std::uint64_t>(rank), 99});
            };
            std::vector<unsigned char> sent(bytes), received(bytes);
            pattern::fill(key(env.rank), 0, sent.data(), bytes);
            MPI_Request requests[2];
            if (round % 2 == 0) MPI_Irecv(received.data(), n, MPI_BYTE, before, kTag, all.comm(), &requests[0]);
            MPI_Isend(sent.data(), n, MPI_BYTE, next, kTag, all.comm(), &requests[1]);
            all.equal(bytes / 2 + 1);
            all.equal(10);
            if (round % 2 == 1) MPI_Irecv(received.data(), n, MPI_BYTE, before, kTag, all.comm(), &requests[0]);
            all.equal(5000);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            CHECK_PATTERN(key(before), received.data(), bytes);
        }
}

CASE(several_communicators_take_turns) {
    Gathering first(duplicate(env.comm)), second(duplicate(env.comm));
    MPI_Comm turned;
    MPI_Comm_split(env.comm, 0, env.size - env.rank, &turned);
    Gathering reversed(turned);
    for (const std::size_t bytes : kMixed) {
        first.equal(bytes);
        reversed.equal(bytes / 2 + 1);
        second.equal(8);
    }
}

// A sanitizer keeps freed memory for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// Among few processes a thousand communicators; their memory does not stay, nor do their collective buffers.
CASE(communicators_come_and_go_without_a_trace) {
    const std::string asked = word_after("rounds=");
    const int rounds = !asked.empty() ? std::stoi(asked) : env.size <= 4 && !kSanitized ? 1000 : 60;
    std::size_t at_first = 0, descriptors = 0;
    Counts before;  // env.comm has its buffers by then: MPI_Comm_split calls MPI_Allgather
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm comm;
        if (round % 2 == 0) MPI_Comm_dup(env.comm, &comm);
        else MPI_Comm_split(env.comm, env.rank % 2, env.rank, &comm);
        int size = 0;
        MPI_Comm_size(comm, &size);
        if (size == 1) {
            MPI_Comm_free(&comm);
        } else {
            Gathering some(comm);
            some.equal(16);
            if (round % 8 == 0) some.equal(10000);
        }
        if (round != rounds / 2) continue;
        at_first = resident_bytes(), descriptors = open_descriptors();
        before = counters().read();
    }
    const Counts after = counters().read();
    CHECK_EQ(after.buffers_returned - before.buffers_returned, after.buffers_taken - before.buffers_taken);
    const std::size_t most = (1 << 20) + 100 * static_cast<std::size_t>(rounds), now = resident_bytes();
    printf("resident: %zu KiB, later %zu KiB\n", at_first / 1024, now / 1024);
    if (!kSanitized) CHECK(now < at_first + most);
    CHECK(open_descriptors() < descriptors + 10);
}

CASE(one_process_and_intercommunicators_are_left_to_others) {
    const auto before = counters().read().all_calls();
    int mine = 5 + env.rank, result[64] = {};
    CHECK_MPI(MPI_Allgather(&mine, 1, MPI_INT, result, 1, MPI_INT, MPI_COMM_SELF));
    CHECK_EQ(result[0], mine);

    MPI_Comm half, inter;
    const int lower = (env.size + 1) / 2, other = env.rank < lower ? lower : 0;
    MPI_Comm_split(env.comm, env.rank < lower, env.rank, &half);
    MPI_Intercomm_create(half, 0, env.comm, other, 3, &inter);
    const auto between = counters().read().all_calls();
    int remote = 0;
    MPI_Comm_remote_size(inter, &remote);
    for (int i = 0; i < 3; ++i) {
        CHECK_MPI(MPI_Allgather(&mine, 1, MPI_INT, result, 1, MPI_INT, inter));
        for (int rank = 0; rank < remote; ++rank) CHECK_EQ(result[rank], 5 + other + rank);
    }
    CHECK_EQ(between, counters().read().all_calls());
    CHECK(before <= between);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

// With "unasked": a process of the job does not use coll/rdmaag, so none does.
CASE(nothing_is_done_here_unless_all_ask) {
    if (!has_argument("unasked")) return;
    const auto before = counters().read().all_calls();
    for (int round = 0; round < 5; ++round) {
        std::vector<int> result(static_cast<std::size_t>(env.size));
        const int mine = 100 * round + env.rank;
        CHECK_MPI(MPI_Allgather(&mine, 1, MPI_INT, result.data(), 1, MPI_INT, env.comm));
        for (int rank = 0; rank < env.size; ++rank)
            CHECK_EQ(result[static_cast<std::size_t>(rank)], 100 * round + rank);
    }
    CHECK_EQ(counters().read().all_calls(), before);
}

// With "killed": the job must end, so the case does not.
CASE(a_rank_is_killed) {
    if (!has_argument("killed")) return;
    Gathering all(duplicate(env.comm));
    for (int round = 0;; ++round) {
        if (round == 50 && env.rank == 1) {
            puts("KILLED");
            fflush(stdout);
            raise(SIGKILL);
        }
        all.equal(round % 2 == 0 ? 100 : 100000);
    }
}
