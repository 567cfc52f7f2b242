// SPDX-License-Identifier: BSD-3-Clause
#include "watchdog.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace rma_storm {
namespace {

std::thread guard;
std::mutex mutex;
std::condition_variable stopped;
bool stop = false;

void print(const State& s) {
    fprintf(
        stderr,
        "rma_storm: rank %d thread %d: round %llu phase %llu (window %s, epoch %s), %s, target %d; %llu operations\n",
        s.rank, s.thread, static_cast<unsigned long long>(s.round), static_cast<unsigned long long>(s.phase),
        s.window.load(), s.epoch.load(), s.doing.load(), s.target.load(),
        static_cast<unsigned long long>(s.operations));
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
            fprintf(stderr, "rma_storm: NO PROGRESS for %d s; %s\n", options.stall_seconds, reproduce(options).c_str());
            for (int i = 0; i < count; ++i) print(states[i]);
            fflush(stderr);
            sleep(2);  // lets the other ranks print before mpirun ends them
            _exit(3);
        }
    }
}

}  // namespace

void fail(const Options& options, const State& state, const std::string& what) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    fprintf(stderr, "rma_storm: FAILED: %s\n", what.c_str());
    print(state);
    fprintf(stderr, "rma_storm: %s\n", reproduce(options).c_str());
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void must(const Options& options, const State& state, int code, const char* function) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail(options, state, std::string(function) + " returned " + text);
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

}  // namespace rma_storm
