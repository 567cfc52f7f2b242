/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgather: each rank contributes a block. After one barrier, the calls follow each other, and the figure is the
 * mean time per call on the slowest rank. With --vector it is MPI_Allgatherv: the blocks grow with the rank, and their
 * mean is the size.
 *
 * With --no-reuse, no call uses a buffer of an earlier call, so that a cache of registrations finds nothing. Buffers
 * come from a pool. When all of them have been used, the pool is unmapped and mapped anew, which invalidates the
 * registrations; the time of this does not count.
 */
#include "bench_common.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kPageBytes = 4096, kPoolBytes = 64 << 20, kLeastPoolBuffers = 2, kPoolAlign = 2 << 20 };

static double no_reuse, vector, in_place;

/* The blocks at the current size, in bytes. */
static int *counts, *starts;

/* The send and the receive buffer of a call. */
struct buffers {
    unsigned char *send, *recv;
};

/* The pool of --no-reuse. Each buffer begins on a page of its own. */
static struct {
    unsigned char *mapped, *first;
    size_t mapped_bytes;
    size_t recv_stride, send_stride;
    long buffers, used;
} pool;

static int block_of(const struct bench* b, size_t bytes, int rank) {
    return (int)(vector ? 2 * bytes * (size_t)(rank + 1) / (size_t)(b->ranks + 1) : bytes);
}

/* Only the blocks of --vector can have gaps for guard bytes. */
static size_t gap(const struct bench* b) { return vector && b->options.verify ? kGuardBytes : 0; }

static void refuse(const struct bench* b, const char* why) {
    fprintf(stderr, "coop_allgather: rank %d: %s\n", b->rank, why);
    MPI_Abort(MPI_COMM_WORLD, 4);
}

/* The displacements of MPI_Allgatherv are of type int. */
static int slots(const struct bench* b) {
    if ((b->options.max_bytes + kGuardBytes) * (size_t)b->ranks > INT_MAX) {
        if (b->rank == 0) {
            refuse(b, "option -m: the blocks of all ranks together must be shorter than 2 GiB");
        }
        MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has ended the job */
    }
    return b->ranks;
}

static void lay_out(const struct bench* b, size_t bytes) {
    size_t start = 0;
    for (int rank = 0; rank < b->ranks; ++rank) {
        counts[rank] = block_of(b, bytes, rank);
        starts[rank] = (int)start;
        start += (size_t)counts[rank] + gap(b);
    }
}

static size_t end_of_blocks(const struct bench* b) { return (size_t)(starts[b->ranks - 1] + counts[b->ranks - 1]); }

