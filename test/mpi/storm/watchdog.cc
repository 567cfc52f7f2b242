// SPDX-License-Identifier: BSD-3-Clause
#include "watchdog.h"

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace storm {
namespace {

std::thread guard;
std::mutex mutex;
std::condition_variable stopped;
bool stop = false;

void print(const State& s) {
    fprintf(stderr,
            "storm: rank %d thread %d: round %llu, %s; sends %llu started, %llu done; receives %llu posted, %llu done; "
            "last receive posted: channel %d, source %d, tag %d\n",
            s.rank, s.thread, static_cast<unsigned long long>(s.round), s.phase.load(),
            static_cast<unsigned long long>(s.sends), static_cast<unsigned long long>(s.sends_done),
            static_cast<unsigned long long>(s.receives), static_cast<unsigned long long>(s.receives_done),
            s.channel.load(), s.source.load(), s.tag.load());
}

void watch(const Options options, const State* states, int count) {
    using Clock = std::chrono::steady_clock;
    std::uint64_t last = 0;
    Clock::time_point since = Clock::now();
    std::unique_lock<std::mutex> lock(mutex);
    while (!stopped.wait_for(lock, std::chrono::seconds(1), [] { return stop; })) {
        std::uint64_t now = 0;
        for (int i = 0; i < count; ++i) now += states[i].steps();
        if (now != last) {
            last = now;
            since = Clock::now();
        } else if (Clock::now() - since > std::chrono::seconds(options.stall_seconds)) {
            fprintf(stderr, "storm: NO PROGRESS for %d s; %s\n", options.stall_seconds, reproduce(options).c_str());
            for (int i = 0; i < count; ++i) print(states[i]);
            fflush(stderr);
            sleep(2);  // lets the other ranks print before mpirun ends them
            _exit(3);
        }
    }
}

}  // namespace

std::string reproduce(const Options& options) {
    std::string text = "reproduce: --seed " + std::to_string(options.seed) + " --messages " +
                       std::to_string(options.messages) + " --max-size " + std::to_string(options.max_bytes) +
                       " --threads " + std::to_string(options.threads);
    if (options.level == MPI_THREAD_FUNNELED) text += " --level funneled";
    if (options.level == MPI_THREAD_SERIALIZED) text += " --level serialized";
    if (options.compute_us > 0) text += " --compute " + std::to_string(options.compute_us);
    if (options.seconds > 0) text += " --time " + std::to_string(static_cast<int>(options.seconds));
    return text;
}

void fail(const Options& options, const State& state, const std::string& what) {
    fprintf(stderr, "storm: FAILED: %s\n", what.c_str());
    print(state);
    fprintf(stderr, "storm: %s\n", reproduce(options).c_str());
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void start_watchdog(const Options& options, const State* states, int count) {
    guard = std::thread(watch, options, states, count);
}

void stop_watchdog() {
    {
        std::lock_guard<std::mutex> lock(mutex);
        stop = true;
    }
    stopped.notify_one();
    guard.join();
}

}  // namespace storm
