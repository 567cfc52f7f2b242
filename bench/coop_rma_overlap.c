/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a window of gets or puts overlaps with computing. Rank 0 starts them, computes without calling MPI, and
 * synchronizes. Before each such measurement, the operations and the computing are measured separately:
 *
 *     hidden = (transfer + compute - total) / min(transfer, compute) * 100 %
 *
 * The computing alone is measured in processor time, as in coop_overlap.
 */
#include "bench_compute.h"
#include "bench_cpu.h"
#include "bench_rma.h"

#include <math.h>

enum { kProbes = 5 };
enum { kTotal, kTransfer, kComputing };

static const char* const columns[] = {"total_us", "transfer_us", "compute_us", NULL};
static double factor = 1;
static size_t known_bytes; /* the size that `steps` is for */
static long steps;
static struct bench_rma rma;

static void start(struct bench* b) {
    rma = (struct bench_rma){.origin = b->rank == 0, .target = b->rank == 1, .peer = 1 - b->rank};
    bench_steps(0);
    bench_cpu_open();
    bench_rma_open(b, &rma, b->buffer_bytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
}

/* Returns the time of this rank. */
static double transfer_s(struct bench* b, size_t bytes, long computing) {
    const struct bench_rma_part part = {.op = (int)bench_rma_op, .bytes = bytes, .slots = bench_window(b, bytes)};
    bench_rma_prepare(b, &rma, &part);
    const double start_s = bench_now_s();
    bench_rma_begin(&rma);
    bench_rma_issue(b, &rma, &part, 0, part.slots);
    if (rma.origin) {
        bench_compute(computing);
    }
    bench_rma_end(&rma);
    const double took_s = bench_now_s() - start_s;
    bench_rma_check(b, &rma, &part);
    b->message += (uint64_t)part.slots;
    return took_s;
}

static void choose_steps(struct bench* b, size_t bytes) {
    double best_s = 1e9;
    for (int i = 0; i < kProbes; ++i) {
        best_s = fmin(best_s, transfer_s(b, bytes, 0));
    }
    steps = bench_steps(factor * best_s);
    known_bytes = bytes;
}

static double computing_s(void) {
    const double ran_s = bench_cpu_own_s();
    bench_compute(steps);
    return bench_cpu_own_s() - ran_s;
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    double total_s = 0, alone_s = 0, compute_s = 0;
    const double us = 1e6 / (double)iterations;
    if (known_bytes != bytes) {
        choose_steps(b, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i) {
        alone_s += transfer_s(b, bytes, 0);
        compute_s += rma.origin ? computing_s() : 0;
        total_s += transfer_s(b, bytes, steps);
    }
    b->more[kTotal] = total_s * us;
    b->more[kTransfer] = alone_s * us;
    b->more[kComputing] = compute_s * us;
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)bytes;
    (void)iterations;
    (void)elapsed_s;
    const double* us = b->more;
    return (us[kTransfer] + us[kComputing] - us[kTotal]) / fmin(us[kTransfer], us[kComputing]) * 100;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        bench_rma_op_option,
        bench_rma_sync_option,
        bench_rma_window_option,
        {.name = "compute",
         .value = "FACTOR",
         .help = "computing time as a multiple of the time of the operations alone (default 1)",
         .low = 0.01,
         .high = 1000,
         .target = &factor},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_overlap",
                                    .summary = "share of one-sided operations that overlaps with computing",
                                    .unit = "%",
                                    .better = "higher",
                                    .decimals = 2,
                                    .windowed = true,
                                    .default_min_bytes = 64,
                                    .default_max_bytes = 4 << 20,
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
