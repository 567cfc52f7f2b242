/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast of a message in chunks along the chain of ranks 0, 1, 2, ... A rank posts receives for all chunks at the
 * start (MPI_Irecv) and forwards each chunk as soon as it has arrived (MPI_Isend), so that different chunks are in
 * flight on all links at the same time.
 */
#include "bench_common.h"

enum { kTag = 15, kMaxChunks = 4096 };

static double chunks = 1;
static MPI_Request incoming[kMaxChunks], outgoing[kMaxChunks];

static int slots(const struct bench* b) {
    (void)b;
    return 1;
}

/* The number of chunks, whose sizes differ by at most one byte; at most one chunk per byte. */
static int chunks_of(size_t bytes) { return bytes < (size_t)chunks ? (int)bytes : (int)chunks; }

static size_t begin_of(size_t bytes, int chunk) { return bytes * (size_t)chunk / (size_t)chunks_of(bytes); }

static void prepare(struct bench* b, size_t bytes) {
    if (b->rank == 0) {
        bench_fill(b->recv, bytes, 0, b->message);
    }
    bench_guard(b->recv, bytes);
}

static void receive_all(struct bench* b, size_t bytes) {
    for (int chunk = 0; chunk < chunks_of(bytes); ++chunk) {
        const size_t begin = begin_of(bytes, chunk), end = begin_of(bytes, chunk + 1);
        MPI_Irecv(b->recv + begin, (int)(end - begin), MPI_BYTE, b->rank - 1, kTag, MPI_COMM_WORLD, &incoming[chunk]);
    }
}

static void pass_on(struct bench* b, size_t bytes, int chunk) {
    const size_t begin = begin_of(bytes, chunk), end = begin_of(bytes, chunk + 1);
    MPI_Isend(b->recv + begin, (int)(end - begin), MPI_BYTE, b->rank + 1, kTag, MPI_COMM_WORLD, &outgoing[chunk]);
}

static void operate(struct bench* b, size_t bytes) {
    const int count = chunks_of(bytes);
    const bool first = b->rank == 0, last = b->rank == b->ranks - 1;
    if (!first) {
        receive_all(b, bytes);
    }
    for (int chunk = 0; chunk < count; ++chunk) {
        if (!first) {
            MPI_Wait(&incoming[chunk], MPI_STATUS_IGNORE);
        }
        if (!last) {
            pass_on(b, bytes, chunk);
        }
    }
    if (!last) {
        MPI_Waitall(count, outgoing, MPI_STATUSES_IGNORE);
    }
}

static void check(struct bench* b, size_t bytes) {
    if (b->rank != 0) {
        bench_check(b, b->recv, bytes, 0, b->message);
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const struct bench_operation operation = {prepare, operate, check};
    return bench_operations(b, bytes, iterations, &operation);
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "chunks",
         .value = "N",
         .help = "pieces of a message, which follow each other along the chain (default 1)",
         .low = 1,
         .high = kMaxChunks,
         .whole = true,
         .target = &chunks},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_bcast",
                                    .summary = "broadcast along a chain of ranks, in chunks",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_max_bytes = 16 << 20,
                                    .slots = slots,
                                    .extra = extra,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
