/* SPDX-License-Identifier: BSD-3-Clause */
/* Bandwidth one way: rank 0 keeps a window of messages in flight, rank 1 acknowledges each window. */
#include "bench_common.h"

enum { kAckTag = 2 };

static double seconds(struct bench *b, size_t bytes, long iterations)
{
    const int peer = 1 - b->rank;
    const int window = bench_window(b, bytes);
    char ack = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        if (b->rank == 0) {
            bench_post_sends(b, bytes, peer, b->requests);
            MPI_Waitall(window, b->requests, MPI_STATUSES_IGNORE);
            MPI_Recv(&ack, 1, MPI_BYTE, peer, kAckTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            bench_post_receives(b, bytes, peer, b->requests);
            MPI_Waitall(window, b->requests, MPI_STATUSES_IGNORE);
            bench_check_window(b, bytes, peer);
            MPI_Send(&ack, 1, MPI_BYTE, peer, kAckTag, MPI_COMM_WORLD);
        }
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench *b, size_t bytes, long iterations, double elapsed_s)
{
    return (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char **argv)
{
    const struct bench_spec spec = {.name = "coop_bw",
                                    .summary = "bandwidth one way, a window of messages in flight",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .windowed = true,
                                    .default_max_bytes = 64 << 20,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
