/* SPDX-License-Identifier: BSD-3-Clause */
/* One put or get from rank 0 at rank 1 and its synchronization: the time until rank 0 has it complete. */
#include "bench_rma.h"

static struct bench_rma rma;

static void start(struct bench* b) {
    rma = (struct bench_rma){.origin = b->rank == 0, .target = b->rank == 1, .peer = 1 - b->rank};
    bench_rma_open(b, &rma, b->buffer_bytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const struct bench_rma_part part = {.op = (int)bench_rma_op, .bytes = bytes, .slots = 1};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i) {
        bench_rma_exchange(b, &rma, &part);
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)b;
    (void)bytes;
    return elapsed_s / (double)iterations * 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        bench_rma_op_option, bench_rma_sync_option, bench_rma_window_option, {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_latency",
                                    .summary = "one put or get and its synchronization",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 4,
                                    .default_min_bytes = 8,
                                    .default_max_bytes = 4 << 20,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
