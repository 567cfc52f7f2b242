/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 adds doubles to those of rank 1: with one MPI_Accumulate or MPI_Get_accumulate of all, or with one
 * MPI_Fetch_and_op each (--op), as often as --calls says, and then synchronizes. The size is that of all doubles.
 *
 * With -d all values are small whole numbers, whose sums are exact.
 */
#include "bench_rma.h"

#include <stdio.h>
#include <stdlib.h>

enum { kAccumulate, kGetAccumulate, kFetchOp };

static const char* const ops[] = {"accumulate", "get_accumulate", "fetch_op", NULL};
static double op = kAccumulate, calls = 1;
static struct bench_rma rma;

static void start(struct bench* b) {
    rma = (struct bench_rma){.origin = b->rank == 0, .target = b->rank == 1, .peer = 1 - b->rank};
    bench_rma_open(b, &rma, b->buffer_bytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
}

/* What a rank contributes to a message. */
static void fill(const struct bench* b, double* values, size_t count, int from) {
    unsigned char* pattern = bench_new_buffer(b, count);
    bench_fill(pattern, count, from, b->message);
    for (size_t i = 0; i < count; ++i) {
        values[i] = pattern[i];
    }
    free(pattern);
}

static void prepare(struct bench* b, size_t bytes) {
    const size_t count = bytes / sizeof(double);
    bench_rma_own(&rma);
    if (rma.target) {
        fill(b, rma_doubles(rma.base), count, b->rank);
        bench_guard(rma.base, bytes);
    } else {
        fill(b, rma_doubles(b->send), count, b->rank);
        bench_guard(b->recv, bytes);
    }
    bench_rma_disown(&rma);
}

/* The target has the sums; the origin may have what was there before the last call. */
static void check(struct bench* b, size_t bytes) {
    const size_t count = bytes / sizeof(double);
    char what[80];
    double* expected = rma_doubles(bench_new_buffer(b, 2 * bytes));
    bench_rma_own(&rma);
    fill(b, expected, count, 1);
    snprintf(what, sizeof what, "%s %llu of %zu doubles", rma.target ? "sum" : "fetched value",
             (unsigned long long)b->message, count);
    fill(b, expected + count, count, 0);
    for (size_t i = 0; i < count; ++i) {
        expected[i] += expected[count + i] * (rma.target ? calls : calls - 1);
    }
    if (rma.target) {
        bench_check_bytes(b, rma.base, bytes, kGuardBytes, (unsigned char*)expected, what);
    } else if (op != kAccumulate) {
        bench_check_bytes(b, b->recv, bytes, kGuardBytes, (unsigned char*)expected, what);
    }
    bench_rma_disown(&rma);
    free(expected);
}

static void fetch_one_by_one(const struct bench* b, int count) {
    for (int i = 0; i < count; ++i) {
        MPI_Fetch_and_op(rma_doubles(b->send) + i, rma_doubles(b->recv) + i, MPI_DOUBLE, rma.peer,
                         (MPI_Aint)((size_t)i * sizeof(double)), MPI_SUM, rma.win);
    }
}

static void add(const struct bench* b, int count) {
    if (op == kAccumulate) {
        MPI_Accumulate(b->send, count, MPI_DOUBLE, rma.peer, 0, count, MPI_DOUBLE, MPI_SUM, rma.win);
    } else if (op == kGetAccumulate) {
        MPI_Get_accumulate(b->send, count, MPI_DOUBLE, b->recv, count, MPI_DOUBLE, rma.peer, 0, count, MPI_DOUBLE,
                           MPI_SUM, rma.win);
    } else {
        fetch_one_by_one(b, count);
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, ++b->message) {
        if (b->options.verify) {
            prepare(b, bytes);
        }
        bench_rma_begin(&rma);
        for (int call = 0; rma.origin && call < (int)calls; ++call) {
            add(b, (int)(bytes / sizeof(double)));
        }
        bench_rma_end(&rma);
        if (b->options.verify) {
            check(b, bytes);
        }
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)b;
    (void)bytes;
    return elapsed_s / (double)iterations * 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "op",
                                         .value = "OP",
                                         .help = "accumulate (default), get_accumulate, or a fetch_op of each double",
                                         .words = ops,
                                         .target = &op},
                                        {.name = "calls",
                                         .value = "N",
                                         .help = "how often, before a synchronization (default 1)",
                                         .low = 1,
                                         .high = 65536,
                                         .whole = true,
                                         .target = &calls},
                                        bench_rma_sync_option,
                                        bench_rma_window_option,
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_acc",
                                    .summary = "sums of doubles at another rank, and a synchronization",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 4,
                                    .default_min_bytes = 8,
                                    .default_max_bytes = 32 << 10,
                                    .element_bytes = sizeof(double),
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
