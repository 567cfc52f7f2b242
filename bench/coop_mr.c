/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message rate of all pairs together: rank i of the lower half sends windows of messages to rank i + ranks/2, which
 * acknowledges each window. The figure is the messages of all pairs, divided by the time of the slowest pair.
 */
#include "bench_common.h"

enum { kAckTag = 3 };

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int pairs = b->ranks / 2;
    const bool sender = b->rank < pairs;
    const int peer = sender ? b->rank + pairs : b->rank - pairs;
    const int window = bench_window(b, bytes);
    char ack = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        if (sender) {
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
    double elapsed_s = sender ? bench_now_s() - start_s : 0, slowest_s = 0;
    MPI_Reduce(&elapsed_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return (double)(b->ranks / 2) * bench_window(b, bytes) * (double)iterations / elapsed_s;
}

int main(int argc, char** argv) {
    const struct bench_spec spec = {.name = "coop_mr",
                                    .summary = "message rate of all pairs together, a window of messages in flight",
                                    .unit = "messages/s",
                                    .better = "higher",
                                    .decimals = 0,
                                    .windowed = true,
                                    .ranks = kPairsOfRanks,
                                    .default_max_bytes = 64 << 10,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