static size_t whole_pages(size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

static void unmap_pool(void) {
    if (pool.mapped) {
        munmap(pool.mapped, pool.mapped_bytes);
    }
    pool.mapped = NULL;
}

static void map_pool(const struct bench* b) {
    unmap_pool();
    pool.recv_stride = whole_pages(end_of_blocks(b) + kGuardBytes);
    pool.send_stride = in_place ? 0 : whole_pages((size_t)counts[b->rank] + 1);
    const size_t stride = pool.recv_stride + pool.send_stride;
    /* Ranks whose blocks differ in size must have the same number of buffers: they renew them at the same call. */
    const size_t largest = pool.recv_stride + whole_pages((size_t)counts[b->ranks - 1] + 1);
    pool.buffers = (long)(kPoolBytes / largest);
    pool.buffers = pool.buffers < kLeastPoolBuffers ? kLeastPoolBuffers : pool.buffers;
    pool.used = 0;
    pool.mapped_bytes = (size_t)pool.buffers * stride + kPoolAlign;
    pool.mapped = mmap(NULL, pool.mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool.mapped == MAP_FAILED) {
        refuse(b, "no memory for the pool of --no-reuse");
    }
    pool.first = pool.mapped + (kPoolAlign - (uintptr_t)pool.mapped % kPoolAlign) % kPoolAlign;
    memset(pool.first, b->rank + 1, (size_t)pool.buffers * stride); /* take the page faults now */
}

static struct buffers next_buffers(const struct bench* b) {
    if (!no_reuse) {
        return (struct buffers){b->send, b->recv};
    }
    unsigned char* recv = pool.first + (size_t)pool.used++ * (pool.recv_stride + pool.send_stride);
    return (struct buffers){recv + pool.recv_stride, recv};
}

static void prepare(const struct bench* b, const struct buffers* at) {
    unsigned char* own = in_place ? at->recv + starts[b->rank] : at->send;
    bench_fill(own, (size_t)counts[b->rank], b->rank, b->message);
    for (int rank = gap(b) ? 0 : b->ranks - 1; rank < b->ranks; ++rank) {
        bench_guard(at->recv + starts[rank], (size_t)counts[rank]);
    }
}

/* MPI ignores the send count and type of MPI_IN_PLACE, but Open MPI chooses the algorithm by them. */
static void allgather(const struct bench* b, const struct buffers* at) {
    const void* send = in_place ? MPI_IN_PLACE : at->send;
    const int count = counts[b->rank];
    if (vector) {
        MPI_Allgatherv(send, count, MPI_BYTE, at->recv, counts, starts, MPI_BYTE, MPI_COMM_WORLD);
    } else {
        MPI_Allgather(send, count, MPI_BYTE, at->recv, count, MPI_BYTE, MPI_COMM_WORLD);
    }
}

static void check(struct bench* b, const struct buffers* at) {
    for (int rank = 0; rank < b->ranks; ++rank) {
        unsigned char* block = at->recv + starts[rank];
        if (gap(b) || rank == b->ranks - 1) {
            bench_check(b, block, (size_t)counts[rank], rank, b->message);
        } else {
            bench_check_unguarded(b, block, (size_t)counts[rank], rank, b->message);
        }
    }
}

/* Returns this rank's time for the calls. */
static double calls_s(struct bench* b, long calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = bench_now_s();
    for (long i = 0; i < calls; ++i, ++b->message) {
        const struct buffers at = next_buffers(b);
        if (b->options.verify) {
            prepare(b, &at);
        }
        allgather(b, &at);
        if (b->options.verify) {
            check(b, &at);
        }
    }
    return bench_now_s() - begin_s;
}

/* The number of calls until the pool must be renewed, which this function does if it has been used up. */
static long unused_buffers(const struct bench* b) {
    if (pool.used == pool.buffers) {
        map_pool(b);
    }
    return pool.buffers - pool.used;
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    double own_s = 0;
    lay_out(b, bytes);
    for (long left = iterations; left > 0;) {
        const long most = no_reuse ? unused_buffers(b) : left;
        const long calls = most < left ? most : left;
        own_s += calls_s(b, calls);
        left -= calls;
    }
    MPI_Reduce(&own_s, &b->operation_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return b->operation_s;
}

static void start(struct bench* b) {
    counts = malloc(2 * (size_t)b->ranks * sizeof *counts);
    starts = counts + b->ranks;
}

/* The buffers of the next size have other places. */
static void after_size(struct bench* b, size_t bytes) {
    (void)b;
    (void)bytes;
    unmap_pool();
    pool.used = pool.buffers = 0;
}

static void end(struct bench* b) {
    (void)b;
    free(counts);
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "no-reuse",
         .help = "other buffers in each call, which no cache of registrations knows",
         .target = &no_reuse},
        {.name = "vector",
         .help = "MPI_Allgatherv; the blocks grow with the rank, their mean is the size",
         .target = &vector},
        {.name = "in-place", .help = "MPI_IN_PLACE: a rank's block is in its receive buffer", .target = &in_place},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_allgather",
                                    .summary = "MPI_Allgather, time per call of the slowest rank",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_max_bytes = 1 << 20,
                                    .slots = slots,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_operation_us,
                                    .after_size = after_size};
    return bench_main(argc, argv, &spec);
}
