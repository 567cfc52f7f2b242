/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a sender and a receiver spend their time: rank 0 sends messages with MPI_Send, rank 1 receives them with
 * MPI_Recv, and each rank divides its time into copying (by pml/coop's counters), polling (the rest of the time in MPI)
 * and computing (outside of MPI: --compute, and the loop itself). With components that do not count their copies, the
 * time in MPI cannot be divided into copying and polling.
 */
#include "bench_common.h"
#include "bench_compute.h"
#include "bench_pvars.h"

#include <math.h>

enum { kTag = 16 };

enum { kMpi, kCopy, kPoll, kCompute, kShares };

static const char* const columns[] = {"s_mpi%",  "s_copy%", "s_poll%",    "s_compute%", "r_mpi%",
                                      "r_copy%", "r_poll%", "r_compute%", NULL};
static double compute_us = 0;

static void start(struct bench* b) {
    (void)b;
    bench_pvars_open();
    bench_steps(0); /* measures the core's speed before anything else is measured */
}

static void end(struct bench* b) {
    (void)b;
    bench_pvars_close();
}

/* Sends or receives one message. Returns the time spent in MPI. */
static double one_message(struct bench* b, size_t bytes) {
    const int peer = 1 - b->rank;
    if (b->options.verify && b->rank == 0) {
        bench_fill(b->send, bytes, 0, b->message);
    } else if (b->options.verify) {
        bench_guard(b->recv, bytes);
    }
    const double begin_s = bench_now_s();
    if (b->rank == 0) {
        MPI_Send(b->send, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
    } else {
        MPI_Recv(b->recv, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double in_mpi_s = bench_now_s() - begin_s;
    if (b->options.verify && b->rank == 1) {
        bench_check(b, b->recv, bytes, 0, b->message);
    }
    return in_mpi_s;
}

static void share(double* percent, double elapsed_s, double in_mpi_s, double copy_s) {
    const double per_second = 100 / elapsed_s;
    percent[kMpi] = in_mpi_s * per_second;
    percent[kCopy] = copy_s * per_second;
    percent[kPoll] = fmax(0, in_mpi_s - copy_s) * per_second;
    percent[kCompute] = (elapsed_s - in_mpi_s) * per_second;
    if (isnan(copy_s)) {
        percent[kPoll] = NAN; /* fmax(0, NAN) is 0 */
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const long steps = bench_steps(compute_us * 1e-6);
    double percent[kShares], in_mpi_s = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double copied_s = bench_pvars_read().copy_time_s;
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, ++b->message) {
        in_mpi_s += one_message(b, bytes);
        bench_compute(steps);
    }
    const double elapsed_s = bench_now_s() - start_s;
    share(percent, elapsed_s, in_mpi_s, bench_pvars_read().copy_time_s - copied_s);
    MPI_Gather(percent, kShares, MPI_DOUBLE, b->more, kShares, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return elapsed_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)b;
    (void)bytes;
    return elapsed_s / (double)iterations * 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "compute",
         .value = "US",
         .help = "microseconds of computing after each message, on both ranks (default 0)",
         .low = 0,
         .high = 1e6,
         .target = &compute_us},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_profile",
                                    .summary = "how a sender and a receiver of blocking messages spend their time",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .default_max_bytes = 16 << 20,
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
