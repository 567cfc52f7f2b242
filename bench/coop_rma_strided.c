/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth of one put or get with a datatype of blocks at a distance of two blocks (MPI_Type_create_hvector), at the
 * target, at the origin or at both (--side). The size is that of a block; --total is that of all blocks. The next
 * column is the bandwidth of the same bytes without gaps.
 */
#include "bench_rma.h"
#include "bench_shape.h"

#include <stdlib.h>

enum { kTargetSide, kOriginSide, kBothSides };
enum { kContiguous };

static const char* const columns[] = {"contiguous", NULL};
static const char* const sides[] = {"target", "origin", "both", NULL};
static double side = kTargetSide, total = 256 << 10;
static struct bench_rma rma;
static unsigned char* local; /* of rank 0 */

/* The layouts of an exchange. */
struct layouts {
    struct bench_shape origin, target;
    MPI_Datatype origin_type, target_type;
};

static size_t blocks_of(size_t bytes) { return bytes < (size_t)total ? (size_t)total / bytes : 1; }

static struct bench_shape shape_of(size_t bytes, bool gaps) {
    const size_t count = blocks_of(bytes);
    return gaps ? (struct bench_shape){.count = count, .block = bytes, .stride = 2 * bytes}
                : (struct bench_shape){.count = 1, .block = count * bytes, .stride = count * bytes};
}

static struct layouts layouts_of(size_t bytes, bool gaps) {
    struct layouts l = {.origin = shape_of(bytes, gaps && side != kTargetSide),
                        .target = shape_of(bytes, gaps && side != kOriginSide)};
    l.origin_type = bench_shape_type(&l.origin);
    l.target_type = bench_shape_type(&l.target);
    return l;
}

static void free_layouts(struct layouts* l) {
    MPI_Type_free(&l->origin_type);
    MPI_Type_free(&l->target_type);
}

static void start(struct bench* b) {
    const size_t most = (size_t)total > b->options.max_bytes ? (size_t)total : b->options.max_bytes;
    rma = (struct bench_rma){.origin = b->rank == 0, .target = b->rank == 1, .peer = 1 - b->rank};
    bench_rma_open(b, &rma, 2 * most + kGuardBytes);
    local = bench_new_buffer(b, 2 * most + kGuardBytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
    free(local);
}

static void prepare(struct bench* b, const struct layouts* l) {
    const bool put = bench_rma_op == kPut;
    bench_rma_own(&rma);
    if (put ? rma.origin : rma.target) {
        bench_shape_fill(b, put ? &l->origin : &l->target, put ? local : rma.base);
    } else {
        bench_shape_clear(put ? &l->target : &l->origin, put ? rma.base : local);
    }
    bench_rma_disown(&rma);
}

static void check(struct bench* b, const struct layouts* l) {
    const bool put = bench_rma_op == kPut;
    bench_rma_own(&rma);
    if (put ? rma.target : rma.origin) {
        bench_shape_check(b, put ? &l->target : &l->origin, put ? rma.base : local, rma.peer);
    }
    bench_rma_disown(&rma);
}

static void access_target(const struct layouts* l) {
    if (rma.origin && bench_rma_op == kPut) {
        MPI_Put(local, 1, l->origin_type, rma.peer, 0, 1, l->target_type, rma.win);
    } else if (rma.origin) {
        MPI_Get(local, 1, l->origin_type, rma.peer, 0, 1, l->target_type, rma.win);
    }
}

static double exchange_s(struct bench* b, const struct layouts* l) {
    if (b->options.verify) {
        prepare(b, l);
    }
    const double start_s = bench_now_s();
    bench_rma_begin(&rma);
    access_target(l);
    bench_rma_end(&rma);
    const double took_s = bench_now_s() - start_s;
    if (b->options.verify) {
        check(b, l);
    }
    ++b->message;
    return took_s;
}

static double rate(size_t bytes, long iterations, double elapsed_s) {
    return (double)(blocks_of(bytes) * bytes) * (double)iterations / elapsed_s / 1e6;
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    struct layouts with_gaps = layouts_of(bytes, true), contiguous = layouts_of(bytes, false);
    double contiguous_s = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    b->operation_s = 0;
    for (long i = 0; i < iterations; ++i) {
        b->operation_s += exchange_s(b, &with_gaps);
        contiguous_s += exchange_s(b, &contiguous);
    }
    const double elapsed_s = bench_now_s() - start_s;
    b->more[kContiguous] = rate(bytes, iterations, contiguous_s);
    free_layouts(&with_gaps);
    free_layouts(&contiguous);
    return elapsed_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)elapsed_s;
    return rate(bytes, iterations, b->operation_s);
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {bench_rma_op_option,
                                        bench_rma_sync_option,
                                        bench_rma_window_option,
                                        {.name = "side",
                                         .value = "SIDE",
                                         .help = "where the blocks have gaps: target (default), origin or both",
                                         .words = sides,
                                         .target = &side},
                                        {.name = "total",
                                         .value = "BYTES",
                                         .help = "all blocks together (default 256 KiB); at least one block",
                                         .low = 1,
                                         .high = 1 << 28,
                                         .whole = true,
                                         .target = &total},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_strided",
                                    .summary = "bandwidth of one put or get of blocks at a distance",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .default_min_bytes = 8,
                                    .default_max_bytes = 64 << 10,
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
