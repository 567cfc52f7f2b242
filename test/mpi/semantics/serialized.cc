// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_SERIALIZED: threads that call MPI one after the other, and complete requests that another one has started.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

const mpitest::Configure configure([](mpitest::Settings& s) { s.thread_level = MPI_THREAD_SERIALIZED; });

constexpr int kThreads = 3, kSteps = 600;

int as_int(std::size_t n) { return static_cast<int>(n); }

std::size_t size_of(int i) {
    constexpr std::size_t sizes[] = {0, 8, 700, 3000, 20000, 70000, 200000, sizes::kRendezvous};
    return sizes[i % 8];
}

std::uint64_t key_of(int rank, int i) {
    return pattern::key({static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i)});
}

// Thread i % kThreads executes step(i), after step i - 1.
void in_turns(int steps, const std::function<void(int)>& step) {
    std::mutex mutex;
    std::condition_variable moved;
    int next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (int i = t; i < steps; i += kThreads) {
                std::unique_lock<std::mutex> lock(mutex);
                moved.wait(lock, [&] { return next == i; });
                step(i);
                ++next;
                moved.notify_all();
            }
        });
    for (std::thread& each : threads) each.join();
}

Bytes filled(int rank, int i) {
    Bytes data(size_of(i));
    pattern::fill(key_of(rank, i), 0, data.data(), data.size());
    return data;
}

int peer_of(const mpitest::Env& env) { return env.rank ^ 1; }

}  // namespace

CASE(threads_take_turns_with_calls_that_block) {
    const int peer = peer_of(env);
    if (peer >= env.size) return;
    in_turns(kSteps, [&](int i) {
        const Bytes out = filled(env.rank, i);
        Bytes in(out.size());
        const int bytes = as_int(out.size());
        MPI_Status status;
        const auto send = [&] { CHECK_MPI(MPI_Send(out.data(), bytes, MPI_BYTE, peer, i, env.comm)); };
        const auto receive = [&] {
            if (i % 7 == 0) CHECK_MPI(MPI_Probe(peer, i, env.comm, &status));
            const bool any = i % 3 == 0;
            CHECK_MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, any ? MPI_ANY_SOURCE : peer, any ? MPI_ANY_TAG : i, env.comm,
                               &status));
        };
        if (i % 5 == 0) {
            CHECK_MPI(MPI_Sendrecv(out.data(), bytes, MPI_BYTE, peer, i, in.data(), bytes, MPI_BYTE, peer, i, env.comm,
                                   &status));
        } else if (env.rank < peer) {
            send();
            receive();
        } else {
            receive();
            send();
        }
        CHECK_EQ(status.MPI_SOURCE, peer);
        CHECK_EQ(status.MPI_TAG, i);
        CHECK_PATTERN(key_of(peer, i), in.data(), in.size());
    });
}

CASE(a_thread_completes_what_another_one_has_started) {
    const int peer = peer_of(env);
    if (peer >= env.size) return;
    MPI_Request requests[2];
    Bytes out, in;
    in_turns(kSteps, [&](int i) {
        if (i > 0) {
            if (i % 4 == 0) CHECK_MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            for (int done = 0; i % 4 == 1 && !done;) CHECK_MPI(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE));
            CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            CHECK_PATTERN(key_of(peer, i - 1), in.data(), in.size());
        }
        out = filled(env.rank, i);
        in.assign(out.size(), 0);
        CHECK_MPI(MPI_Irecv(in.data(), as_int(in.size()), MPI_BYTE, peer, i, env.comm, &requests[0]));
        CHECK_MPI((i % 2 == 0 ? MPI_Isend : MPI_Issend)(out.data(), as_int(out.size()), MPI_BYTE, peer, i, env.comm,
                                                        &requests[1]));
    });
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_PATTERN(key_of(peer, kSteps - 1), in.data(), in.size());
}
