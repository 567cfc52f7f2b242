/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth of puts and gets together: rank 0 starts 16 puts (-w) to rank 1 and as many gets, and synchronizes. Their
 * data goes both ways, so that a library that lets them go at the same time is nearly twice as fast. With --alternate
 * each put is followed by a get.
 */
#include "bench_rma.h"

static double alternate = 0;
static struct bench_rma rma;

static void start(struct bench* b) {
    rma = (struct bench_rma){.origin = b->rank == 0, .target = b->rank == 1, .peer = 1 - b->rank};
    bench_rma_open(b, &rma, 2 * b->buffer_bytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
}

static void issue(const struct bench* b, const struct bench_rma_part* puts, const struct bench_rma_part* gets) {
    const int at_once = alternate ? 1 : puts->slots;
    for (int slot = 0; slot < puts->slots; slot += at_once) {
        bench_rma_issue(b, &rma, puts, slot, at_once);
        bench_rma_issue(b, &rma, gets, slot, at_once);
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int window = bench_window(b, bytes);
    const struct bench_rma_part puts = {.op = kPut, .bytes = bytes, .slots = window};
    const struct bench_rma_part gets = {.op = kGet, .bytes = bytes, .slots = window, .at = window};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        bench_rma_prepare(b, &rma, &puts);
        bench_rma_prepare(b, &rma, &gets);
        bench_rma_begin(&rma);
        issue(b, &puts, &gets);
        bench_rma_end(&rma);
        bench_rma_check(b, &rma, &puts);
        bench_rma_check(b, &rma, &gets);
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return 2 * (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        bench_rma_sync_option,
        bench_rma_window_option,
        {.name = "alternate", .help = "a get after each put, not all gets after all puts", .target = &alternate},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_interleave",
                                    .summary = "bandwidth of puts and gets together, the sum of both ways",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .windowed = true,
                                    .default_window = 16,
                                    .default_min_bytes = 64,
                                    .default_max_bytes = 4 << 20,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
