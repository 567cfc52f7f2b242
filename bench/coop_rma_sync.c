/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an epoch of one-sided communication costs. Rank 0 measures:
 *
 *     fence     MPI_Win_fence of all ranks, without operations
 *     pscw      start, one put to every other rank, complete
 *     lock      MPI_Win_lock, one put to rank 1, MPI_Win_unlock
 *     lock_all  MPI_Win_lock_all, one put to rank 1, MPI_Win_unlock_all
 *     flush     one put to rank 1 and MPI_Win_flush, while a long put to rank 2 is under way (--background)
 *     notice    start, one put to rank 1, complete, until a message says that rank 1 has returned from MPI_Win_wait
 *
 * In `flush`, the start of the long put and its completion do not count.
 */
#include "bench_rma.h"

#include <stdio.h>
#include <stdlib.h>

enum epoch { kEmptyFence, kOnePscw, kOneLock, kOneLockAll, kOneFlush, kOneNotice };

static const char* const epochs[] = {"fence", "pscw", "lock", "lock_all", "flush", "notice", NULL};
static const enum bench_rma_sync syncs[] = {kFence, kPscw, kUnlock, kUnlock, kFlush, kPscw};
static double epoch = kEmptyFence, background = 16 << 20;
static struct bench_rma rma;
static unsigned char* long_buffer; /* with flush on rank 0 */

static bool is(enum epoch e) { return (int)epoch == (int)e; }

/* In the window, the message of this size comes first. */
static MPI_Aint place_of_long(const struct bench* b) { return (MPI_Aint)b->buffer_bytes; }

static void start(struct bench* b) {
    if (is(kOneFlush) && b->ranks < 3) {
        if (b->rank == 0) {
            fprintf(stderr, "coop_rma_sync: --epoch flush needs at least 3 ranks, was started with %d\n", b->ranks);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has ended the job */
    }
    const bool all = is(kOnePscw) || is(kOneLockAll);
    rma = (struct bench_rma){.origin = b->rank == 0,
                             .target = is(kOneNotice) ? b->rank == 1 : b->rank != 0,
                             .peer = b->rank != 0 ? 0
                                     : all        ? kAllPeers
                                                  : 1};
    bench_rma_sync = syncs[(int)epoch];
    bench_rma_open(b, &rma, b->buffer_bytes + (is(kOneFlush) ? (size_t)background + kGuardBytes : 0));
    if (is(kOneFlush) && b->rank == 0) {
        long_buffer = bench_new_buffer(b, (size_t)background);
    }
}

static void end(struct bench* b) {
    (void)b;
    bench_rma_close(&rma);
    free(long_buffer);
}

static void put(struct bench* b, size_t bytes, int to) {
    MPI_Put(b->send, (int)bytes, MPI_BYTE, to, 0, (int)bytes, MPI_BYTE, rma.win);
}

static void operate(struct bench* b, size_t bytes) {
    const int last = is(kOnePscw) ? b->ranks - 1 : is(kEmptyFence) ? 0 : 1;
    for (int to = 1; to <= last && rma.origin; ++to) {
        put(b, bytes, to);
    }
}

static bool receives(const struct bench* b) {
    return is(kOnePscw) ? b->rank > 0 : is(kEmptyFence) ? false : b->rank == 1;
}

static bool receives_long(const struct bench* b) { return is(kOneFlush) && b->rank == 2; }

static void prepare(struct bench* b, size_t bytes) {
    bench_rma_own(&rma);
    if (b->rank == 0) {
        bench_fill(b->send, bytes, 0, b->message);
    }
    if (long_buffer) {
        bench_fill(long_buffer, (size_t)background, 0, b->message);
    }
    if (receives(b)) {
        bench_guard(rma.base, bytes);
    } else if (receives_long(b)) {
        bench_guard(rma.base + place_of_long(b), (size_t)background);
    }
    bench_rma_disown(&rma);
}

static void check(struct bench* b, size_t bytes) {
    bench_rma_own(&rma);
    if (receives(b)) {
        bench_check(b, rma.base, bytes, 0, b->message);
    } else if (receives_long(b)) {
        bench_check(b, rma.base + place_of_long(b), (size_t)background, 0, b->message);
    }
    bench_rma_disown(&rma);
}

static void begin_long(struct bench* b) {
    if (long_buffer) {
        MPI_Put(long_buffer, (int)background, MPI_BYTE, 2, place_of_long(b), (int)background, MPI_BYTE, rma.win);
    }
}

static void end_long(void) {
    if (long_buffer) {
        MPI_Win_flush(2, rma.win);
    }
}

/* Between the first two ranks. */
static void send_notice(const struct bench* b) {
    if (is(kOneNotice) && b->rank == 1) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    } else if (is(kOneNotice) && b->rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    b->operation_s = 0;
    for (long i = 0; i < iterations; ++i, ++b->message) {
        if (b->options.verify) {
            prepare(b, bytes);
        }
        begin_long(b);
        const double begin_s = bench_now_s();
        bench_rma_begin(&rma);
        operate(b, bytes);
        bench_rma_end(&rma);
        send_notice(b);
        b->operation_s += bench_now_s() - begin_s;
        end_long();
        if (b->options.verify) {
            check(b, bytes);
        }
    }
    return bench_now_s() - start_s;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "epoch",
                                         .value = "EPOCH",
                                         .help = "fence (default, empty), pscw, lock, lock_all, flush or notice",
                                         .words = epochs,
                                         .target = &epoch},
                                        {.name = "background",
                                         .value = "BYTES",
                                         .help = "length of the put to rank 2 in --epoch flush (default 16 MiB)",
                                         .low = 1,
                                         .high = 1 << 30,
                                         .whole = true,
                                         .target = &background},
                                        bench_rma_window_option,
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_sync",
                                    .summary = "an epoch with one put, or an empty fence",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 4,
                                    .ranks = kTwoRanksOrMore,
                                    .default_min_bytes = 8,
                                    .default_max_bytes = 8,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
