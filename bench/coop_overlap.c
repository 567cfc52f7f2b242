/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a transfer overlaps with computing. Rank 0 starts a transfer (--side sender: MPI_Isend, receiver:
 * MPI_Irecv), computes without calling MPI (except with --tests), and waits for it; rank 1 is in the blocking MPI_Recv
 * or MPI_Send of the other side. Before each such measurement, transfer and computing are measured separately:
 *
 *     hidden = (transfer + compute - total) / min(transfer, compute) * 100 %
 *
 * The computing alone is measured in processor time, so that it does not include work of the library's threads that
 * are still sending after the sender's wait has returned.
 *
 * This includes the tests of "RDMA Read Based Rendezvous Protocol for MPI over InfiniBand", section 5.1: its ratio W/T
 * is compute/total, and --points varies W.
 *
 * With --tests, evenly spaced calls of MPI_Test interrupt the computing. A library without asynchronous progress can
 * do rank 0's part of the transfer, such as answering the sender's request, only in these calls.
 *
 * A message of one byte precedes each transfer, so that both sides start together: the receiver signals that it is
 * about to receive, or (--side receiver) that its receive is posted.
 *
 * On a software subnet, rank 0's HCA is a thread of rank 0, which takes time from the computing if it has no core of
 * its own. `lost` is the time that the computing thread did not run while it computed, `engine` the time of the HCA's
 * thread during the whole transfer. The last column subtracts the smaller of the two from the total. The
 * emulation cannot have taken more than that from the computing.
 */
#include "bench_common.h"
#include "bench_compute.h"
#include "bench_cpu.h"

#include <math.h>
#include <stdio.h>

enum { kTag = 17, kWordTag = 18, kStampsTag = 19, kProbes = 5, kMostStamps = 200 };

enum { kTotal, kTransfer, kComputing, kRatio, kOwn, kEngine, kOthers, kLost, kCorrected };

static const char* const columns[] = {"total_us",  "transfer_us", "compute_us", "compute/total", "cpu_us",
                                      "engine_us", "others_us",   "lost_us",    "corrected",     NULL};
static const char* const sides[] = {"sender", "receiver", NULL};
static double side = 0, factor = 1, compute_us = 0, rate = 0, tests = 0, points = 0, stamps = 0;
static size_t known_bytes; /* the size that `steps` and `span_s` are for */
static double span_s;      /* duration of the computing at this size */
static long steps;

/* Times of one transfer, CLOCK_MONOTONIC. Rank 1 only sets call_s and return_s. */
struct moments {
    double call_s, compute_s, wait_s, return_s;
};

enum { kMoments = sizeof(struct moments) / sizeof(double) };

/* One transfer. On rank 1 everything except at.call_s and at.return_s is 0. */
struct passage {
    struct moments at;
    double lost_s; /* time that the thread did not run while it computed */
    struct bench_cpu cpu;
};

/* Sums over a batch. */
struct sums {
    double total_s, own_s, engine_s, others_s, lost_s, taken_s;
};

static struct moments kept[kMostStamps]; /* of the last transfers during which rank 0 computed; a ring buffer */
static int transfers;                    /* number of such transfers at this size */

static void start(struct bench* b) {
    (void)b;
    known_bytes = 0;
    bench_steps(0);
    bench_cpu_open();
}

static void tell(void) {
    char word = 0;
    MPI_Send(&word, 1, MPI_BYTE, 1, kWordTag, MPI_COMM_WORLD);
}

