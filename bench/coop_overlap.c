/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a transfer hides behind computing. Rank 0 starts a transfer (--side sender: MPI_Isend, receiver: MPI_Irecv),
 * computes without calling MPI (unless told to), and waits for it; rank 1 sits in the blocking MPI_Recv or MPI_Send of the other side. In turn
 * with that, rank 0 measures the transfer alone and the computing alone:
 *
 *     hidden = (transfer + compute - total) / min(transfer, compute) * 100 %
 *
 * With --tests the computing is interrupted by calls of MPI_Test, evenly spread: where the transfer needs rank 0's part (a
 * receiver that is to answer the sender's request, say), it gets to it only there.
 *
 * A word of one byte precedes each transfer, so that both sides begin together: the receiver says that it is about to
 * receive, or (--side receiver) that its receive is posted.
 */
#include "bench_common.h"
#include "bench_compute.h"

#include <math.h>

enum { kTag = 17, kWordTag = 18, kProbes = 5 };

enum { kTotal, kTransfer, kComputing, kRatio };

static const char *const columns[] = {"total_us", "transfer_us", "compute_us", "compute/total", NULL};
static const char *const sides[] = {"sender", "receiver", NULL};
static double side = 0, factor = 1, compute_us = 0, tests = 0;
static size_t known_bytes; /* of which steps is the computing */
static long steps;

static void start(struct bench *b)
{
    (void)b;
    known_bytes = 0;
    bench_steps(0);
}

static void tell(void)
{
    char word = 0;
    MPI_Send(&word, 1, MPI_BYTE, 1, kWordTag, MPI_COMM_WORLD);
}

static void await_word(int peer)
{
    char word;
    MPI_Recv(&word, 1, MPI_BYTE, peer, kWordTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void compute_and_test(long computing, MPI_Request *request)
{
    const int parts = (int)tests + 1;
    for (int part = 0; part < parts; ++part) {
        int done;
        bench_compute(computing * (part + 1) / parts - computing * part / parts);
        if (part < parts - 1 && computing > 0) {
            MPI_Test(request, &done, MPI_STATUS_IGNORE);
        }
    }
}

/* Rank 0: start, compute, wait. */
static double measured_side(struct bench *b, size_t bytes, long computing)
{
    MPI_Request request;
    double begin_s;
    if (side == 0) {
        await_word(1);
        begin_s = bench_now_s();
        MPI_Isend(b->send, (int)bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &request);
    } else {
        begin_s = bench_now_s();
        MPI_Irecv(b->recv, (int)bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &request);
        tell();
    }
    compute_and_test(computing, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return bench_now_s() - begin_s;
}

static void other_side(struct bench *b, size_t bytes)
{
    if (side == 0) {
        char word = 0;
        MPI_Send(&word, 1, MPI_BYTE, 0, kWordTag, MPI_COMM_WORLD);
        MPI_Recv(b->recv, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        await_word(0);
        MPI_Send(b->send, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    }
}

static double transfer(struct bench *b, size_t bytes, long computing)
{
    const bool sends = (b->rank == 0) == (side == 0);
    double took_s = 0;
    if (b->options.verify && sends) {
        bench_fill(b->send, bytes, b->rank, b->message);
    } else if (b->options.verify) {
        bench_guard(b->recv, bytes);
    }
    if (b->rank == 0) {
        took_s = measured_side(b, bytes, computing);
    } else {
        other_side(b, bytes);
    }
    if (b->options.verify && !sends) {
        bench_check(b, b->recv, bytes, 1 - b->rank, b->message);
    }
    ++b->message;
    return took_s;
}

/* The shortest of a few transfers decides how long the computing of this size is. */
static void choose_steps(struct bench *b, size_t bytes)
{
    double best_s = 1e9;
    for (int i = 0; i < kProbes; ++i) {
        const double took_s = transfer(b, bytes, 0);
        best_s = took_s < best_s ? took_s : best_s;
    }
    steps = bench_steps(compute_us > 0 ? compute_us * 1e-6 : factor * best_s);
    known_bytes = bytes;
}

static void conclude(struct bench *b, long iterations, double total_s, double transfer_s, double compute_s)
{
    const double us = 1e6 / (double)iterations;
    b->more[kTotal] = total_s * us;
    b->more[kTransfer] = transfer_s * us;
    b->more[kComputing] = compute_s * us;
    b->more[kRatio] = compute_s / total_s;
}

static double seconds(struct bench *b, size_t bytes, long iterations)
{
    double total_s = 0, transfer_s = 0, compute_s = 0;
    if (known_bytes != bytes) {
        choose_steps(b, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i) {
        transfer_s += transfer(b, bytes, 0);
        if (b->rank == 0) {
            const double begin_s = bench_now_s();
            bench_compute(steps);
            compute_s += bench_now_s() - begin_s;
        }
        total_s += transfer(b, bytes, steps);
    }
    conclude(b, iterations, total_s, transfer_s, compute_s);
    return bench_now_s() - start_s;
}

static double figure(const struct bench *b, size_t bytes, long iterations, double elapsed_s)
{
    (void)bytes;
    (void)iterations;
    (void)elapsed_s;
    const double *us = b->more;
    return (us[kTransfer] + us[kComputing] - us[kTotal]) / fmin(us[kTransfer], us[kComputing]) * 100;
}

int main(int argc, char **argv)
{
    const struct bench_extra extra[] = {
        {.name = "side", .value = "SIDE", .help = "which side computes: sender (default) or receiver", .words = sides,
         .target = &side},
        {.name = "compute", .value = "FACTOR", .help = "computing time, in times of the transfer alone (default 1)",
         .low = 0.01, .high = 1000, .target = &factor},
        {.name = "compute-us", .value = "US", .help = "computing time in microseconds instead", .low = 0.1, .high = 1e7,
         .target = &compute_us},
        {.name = "tests", .value = "N", .help = "calls of MPI_Test in the computing (default 0)", .low = 0, .high = 1e6,
         .whole = true, .target = &tests},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_overlap",
                                    .summary = "share of a transfer that hides behind computing",
                                    .unit = "%",
                                    .better = "higher",
                                    .decimals = 2,
                                    .default_max_bytes = 16 << 20,
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
