/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An irregular exchange, as an application of github.com/open-mpi/ompi/issues/10573 does it: every rank gets some
 * hundred pieces (--pieces) of 64 bytes to the size, at most 9 KiB there, from all other ranks, and one synchronization
 * completes all. The pieces are divided among the threads of a rank (--threads). With --way messages, their owners send
 * the same pieces, with MPI_Isend, MPI_Irecv and MPI_Waitall of each thread.
 *
 * Piece i of a rank comes from slot i of its owner's memory, and goes to its own slot i. Lengths are pseudo-random,
 * evenly distributed on a logarithmic scale, and the same in every run.
 */
#include "bench_rma.h"
#include "bench_threads.h"

#include <math.h>
#include <stdlib.h>

enum { kGets, kMessages };
enum { kShortest = 64 };

static const char* const ways[] = {"gets", "messages", NULL};
static double way = kGets, pieces = 400, threads = 1;
static struct bench_rma rma;
static MPI_Request* sends; /* with messages, of all threads */
static int* sends_of;      /* the first one of each thread; one more for the end */

static int slots(const struct bench* b) {
    (void)b;
    return (int)pieces;
}

static int owner_of(const struct bench* b, int rank, int piece) {
    return (rank + 1 + piece % (b->ranks - 1)) % b->ranks;
}

static size_t length_of(size_t bytes, int rank, int piece) {
    const uint32_t mixed = ((uint32_t)rank * 7919u + (uint32_t)piece + 1u) * 2654435761u;
    const double share = (double)(mixed >> 8) / (double)(1 << 24);
    return bytes <= kShortest ? bytes : (size_t)(kShortest * pow((double)bytes / kShortest, share));
}

/* Starts to send what other ranks get from this one, a thread's share. Returns the number of messages. Without
 * `requests` it only counts. */
static int send_share(const struct bench* b, size_t bytes, int member, MPI_Request* requests) {
    int count = 0;
    for (int to = 0; to < b->ranks; ++to) {
        for (int piece = member; piece < (int)pieces && to != b->rank; piece += b->threads) {
            if (owner_of(b, to, piece) == b->rank && requests) {
                MPI_Isend(bench_slot(b, rma.base, bytes, piece), (int)length_of(bytes, to, piece), MPI_BYTE, to, piece,
                          MPI_COMM_WORLD, &requests[count]);
            }
            count += owner_of(b, to, piece) == b->rank;
        }
    }
    return count;
}

static void start(struct bench* b) {
    rma = (struct bench_rma){.origin = true, .target = true, .peer = b->ranks == 2 ? 1 - b->rank : kAllPeers};
    bench_rma_open(b, &rma, b->buffer_bytes);
    bench_team_open(b->threads);
    sends_of = calloc((size_t)b->threads + 1, sizeof *sends_of);
    for (int member = 0; member < b->threads; ++member) {
        sends_of[member + 1] = sends_of[member] + send_share(b, 0, member, NULL);
    }
    sends = malloc(((size_t)sends_of[b->threads] + 1) * sizeof *sends);
}

static void end(struct bench* b) {
    (void)b;
    bench_team_close();
    bench_rma_close(&rma);
    free(sends);
    free(sends_of);
}

static void prepare(struct bench* b, size_t bytes) {
    bench_rma_own(&rma);
    for (int piece = 0; piece < (int)pieces; ++piece) {
        bench_fill(bench_slot(b, rma.base, bytes, piece), bytes, b->rank, b->message + (uint64_t)piece);
        bench_guard(bench_slot(b, b->recv, bytes, piece), length_of(bytes, b->rank, piece));
    }
    bench_rma_disown(&rma);
}

static void check(struct bench* b, size_t bytes) {
    for (int piece = 0; piece < (int)pieces; ++piece) {
        bench_check(b, bench_slot(b, b->recv, bytes, piece), length_of(bytes, b->rank, piece),
                    owner_of(b, b->rank, piece), b->message + (uint64_t)piece);
    }
}

struct task {
    struct bench* b;
    size_t bytes;
};

static void get_share(int member, void* argument) {
    const struct task* t = argument;
    for (int piece = member; piece < (int)pieces; piece += t->b->threads) {
        const int length = (int)length_of(t->bytes, t->b->rank, piece);
        const MPI_Aint at = (MPI_Aint)((size_t)piece * bench_stride(t->b, t->bytes));
        MPI_Get(bench_slot(t->b, t->b->recv, t->bytes, piece), length, MPI_BYTE, owner_of(t->b, t->b->rank, piece), at,
                length, MPI_BYTE, rma.win);
    }
}

/* The receives of a thread begin here among those of the rank. */
static int first_of(const struct bench* b, int member) {
    const int all = (int)pieces, share = all / b->threads, longer = all % b->threads;
    return member * share + (member < longer ? member : longer);
}

static void exchange_share(int member, void* argument) {
    const struct task* t = argument;
    struct bench* b = t->b;
    MPI_Request* receives = b->requests + first_of(b, member);
    int count = 0;
    for (int piece = member; piece < (int)pieces; piece += b->threads) {
        MPI_Irecv(bench_slot(b, b->recv, t->bytes, piece), (int)length_of(t->bytes, b->rank, piece), MPI_BYTE,
                  owner_of(b, b->rank, piece), piece, MPI_COMM_WORLD, &receives[count++]);
    }
    const int sent = send_share(b, t->bytes, member, sends + sends_of[member]);
    MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(sent, sends + sends_of[member], MPI_STATUSES_IGNORE);
}

static void operate(struct bench* b, size_t bytes) {
    struct task task = {.b = b, .bytes = bytes};
    if (way == kMessages) {
        bench_team_run(exchange_share, &task);
        return;
    }
    bench_rma_begin(&rma);
    bench_team_run(get_share, &task);
    bench_rma_end(&rma);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    static const struct bench_operation operation = {prepare, operate, check};
    return bench_operations(b, bytes, iterations, &operation);
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "way",
                                         .value = "WAY",
                                         .help = "gets (default), or messages: MPI_Isend and MPI_Irecv of the pieces",
                                         .words = ways,
                                         .target = &way},
                                        bench_rma_sync_option,
                                        bench_rma_window_option,
                                        {.name = "pieces",
                                         .value = "N",
                                         .help = "pieces that each rank gets (default 400)",
                                         .low = 1,
                                         .high = 10000,
                                         .whole = true,
                                         .target = &pieces},
                                        {.name = "threads",
                                         .value = "N",
                                         .help = "threads of each rank, which share the pieces (default 1)",
                                         .low = 1,
                                         .high = 64,
                                         .whole = true,
                                         .target = &threads},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_pattern",
                                    .summary = "hundreds of pieces of different lengths from all other ranks",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .threads = &threads,
                                    .ranks = kTwoRanksOrMore,
                                    .default_min_bytes = 9 << 10,
                                    .default_max_bytes = 9 << 10,
                                    .slots = slots,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
