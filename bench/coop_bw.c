/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth one way: rank 0 keeps a window of messages in flight, rank 1 acknowledges each window. With --blocking the
 * messages of a window are sent and received one by one.
 */
#include "bench_common.h"

enum { kAckTag = 2 };

static double blocking = 0;

static void send_all(struct bench* b, size_t bytes, int to) {
    if (blocking != 0) {
        bench_send_window(b, bytes, to);
    } else {
        MPI_Waitall(bench_post_sends(b, bytes, to, b->requests), b->requests, MPI_STATUSES_IGNORE);
    }
}

static void receive_all(struct bench* b, size_t bytes, int from) {
    if (blocking != 0) {
        bench_receive_window(b, bytes, from);
    } else {
        MPI_Waitall(bench_post_receives(b, bytes, from, b->requests), b->requests, MPI_STATUSES_IGNORE);
    }
    bench_check_window(b, bytes, from);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int peer = 1 - b->rank;
    const int window = bench_window(b, bytes);
    char ack = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        if (b->rank == 0) {
            send_all(b, bytes, peer);
            MPI_Recv(&ack, 1, MPI_BYTE, peer, kAckTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            receive_all(b, bytes, peer);
            MPI_Send(&ack, 1, MPI_BYTE, peer, kAckTag, MPI_COMM_WORLD);
        }
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {bench_touch_option,
                                        {.name = "blocking",
                                         .help = "MPI_Send and MPI_Recv, one message of the window after the other",
                                         .target = &blocking},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_bw",
                                    .summary = "bandwidth one way, a window of messages in flight",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .windowed = true,
                                    .extra = extra,
                                    .default_max_bytes = 64 << 20,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