static void await_word(int peer) {
    char word;
    MPI_Recv(&word, 1, MPI_BYTE, peer, kWordTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void compute_and_test(long computing, MPI_Request* request) {
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
static struct passage measured_side(struct bench* b, size_t bytes, long computing) {
    struct passage p;
    MPI_Request request;
    if (side == 0) {
        await_word(1);
    }
    const struct bench_cpu before = bench_cpu_read();
    p.at.call_s = bench_now_s();
    if (side == 0) {
        MPI_Isend(b->send, (int)bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &request);
    } else {
        MPI_Irecv(b->recv, (int)bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &request);
        tell();
    }
    const double ran_s = bench_cpu_own_s();
    p.at.compute_s = bench_now_s();
    compute_and_test(computing, &request);
    p.at.wait_s = bench_now_s();
    p.lost_s = fmax(0, p.at.wait_s - p.at.compute_s - (bench_cpu_own_s() - ran_s));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    p.at.return_s = bench_now_s();
    p.cpu = bench_cpu_read();
    p.cpu.own_s -= before.own_s;
    p.cpu.engine_s -= before.engine_s;
    p.cpu.others_s -= before.others_s;
    return p;
}

static struct passage other_side(struct bench* b, size_t bytes) {
    struct passage p = {0};
    if (side == 0) {
        char word = 0;
        MPI_Send(&word, 1, MPI_BYTE, 0, kWordTag, MPI_COMM_WORLD);
        p.at.call_s = bench_now_s();
        MPI_Recv(b->recv, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        await_word(0);
        p.at.call_s = bench_now_s();
        MPI_Send(b->send, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    }
    p.at.return_s = bench_now_s();
    return p;
}

static struct passage transfer(struct bench* b, size_t bytes, long computing) {
    const bool sends = (b->rank == 0) == (side == 0);
    if (b->options.verify && sends) {
        bench_fill(b->send, bytes, b->rank, b->message);
    } else if (b->options.verify) {
        bench_guard(b->recv, bytes);
    }
    const struct passage p = b->rank == 0 ? measured_side(b, bytes, computing) : other_side(b, bytes);
    if (b->options.verify && !sends) {
        bench_check(b, b->recv, bytes, 1 - b->rank, b->message);
    }
    ++b->message;
    return p;
}

static double time_of(struct passage p) { return p.at.return_s - p.at.call_s; }

/* Sets the computing time of this size: from --compute-us, from --rate, or from the shortest of a few transfers. */
static void choose_steps(struct bench* b, size_t bytes) {
    double best_s = 1e9;
    for (int i = 0; i < kProbes; ++i) {
        best_s = fmin(best_s, time_of(transfer(b, bytes, 0)));
    }
    span_s = compute_us > 0 ? compute_us * 1e-6 : factor * (rate > 0 ? (double)bytes / (rate * 1e6) : best_s);
    steps = bench_steps(span_s);
    known_bytes = bytes;
    transfers = 0;
}

static void add(struct sums* sums, struct passage p) {
    sums->total_s += time_of(p);
    sums->own_s += p.cpu.own_s;
    sums->engine_s += p.cpu.engine_s;
    sums->others_s += p.cpu.others_s;
    sums->lost_s += p.lost_s;
    sums->taken_s += isnan(p.cpu.engine_s) ? NAN : fmin(p.lost_s, p.cpu.engine_s);
}

static void conclude(struct bench* b, long iterations, struct sums sums, double transfer_s, double compute_s) {
    const double us = 1e6 / (double)iterations;
    b->more[kTotal] = sums.total_s * us;
    b->more[kTransfer] = transfer_s * us;
    b->more[kComputing] = compute_s * us;
    b->more[kRatio] = compute_s / sums.total_s;
    b->more[kOwn] = sums.own_s * us;
    b->more[kEngine] = sums.engine_s * us;
    b->more[kOthers] = fmax(0, sums.others_s) * us; /* the clocks are not read at the same moment */
    b->more[kLost] = sums.lost_s * us;
    b->more[kCorrected] = compute_s / (sums.total_s - sums.taken_s);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    struct sums sums = {0};
    double transfer_s = 0, compute_s = 0;
    if (known_bytes != bytes) {
        choose_steps(b, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i) {
        transfer_s += time_of(transfer(b, bytes, 0));
        if (b->rank == 0) {
            const double ran_s = bench_cpu_own_s();
            bench_compute(steps);
            compute_s += bench_cpu_own_s() - ran_s;
        }
        const struct passage p = transfer(b, bytes, steps);
        kept[transfers++ % kMostStamps] = p.at;
        add(&sums, p);
    }
    conclude(b, iterations, sums, transfer_s, compute_s);
    return bench_now_s() - start_s;
}

/* '# stamp SIZE NUMBER' and the moments of rank 0, then call and return of rank 1. */
static void print_stamps(struct bench* b, size_t bytes) {
    static struct moments other[kMostStamps];
    const int count = transfers < kMostStamps ? transfers : kMostStamps;
    if (stamps == 0) {
        return;
    }
    if (b->rank == 1) {
        MPI_Send(kept, count * kMoments, MPI_DOUBLE, 0, kStampsTag, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(other, count * kMoments, MPI_DOUBLE, 1, kStampsTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) {
        printf("# stamp %zu %d %.9f %.9f %.9f %.9f %.9f %.9f\n", bytes, i + 1, kept[i].call_s, kept[i].compute_s,
               kept[i].wait_s, kept[i].return_s, other[i].call_s, other[i].return_s);
    }
    fflush(stdout);
}

static int number_of_points(const struct bench* b) {
    (void)b;
    return (int)points;
}

static void at_point(struct bench* b, size_t bytes, int number, int count) {
    (void)b;
    (void)bytes;
    steps = bench_steps(span_s * number / count);
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)bytes;
    (void)iterations;
    (void)elapsed_s;
    const double* us = b->more;
    return (us[kTransfer] + us[kComputing] - us[kTotal]) / fmin(us[kTransfer], us[kComputing]) * 100;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "side",
         .value = "SIDE",
         .help = "the side that computes: sender (default) or receiver",
         .words = sides,
         .target = &side},
        {.name = "compute",
         .value = "FACTOR",
         .help = "computing time as a multiple of the time of the transfer alone (default 1)",
         .low = 0.01,
         .high = 1000,
         .target = &factor},
        {.name = "compute-us",
         .value = "US",
         .help = "computing time in microseconds, instead of --compute",
         .low = 0.1,
         .high = 1e7,
         .target = &compute_us},
        {.name = "rate",
         .value = "MB/S",
         .help = "make --compute a multiple of the time that the message needs at this rate",
         .low = 0.001,
         .high = 1e7,
         .target = &rate},
        {.name = "tests",
         .value = "N",
         .help = "calls of MPI_Test during the computing (default 0)",
         .low = 0,
         .high = 1e6,
         .whole = true,
         .target = &tests},
        {.name = "points",
         .value = "N",
         .help = "also print lines '# point SIZE NUMBER ...' for N computing times up to --compute",
         .low = 0,
         .high = 1000,
         .whole = true,
         .target = &points},
        {.name = "stamps",
         .help =
             "also print lines '# stamp SIZE NUMBER ...': when rank 0 called, computed, waited, returned, and rank 1 "
             "called and returned (CLOCK_MONOTONIC, s)",
         .target = &stamps},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_overlap",
                                    .summary = "share of a transfer that overlaps with computing",
                                    .unit = "%",
                                    .better = "higher",
                                    .decimals = 2,
                                    .default_max_bytes = 16 << 20,
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .seconds = seconds,
                                    .figure = figure,
                                    .after_size = print_stamps,
                                    .points = number_of_points,
                                    .at_point = at_point};
    return bench_main(argc, argv, &spec);
}
