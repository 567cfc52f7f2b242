/* SPDX-License-Identifier: BSD-3-Clause */
/* Bandwidth both ways at once: each rank sends and receives a window of messages; the sum of both directions. */
#include "bench_common.h"

static double seconds(struct bench *b, size_t bytes, long iterations)
{
    const int peer = 1 - b->rank;
    const int window = bench_window(b, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        bench_post_receives(b, bytes, peer, b->requests);
        bench_post_sends(b, bytes, peer, b->requests + window);
        MPI_Waitall(2 * window, b->requests, MPI_STATUSES_IGNORE);
        bench_check_window(b, bytes, peer);
    }
    /* Rank 0 may be done while rank 1 still receives: only when both are has everything moved. */
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_now_s() - start_s;
}

static double figure(const struct bench *b, size_t bytes, long iterations, double elapsed_s)
{
    return 2.0 * (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char **argv)
{
    const struct bench_spec spec = {.name = "coop_bibw",
                                    .summary = "bandwidth both ways at once, a window of messages in flight each way",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .windowed = true,
                                    .default_max_bytes = 64 << 20,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
