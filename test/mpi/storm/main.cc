// SPDX-License-Identifier: BSD-3-Clause
//
// storm: random point-to-point traffic with every byte checked.
//
//     storm [--seed N] [--messages N | --time S] [--threads T] [--max-size BYTES] [--compute US] [--stall S]
//           [--level single|funneled|serialized]
//
// The schedule is a function of the seed, the number of ranks and threads, --max-size and
// --messages. Results that depend on timing, such as the receive that a message matches,
// are checked with MPI's ordering rules. See round.h, schedule.h and checking.cc.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "keep_loaded.h"
#include "round.h"

namespace storm {
namespace {

// The thread level of a storm with one thread, or -1.
int level_of(const std::string& word) {
    return word == "single"       ? MPI_THREAD_SINGLE
           : word == "funneled"   ? MPI_THREAD_FUNNELED
           : word == "serialized" ? MPI_THREAD_SERIALIZED
                                  : -1;
}

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const unsigned long long value = strtoull(argv[i + 1], nullptr, 0);
        if (name == "--seed") o.seed = value;
        else if (name == "--messages") o.messages = value;
        else if (name == "--time") o.seconds = atof(argv[i + 1]);
        else if (name == "--threads") o.threads = static_cast<int>(value);
        else if (name == "--max-size") o.max_bytes = value;
        else if (name == "--compute") o.compute_us = static_cast<int>(value);
        else if (name == "--level") o.level = level_of(argv[i + 1]);
        else if (name == "--stall") o.stall_seconds = static_cast<int>(value);
        else argc = -1;
    }
    if (o.level < 0 || (o.level > 0 && o.threads > 1)) argc = -1;
    if (o.threads > 1) o.level = MPI_THREAD_MULTIPLE;
    if (argc % 2 != 1 || o.threads < 1) {
        fprintf(stderr,
                "usage: storm [--seed N] [--messages N | --time S] [--threads T] [--max-size BYTES] [--compute US] "
                "[--stall S] [--level single|funneled|serialized]\n");
        exit(2);
    }
    return o;
}

// True if there is another round. Rank 0 decides for all.
bool another(const Options& options, std::uint64_t messages, double start, MPI_Comm control, std::uint64_t round) {
    if (options.seconds <= 0) return messages < options.messages / static_cast<std::uint64_t>(options.threads);
    if (round % 4 != 0) return true;
    int more = MPI_Wtime() - start < options.seconds;
    MPI_Bcast(&more, 1, MPI_INT, 0, control);
    return more != 0;
}

void check_nothing_left(const Options& options, const std::vector<Channel>& channels, const State& state) {
    for (const Channel& c : channels) {
        if (c.comm == MPI_COMM_NULL || c.shared) continue;
        int flag = 0;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, c.comm, &flag, &status);
        if (flag)
            fail(options, state, "a message too many on " + c.name + " from " + std::to_string(status.MPI_SOURCE));
    }
}

void run(const Options& options, const std::vector<Channel>& channels, MPI_Comm control, State& state, int size) {
    const double start = MPI_Wtime();
    std::uint64_t messages = 0;
    for (std::uint64_t index = 0; another(options, messages, start, control, index); ++index) {
        state.round = index;
        const Round round = make_round(options, channels, size, state.thread, index);
        RoundRun(options, channels, round, control, state).run();
        messages += round.messages.size();
    }
    state.phase = "last barrier";
    MPI_Barrier(control);
    check_nothing_left(options, channels, state);
}

// Prints the number of received messages, summed over ranks and threads; the test of
// the report (parts/observe.sh) reads it. Each rank has already checked its own messages.
void report(const Options& options, const State* states, int rank) {
    unsigned long long own = 0, total = 0;
    for (int t = 0; t < options.threads; ++t) own += states[t].receives_done;
    MPI_Reduce(&own, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("storm: %llu messages received and checked\n", total);
}

}  // namespace
}  // namespace storm

int main(int argc, char** argv) {
    using namespace storm;
    const Options options = parse(argc, argv);
    int provided = 0, rank = 0, size = 0;
    MPI_Init_thread(&argc, &argv, options.level, &provided);
    keep_components_loaded();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        printf("storm: %d ranks; %s\n", size, reproduce(options).c_str());
        fflush(stdout);
    }
    const auto threads = static_cast<std::size_t>(options.threads);
    const std::unique_ptr<State[]> states(new State[threads]);
    for (std::size_t t = 0; t < threads; ++t) states[t].rank = rank, states[t].thread = static_cast<int>(t);
    if (provided < options.level) fail(options, states[0], "the thread level is not provided");
    start_watchdog(options, states.get(), options.threads);

    std::vector<std::vector<Channel>> channels = make_channels(options.threads);
    std::vector<MPI_Comm> control(threads);
    for (MPI_Comm& c : control) MPI_Comm_dup(MPI_COMM_WORLD, &c);

    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t)
        others.emplace_back([&, t] { run(options, channels[t], control[t], states[t], size); });
    run(options, channels[0], control[0], states[0], size);
    for (std::thread& t : others) t.join();

    report(options, states.get(), rank);
    for (MPI_Comm& c : control) MPI_Comm_free(&c);
    free_channels(channels);
    stop_watchdog();
    MPI_Finalize();
    return 0;
}
