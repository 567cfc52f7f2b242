/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate of one-sided operations of all pairs together: rank i of the lower half accesses rank i + ranks/2. Each of its
 * threads (--threads) starts a window of operations and calls MPI_Win_flush, again and again. The figure is the
 * operations of all threads of all pairs, divided by the time of the slowest rank.
 */
#include "bench_rma.h"
#include "bench_threads.h"

static struct bench_rma rma;
static double threads = 1;

/* What a thread does. */
struct task {
    const struct bench* b;
    struct bench_rma_part part; /* of all threads */
    int window;
    long iterations;
};

static void start(struct bench* b) {
    const int pairs = b->ranks / 2;
    const bool lower = b->rank < pairs;
    rma = (struct bench_rma){.origin = lower, .target = !lower, .peer = lower ? b->rank + pairs : b->rank - pairs};
    bench_rma_open(b, &rma, b->buffer_bytes);
    bench_team_open(b->threads);
}

static void end(struct bench* b) {
    (void)b;
    bench_team_close();
    bench_rma_close(&rma);
}

static void access_peer(int member, void* argument) {
    const struct task* task = argument;
    for (long i = 0; i < task->iterations; ++i) {
        bench_rma_issue(task->b, &rma, &task->part, member * task->window, task->window);
        bench_rma_end(&rma);
    }
}

/* Only one iteration can be verified at a time. */
static void verified(struct bench* b, const struct task* task, long iterations) {
    for (long i = 0; i < iterations; ++i) {
        bench_rma_prepare(b, &rma, &task->part);
        bench_team_run(access_peer, (void*)task);
        bench_rma_check(b, &rma, &task->part);
        b->message += (uint64_t)task->part.slots;
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int window = bench_window(b, bytes);
    const struct bench_rma_part part = {.op = (int)bench_rma_op, .bytes = bytes, .slots = window * b->threads};
    struct task task = {.b = b, .part = part, .window = window, .iterations = b->options.verify ? 1 : iterations};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    if (b->options.verify) {
        verified(b, &task, iterations);
    } else if (rma.origin) {
        bench_team_run(access_peer, &task);
    }
    double elapsed_s = rma.origin ? bench_now_s() - start_s : 0, slowest_s = 0;
    MPI_Reduce(&elapsed_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return (double)(b->ranks / 2) * b->threads * bench_window(b, bytes) * (double)iterations / elapsed_s;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {bench_rma_op_option,
                                        bench_rma_window_option,
                                        {.name = "threads",
                                         .value = "N",
                                         .help = "threads of each accessing rank, each with a window (default 1)",
                                         .low = 1,
                                         .high = 64,
                                         .whole = true,
                                         .target = &threads},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_mr",
                                    .summary = "rate of one-sided operations of all pairs and threads together",
                                    .unit = "operations/s",
                                    .better = "higher",
                                    .decimals = 0,
                                    .windowed = true,
                                    .threads = &threads,
                                    .ranks = kPairsOfRanks,
                                    .default_min_bytes = 8,
                                    .default_max_bytes = 64 << 10,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
