/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many small operations against one: doubles at a distance (--stride) in the memory of rank 1, accessed by rank 0 with
 * one MPI_Put or MPI_Get each, or with one call for a vector of all. The figure is the time of the separate calls and
 * their synchronization; the next columns are the time with the vector, and the ratio of the two. A library that
 * aggregates operations brings it near 1. The size is that of all doubles together.
 */
#include "bench_rma.h"
#include "bench_shape.h"

enum { kVectorTime, kRatio };

static const char* const columns[] = {"vector_us", "separate/vector", NULL};
static double stride = 2;
static struct bench_rma rma;
static double vector_s; /* of this batch */

static struct bench_shape shape_of(size_t bytes) {
    return (struct bench_shape){
        .count = bytes / sizeof(double), .block = sizeof(double), .stride = (size_t)stride * sizeof(double)};
}

static void start(struct bench* b) {
    const struct bench_shape largest = shape_of(b->buffer_bytes);
    rma = (struct bench_rma){.origin = b->rank == 0, .target = b->rank == 1, .peer = 1 - b->rank};
    bench_rma_open(b, &rma, bench_shape_span(&largest) + kGuardBytes);
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
}

static void one_by_one(const struct bench* b, const struct bench_shape* shape) {
    for (size_t i = 0; i < shape->count; ++i) {
        const MPI_Aint at = (MPI_Aint)(i * shape->stride);
        if (bench_rma_op == kPut) {
            MPI_Put(rma_doubles(b->send) + i, 1, MPI_DOUBLE, rma.peer, at, 1, MPI_DOUBLE, rma.win);
        } else {
            MPI_Get(rma_doubles(b->recv) + i, 1, MPI_DOUBLE, rma.peer, at, 1, MPI_DOUBLE, rma.win);
        }
    }
}

static void together(const struct bench* b, const struct bench_shape* shape, MPI_Datatype vector) {
    const int count = (int)shape->count;
    if (bench_rma_op == kPut) {
        MPI_Put(b->send, count, MPI_DOUBLE, rma.peer, 0, 1, vector, rma.win);
    } else {
        MPI_Get(b->recv, count, MPI_DOUBLE, rma.peer, 0, 1, vector, rma.win);
    }
}

static void prepare(struct bench* b, size_t bytes, const struct bench_shape* shape) {
    bench_rma_own(&rma);
    if (rma.target && bench_rma_op == kPut) {
        bench_shape_clear(shape, rma.base);
    } else if (rma.target) {
        bench_shape_fill(b, shape, rma.base);
    } else if (bench_rma_op == kPut) {
        bench_fill(b->send, bytes, b->rank, b->message);
    } else {
        bench_guard(b->recv, bytes);
    }
    bench_rma_disown(&rma);
}

static void check(struct bench* b, size_t bytes, const struct bench_shape* shape) {
    bench_rma_own(&rma);
    if (rma.target && bench_rma_op == kPut) {
        bench_shape_check(b, shape, rma.base, rma.peer);
    } else if (rma.origin && bench_rma_op == kGet) {
        bench_check(b, b->recv, bytes, rma.peer, b->message);
    }
    bench_rma_disown(&rma);
}

/* Returns the time of this rank. `vector`: MPI_DATATYPE_NULL for separate calls. */
static double exchange_s(struct bench* b, size_t bytes, const struct bench_shape* shape, MPI_Datatype vector) {
    if (b->options.verify) {
        prepare(b, bytes, shape);
    }
    const double start_s = bench_now_s();
    bench_rma_begin(&rma);
    if (rma.origin && vector == MPI_DATATYPE_NULL) {
        one_by_one(b, shape);
    } else if (rma.origin) {
        together(b, shape, vector);
    }
    bench_rma_end(&rma);
    const double took_s = bench_now_s() - start_s;
    if (b->options.verify) {
        check(b, bytes, shape);
    }
    ++b->message;
    return took_s;
}

static MPI_Datatype vector_of(const struct bench_shape* shape) {
    MPI_Datatype vector;
    MPI_Type_vector((int)shape->count, 1, (int)stride, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    return vector;
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const struct bench_shape shape = shape_of(bytes);
    MPI_Datatype vector = vector_of(&shape);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    b->operation_s = vector_s = 0;
    for (long i = 0; i < iterations; ++i) {
        b->operation_s += exchange_s(b, bytes, &shape, MPI_DATATYPE_NULL);
        vector_s += exchange_s(b, bytes, &shape, vector);
    }
    b->more[kVectorTime] = vector_s / (double)iterations * 1e6;
    b->more[kRatio] = b->operation_s / vector_s;
    MPI_Type_free(&vector);
    return bench_now_s() - start_s;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        bench_rma_op_option,
        bench_rma_sync_option,
        bench_rma_window_option,
        {.name = "stride",
         .value = "N",
         .help = "distance of the doubles in the memory of rank 1, in doubles (default 2)",
         .low = 1,
         .high = 1024,
         .whole = true,
         .target = &stride},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_aggregate",
                                    .summary = "separate puts or gets of doubles, and one of a vector",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .default_min_bytes = 8000,
                                    .default_max_bytes = 8000,
                                    .element_bytes = sizeof(double),
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
