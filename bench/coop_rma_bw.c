/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth of a window of puts or gets, then one synchronization. Rank 0 accesses rank 1; with --op both, each puts
 * into the memory of the other at the same time, and the figure is the sum.
 */
#include "bench_rma.h"

enum { kBoth = 2 };

static const char* const ops[] = {"put", "get", "both", NULL};
static struct bench_rma rma;

static void start(struct bench* b) {
    const bool both = bench_rma_op == kBoth;
    rma = (struct bench_rma){.origin = b->rank == 0 || both, .target = b->rank == 1 || both, .peer = 1 - b->rank};
    bench_rma_open(b, &rma, b->buffer_bytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int op = bench_rma_op == kGet ? kGet : kPut;
    const struct bench_rma_part part = {.op = op, .bytes = bytes, .slots = bench_window(b, bytes)};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i) {
        bench_rma_exchange(b, &rma, &part);
    }
    double elapsed_s = rma.origin ? bench_now_s() - start_s : 0, slowest_s = 0;
    MPI_Reduce(&elapsed_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    const int ways = bench_rma_op == kBoth ? 2 : 1;
    return (double)bytes * bench_window(b, bytes) * ways * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "op",
                                         .value = "OP",
                                         .help = "put (default), get, or both: puts of both ranks at once",
                                         .words = ops,
                                         .target = &bench_rma_op},
                                        bench_rma_sync_option,
                                        bench_rma_window_option,
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_bw",
                                    .summary = "bandwidth of a window of puts or gets and a synchronization",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .windowed = true,
                                    .default_min_bytes = 8,
                                    .default_max_bytes = 4 << 20,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
