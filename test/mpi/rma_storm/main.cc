// SPDX-License-Identifier: BSD-3-Clause
//
// rma_storm: random one-sided communication, with every byte of every window and result checked against a model.
//
//     rma_storm [--seed N] [--operations N | --rounds N] [--threads T] [--max-bytes N] [--watchdog SECONDS]
//               [--sabotage lose|double|misplace] [--without FEATURE,…]
//
// The plan (plan.h) is a function of the options and the number of ranks. With threads, they issue operations on one
// window in every other round; in the rounds between, each thread has windows of its own.
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "keep_loaded.h"
#include "round_run.h"

namespace rma_storm {
namespace {

using pattern::Random;

Arena make_arena(const char* name, MPI_Comm from, int color, int key) {
    Arena a;
    a.name = name;
    a.color = static_cast<std::uint64_t>(color);
    MPI_Comm_split(from, color, key, &a.comm);
    MPI_Comm_size(a.comm, &a.size);
    MPI_Comm_rank(a.comm, &a.rank);
    MPI_Comm node;
    MPI_Comm_split_type(a.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int here = 0, all = 0;
    MPI_Comm_size(node, &here);
    here = here == a.size;
    MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, a.comm);
    a.one_node = all != 0;
    MPI_Comm_free(&node);
    return a;
}

// All of one thread. Collective over MPI_COMM_WORLD.
std::vector<Arena> make_arenas() {
    int rank = 0, size = 0, leader = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    leader = rank;
    MPI_Bcast(&leader, 1, MPI_INT, 0, node);
    std::vector<Arena> arenas;
    arenas.push_back(make_arena("of all", MPI_COMM_WORLD, 0, rank));
    arenas.push_back(make_arena("in reverse order", MPI_COMM_WORLD, 0, size - rank));
    arenas.push_back(make_arena("of a node", MPI_COMM_WORLD, leader, rank));
    arenas.push_back(make_arena("of one half", MPI_COMM_WORLD, rank % 2, rank));
    arenas.push_back(make_arena("alone", MPI_COMM_WORLD, rank, rank));
    MPI_Comm_free(&node);
    return arenas;
}

// The storm of one thread, and of its helpers in rounds where several threads share a window.
struct Stream {
    const Options& options;
    std::vector<Arena> arenas;
    State* states;
    Saboteur& saboteur;

    // Returns about how many operations all ranks had.
    std::uint64_t run(std::uint64_t number, std::uint64_t index, int threads, int ranks) {
        Random random(pattern::key({options.seed, number, index}));
        std::size_t which = 0;
        const std::uint64_t draw = random.below(16);
        if (options.has(Feature::kSubsets) && draw > 7) which = draw < 10 ? 1 : draw < 13 ? 2 : draw < 15 ? 3 : 4;
        const Arena& arena = arenas[which];
        const std::uint64_t operations = 10 + random.below(80);
        const std::uint64_t key = pattern::key({random.next(), arena.color});
        for (int t = 0; t < threads; ++t) states[t].round = index;
        states[0].now("planning");
        const Round round = make_round(options, key, arena.size, arena.one_node, threads, operations);
        if (index == options.print && arena.rank == 0) printf("%s\n", describe(round).c_str());
        states[0].now("creating a window");
        RoundRun(options, arena, round, states, threads, saboteur).run();
        return operations * static_cast<std::uint64_t>(ranks);
    }
};

void run(const Options& options, State* states, int rank, int ranks) {
    Saboteur saboteur(options, rank, ranks);
    std::vector<Stream> streams;
    for (int t = 0; t < options.threads; ++t) streams.push_back({options, make_arenas(), states + t, saboteur});
    std::uint64_t operations = 0;
    for (std::uint64_t index = 0; options.rounds != 0 ? index < options.rounds : operations < options.operations;
         ++index) {
        if (options.threads == 1 || index % 2 == 0) {
            operations += streams[0].run(0, index, options.threads, ranks);
            continue;
        }
        std::vector<std::uint64_t> own(streams.size());
        std::vector<std::thread> threads;
        for (std::size_t t = 1; t < streams.size(); ++t)
            threads.emplace_back([&, t] { own[t] = streams[t].run(t + 1, index, 1, ranks); });
        own[0] = streams[0].run(1, index, 1, ranks);
        for (std::thread& t : threads) t.join();
        for (std::uint64_t n : own) operations += n;
    }
    for (Stream& s : streams)
        for (Arena& a : s.arenas) MPI_Comm_free(&a.comm);
}

void report(const Options& options, const State* states, int rank) {
    unsigned long long own = 0, total = 0;
    for (int t = 0; t < options.threads; ++t) own += states[t].operations;
    MPI_Reduce(&own, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("rma_storm: %llu operations in %llu rounds executed and checked\n", total,
               static_cast<unsigned long long>(states[0].round) + 1);
}

}  // namespace
}  // namespace rma_storm

int main(int argc, char** argv) {
    using namespace rma_storm;
    const Options options = parse(argc, argv);
    int provided = 0, rank = 0, size = 0;
    const int wanted = options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    keep_components_loaded();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // also of the communicators made from it
    if (rank == 0) {
        printf("rma_storm: %d ranks; %s\n", size, reproduce(options).c_str());
        fflush(stdout);
    }
    const auto threads = static_cast<std::size_t>(options.threads);
    const std::unique_ptr<State[]> states(new State[threads]);
    for (std::size_t t = 0; t < threads; ++t) states[t].rank = rank, states[t].thread = static_cast<int>(t);
    if (provided < wanted) fail(options, states[0], "MPI_THREAD_MULTIPLE is not provided");
    start_watchdog(options, states.get(), options.threads);
    run(options, states.get(), rank, size);
    report(options, states.get(), rank);
    stop_watchdog();
    MPI_Finalize();
    return 0;
}
