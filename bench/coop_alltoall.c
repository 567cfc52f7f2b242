/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alltoall: each rank has a block for every rank. After one barrier, the calls follow each other, and the figure is
 * the mean time per call on the slowest rank. '-x 0 -b 1 -i 10' measures the first ten calls of a job.
 */
#include "bench_common.h"

#include <limits.h>
#include <stdio.h>

/* MPI_Alltoall leaves no gaps between the blocks. The displacement of the last one is of type int in most libraries. */
static int slots(const struct bench* b) {
    if ((b->options.max_bytes + kGuardBytes) * (size_t)b->ranks > INT_MAX) {
        if (b->rank == 0) {
            fprintf(stderr, "coop_alltoall: option -m: the blocks of all ranks together must be shorter than 2 GiB\n");
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has ended the job */
    }
    return b->ranks;
}

static unsigned char* block(unsigned char* buffer, size_t bytes, int rank) { return buffer + (size_t)rank * bytes; }

static void prepare(const struct bench* b, size_t bytes) {
    for (int peer = 0; peer < b->ranks; ++peer) {
        bench_fill(block(b->send, bytes, peer), bytes, b->rank, b->message + (uint64_t)peer);
    }
    bench_guard(block(b->recv, bytes, b->ranks - 1), bytes);
}

static void check(struct bench* b, size_t bytes) {
    const uint64_t message = b->message + (uint64_t)b->rank;
    for (int peer = 0; peer < b->ranks - 1; ++peer) {
        bench_check_unguarded(b, block(b->recv, bytes, peer), bytes, peer, message);
    }
    bench_check(b, block(b->recv, bytes, b->ranks - 1), bytes, b->ranks - 1, message);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)b->ranks) {
        if (b->options.verify) {
            prepare(b, bytes);
        }
        MPI_Alltoall(b->send, (int)bytes, MPI_BYTE, b->recv, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
        if (b->options.verify) {
            check(b, bytes);
        }
    }
    double own_s = bench_now_s() - start_s;
    MPI_Reduce(&own_s, &b->operation_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return b->operation_s;
}

int main(int argc, char** argv) {
    const struct bench_spec spec = {.name = "coop_alltoall",
                                    .summary = "MPI_Alltoall, time per call of the slowest rank",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_max_bytes = 64 << 10,
                                    .slots = slots,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
