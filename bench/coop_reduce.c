/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sum of float vectors on rank 0, by reduce-scatter and gather of messages. Reduce-scatter: rank i is responsible for
 * block i; in step s = 1, 2, ... rank i sends its part of block i + s to rank i + s, receives a part of block i
 * from rank i - s (MPI_Sendrecv), and adds it to its sum. Gather: all send their block (MPI_Send) to rank 0 (MPI_Irecv,
 * MPI_Waitall). Any number of ranks. With --collective it is MPI_Reduce_scatter followed by MPI_Gatherv.
 *
 * Slots of the receive buffer: 0 the result, 1 the rank's own block so far, 2 an arriving block.
 */
#include "bench_common.h"

#include <stdlib.h>
#include <string.h>

enum { kScatterTag = 13, kGatherTag = 14 };

static double collective = 0;
static int *counts, *starts; /* of the block of each rank, in floats */

/* bench_common.c allocates two requests for each slot; the gather needs one for each other rank. */
static int slots(const struct bench* b) { return b->ranks < 3 ? 3 : b->ranks; }

static void prepare(struct bench* b, size_t bytes) {
    bench_fill_floats((void*)b->send, bytes / sizeof(float), b->rank, b->message);
    bench_guard(b->recv, bytes);
}

static float* slot(struct bench* b, size_t bytes, int which) { return (void*)bench_slot(b, b->recv, bytes, which); }

static void reduce_scatter(struct bench* b, size_t bytes) {
    const float* from = (const void*)b->send;
    float *sum = slot(b, bytes, 1), *in = slot(b, bytes, 2);
    const int mine = counts[b->rank];
    memcpy(sum, from + starts[b->rank], (size_t)mine * sizeof *sum);
    for (int step = 1; step < b->ranks; ++step) {
        const int to = (b->rank + step) % b->ranks, source = (b->rank + b->ranks - step) % b->ranks;
        MPI_Sendrecv(from + starts[to], counts[to], MPI_FLOAT, to, kScatterTag, in, mine, MPI_FLOAT, source,
                     kScatterTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < mine; ++i) {
            sum[i] += in[i];
        }
    }
}

static void gather(struct bench* b, size_t bytes) {
    float *sum = slot(b, bytes, 1), *result = slot(b, bytes, 0);
    if (b->rank != 0) {
        MPI_Send(sum, counts[b->rank], MPI_FLOAT, 0, kGatherTag, MPI_COMM_WORLD);
        return;
    }
    for (int peer = 1; peer < b->ranks; ++peer) {
        MPI_Irecv(result + starts[peer], counts[peer], MPI_FLOAT, peer, kGatherTag, MPI_COMM_WORLD,
                  &b->requests[peer - 1]);
    }
    memcpy(result, sum, (size_t)counts[0] * sizeof *sum);
    MPI_Waitall(b->ranks - 1, b->requests, MPI_STATUSES_IGNORE);
}

static void operate(struct bench* b, size_t bytes) {
    if (collective != 0) {
        float* sum = slot(b, bytes, 1);
        MPI_Reduce_scatter(b->send, sum, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Gatherv(sum, counts[b->rank], MPI_FLOAT, b->recv, counts, starts, MPI_FLOAT, 0, MPI_COMM_WORLD);
    } else {
        reduce_scatter(b, bytes);
        gather(b, bytes);
    }
}

static void check(struct bench* b, size_t bytes) {
    if (b->rank == 0) {
        bench_check_sum(b, (void*)b->recv, bytes / sizeof(float), b->message);
    }
}

static void divide(const struct bench* b, size_t floats) {
    for (int rank = 0, start = 0; rank < b->ranks; start += counts[rank++]) {
        counts[rank] = (int)(floats / (size_t)b->ranks) + (rank < (int)(floats % (size_t)b->ranks));
        starts[rank] = start;
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const struct bench_operation operation = {prepare, operate, check};
    counts = malloc(2 * (size_t)b->ranks * sizeof *counts);
    starts = counts + b->ranks;
    divide(b, bytes / sizeof(float));
    const double elapsed_s = bench_operations(b, bytes, iterations, &operation);
    free(counts);
    return elapsed_s;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "collective", .help = "MPI_Reduce_scatter and MPI_Gatherv instead of messages", .target = &collective},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_reduce",
                                    .summary = "sum of floats on rank 0, by reduce-scatter and gather",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_min_bytes = sizeof(float),
                                    .default_max_bytes = 16 << 20,
                                    .element_bytes = sizeof(float),
                                    .slots = slots,
                                    .extra = extra,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
