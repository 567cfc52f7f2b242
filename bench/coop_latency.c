/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half round trip: rank 0 sends, rank 1 answers with a message of the same size, both blocking. With --posted, receives
 * that these messages do not match have been posted before on both ranks; with --unexpected, messages that nobody
 * receives yet have arrived before.
 */
#include "bench_common.h"

#include <stdio.h>
#include <stdlib.h>

enum { kTag = 1, kQueueTag = 10 /* and the following ones: a tag for each entry of a queue */ };

static double any_source, posted, unexpected;

/* The receives of --posted. Each has a byte. */
static MPI_Request* queued;
static unsigned char* queued_bytes;

static unsigned char byte_of(int entry) { return (unsigned char)(entry + 1); }

static void send_queue(int peer, int first, int count) {
    for (int i = first; i < first + count; ++i) {
        const unsigned char byte = byte_of(i);
        MPI_Send(&byte, 1, MPI_BYTE, peer, kQueueTag + i, MPI_COMM_WORLD);
    }
}

static void check_entry(const struct bench* b, int entry, unsigned char seen) {
    if (b->options.verify && seen != byte_of(entry)) {
        fprintf(stderr, "rank %d: entry %d of the queue: expected %d, seen %d\n", b->rank, entry, byte_of(entry), seen);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void start(struct bench* b) {
    const int receives = (int)posted, messages = (int)unexpected, peer = 1 - b->rank;
    queued = malloc((size_t)(receives + 1) * sizeof *queued);
    queued_bytes = malloc((size_t)receives + 1);
    for (int i = 0; i < receives; ++i) {
        MPI_Irecv(&queued_bytes[i], 1, MPI_BYTE, peer, kQueueTag + i, MPI_COMM_WORLD, &queued[i]);
    }
    send_queue(peer, receives, messages);
    /* A message behind them, in the same order. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, kTag, NULL, 0, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void end(struct bench* b) {
    const int receives = (int)posted, messages = (int)unexpected, peer = 1 - b->rank;
    send_queue(peer, 0, receives);
    MPI_Waitall(receives, queued, MPI_STATUSES_IGNORE);
    for (int i = 0; i < receives; ++i) {
        check_entry(b, i, queued_bytes[i]);
    }
    for (int i = receives; i < receives + messages; ++i) {
        unsigned char byte = 0;
        MPI_Recv(&byte, 1, MPI_BYTE, peer, kQueueTag + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_entry(b, i, byte);
    }
    free(queued);
    free(queued_bytes);
}

static void send_one(struct bench* b, size_t bytes, int peer) {
    bench_write_message(b, b->send, bytes, b->message);
    MPI_Send(b->send, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
}

static void receive_one(struct bench* b, size_t bytes, int peer) {
    if (b->options.verify) {
        bench_guard(b->recv, bytes);
    }
    MPI_Recv(b->recv, (int)bytes, MPI_BYTE, any_source != 0 ? MPI_ANY_SOURCE : peer, kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    bench_read_message(b, b->recv, bytes, peer, b->message);
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

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        bench_touch_option,
        {.name = "any-source", .help = "receive from MPI_ANY_SOURCE", .target = &any_source},
        {.name = "posted",
         .value = "N",
         .help = "N receives with other tags have been posted before (default 0)",
         .high = 30000,
         .whole = true,
         .target = &posted},
        {.name = "unexpected",
         .value = "N",
         .help = "N messages with other tags have arrived before, unexpected (default 0)",
         .high = 30000,
         .whole = true,
         .target = &unexpected},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_latency",
                                    .summary = "half round trip of blocking messages",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 4,
                                    .default_max_bytes = 64 << 20,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_half_round_trip_us};
    return bench_main(argc, argv, &spec);
}
