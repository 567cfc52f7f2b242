/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth both ways at once: each rank sends and receives a window of messages. The figure is the sum of both
 * directions. With --blocking the messages of a window are exchanged one by one with MPI_Sendrecv.
 */
#include "bench_common.h"

enum { kTag = 7 };

static double blocking = 0;

static void exchange_one_by_one(struct bench* b, size_t bytes, int peer) {
    const int window = bench_window(b, bytes);
    for (int slot = 0; slot < window; ++slot) {
        unsigned char *out = bench_slot(b, b->send, bytes, slot), *in = bench_slot(b, b->recv, bytes, slot);
        bench_write_message(b, out, bytes, b->message + (uint64_t)slot);
        if (b->options.verify) {
            bench_guard(in, bytes);
        }
        MPI_Sendrecv(out, (int)bytes, MPI_BYTE, peer, kTag, in, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void exchange(struct bench* b, size_t bytes, int peer) {
    const int window = bench_window(b, bytes);
    if (blocking != 0) {
        exchange_one_by_one(b, bytes, peer);
    } else {
        bench_post_receives(b, bytes, peer, b->requests);
        bench_post_sends(b, bytes, peer, b->requests + window);
        MPI_Waitall(2 * window, b->requests, MPI_STATUSES_IGNORE);
    }
    bench_check_window(b, bytes, peer);
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int peer = 1 - b->rank;
    const int window = bench_window(b, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        exchange(b, bytes, peer);
    }
    /* Rank 0 may finish while rank 1 still receives: wait until both have finished. */
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return 2.0 * (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        bench_touch_option,
        {.name = "blocking", .help = "MPI_Sendrecv, one pair of messages after the other", .target = &blocking},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_bibw",
                                    .summary = "bandwidth both ways at once, a window of messages in flight each way",
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
