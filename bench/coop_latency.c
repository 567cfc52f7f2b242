/* SPDX-License-Identifier: BSD-3-Clause */
/* Half round trip: rank 0 sends, rank 1 answers with a message of the same size, both blocking. */
#include "bench_common.h"

enum { kTag = 1 };

static void send_one(struct bench* b, size_t bytes, int peer) {
    if (b->options.verify) {
        bench_fill(b->send, bytes, b->rank, b->message);
    }
    MPI_Send(b->send, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
}

static void receive_one(struct bench* b, size_t bytes, int peer) {
    if (b->options.verify) {
        bench_guard(b->recv, bytes);
    }
    MPI_Recv(b->recv, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (b->options.verify) {
        bench_check(b, b->recv, bytes, peer, b->message);
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int peer = 1 - b->rank;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, ++b->message) {
        if (b->rank == 0) {
            send_one(b, bytes, peer);
            receive_one(b, bytes, peer);
        } else {
            receive_one(b, bytes, peer);
            send_one(b, bytes, peer);
        }
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)b;
    (void)bytes;
    return elapsed_s / (double)iterations / 2 * 1e6;
}

int main(int argc, char** argv) {
    const struct bench_spec spec = {.name = "coop_latency",
                                    .summary = "half round trip of blocking messages",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 4,
                                    .default_max_bytes = 64 << 20,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
