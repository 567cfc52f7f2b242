/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message rate of all pairs together: rank i of the lower half sends windows of messages to rank i + ranks/2, which
 * acknowledges each window. The figure is the messages of all pairs, divided by the time of the slowest pair.
 *
 * With --threads, each rank of a pair has as many threads, which form pairs with a window and a communicator each. With
 * --unexpected, a rank posts the receives of a window when all of its messages have arrived.
 */
#include "bench_common.h"
#include "bench_threads.h"

enum { kTag = 7, kAckTag = 3, kSentTag = 4, kMostThreads = 64 };

static double threads = 1, unexpected;
static MPI_Comm communicators[kMostThreads];

/* What the threads of a rank do. */
struct task {
    const struct bench* b;
    size_t bytes;
    long iterations;
    bool sender;
    int peer, window;
};

static void start(struct bench* b) {
    communicators[0] = MPI_COMM_WORLD;
    for (int i = 1; i < b->threads; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
    }
    bench_team_open(b->threads);
}

static void end(struct bench* b) {
    bench_team_close();
    for (int i = 1; i < b->threads; ++i) {
        MPI_Comm_free(&communicators[i]);
    }
}

/* The number of a message, counted alike on both sides. */
static uint64_t message_of(const struct task* task, int slot, long iteration) {
    return task->b->message + (uint64_t)iteration * (uint64_t)(task->window * task->b->threads) + (uint64_t)slot;
}

static void send_window(const struct task* task, int member, long iteration) {
    const struct bench* b = task->b;
    MPI_Comm world = communicators[member];
    const int first = member * task->window;
    char ack = 0;
    for (int slot = first; slot < first + task->window; ++slot) {
        unsigned char* at = bench_slot(b, b->send, task->bytes, slot);
        if (b->options.verify) {
            bench_fill(at, task->bytes, b->rank, message_of(task, slot, iteration));
        }
        MPI_Isend(at, (int)task->bytes, MPI_BYTE, task->peer, kTag, world, &b->requests[slot]);
    }
    if (unexpected != 0) {
        MPI_Send(NULL, 0, MPI_BYTE, task->peer, kSentTag, world);
    }
    MPI_Waitall(task->window, &b->requests[first], MPI_STATUSES_IGNORE);
    MPI_Recv(&ack, 1, MPI_BYTE, task->peer, kAckTag, world, MPI_STATUS_IGNORE);
}

static void receive_window(struct bench* b, const struct task* task, int member, long iteration) {
    MPI_Comm world = communicators[member];
    const int first = member * task->window;
    char ack = 0;
    if (unexpected != 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, task->peer, kSentTag, world, MPI_STATUS_IGNORE);
    }
    for (int slot = first; slot < first + task->window; ++slot) {
        unsigned char* at = bench_slot(b, b->recv, task->bytes, slot);
        if (b->options.verify) {
            bench_guard(at, task->bytes);
        }
        MPI_Irecv(at, (int)task->bytes, MPI_BYTE, task->peer, kTag, world, &b->requests[slot]);
    }
    MPI_Waitall(task->window, &b->requests[first], MPI_STATUSES_IGNORE);
    for (int slot = first; slot < first + task->window && b->options.verify; ++slot) {
        bench_check(b, bench_slot(b, b->recv, task->bytes, slot), task->bytes, task->peer,
                    message_of(task, slot, iteration));
    }
    MPI_Send(&ack, 1, MPI_BYTE, task->peer, kAckTag, world);
}

static void exchange(int member, void* argument) {
    const struct task* task = argument;
    for (long i = 0; i < task->iterations; ++i) {
        if (task->sender) {
            send_window(task, member, i);
        } else {
            receive_window((struct bench*)task->b, task, member, i);
        }
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int pairs = b->ranks / 2;
    const bool sender = b->rank < pairs;
    struct task task = {.b = b,
                        .bytes = bytes,
                        .iterations = iterations,
                        .sender = sender,
                        .peer = sender ? b->rank + pairs : b->rank - pairs,
                        .window = bench_window(b, bytes)};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    bench_team_run(exchange, &task);
    double elapsed_s = sender ? bench_now_s() - start_s : 0, slowest_s = 0;
    b->message = message_of(&task, 0, iterations);
    MPI_Reduce(&elapsed_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return (double)(b->ranks / 2) * b->threads * bench_window(b, bytes) * (double)iterations / elapsed_s;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "threads",
                                         .value = "N",
                                         .help = "threads of each rank, each with a window (default 1)",
                                         .low = 1,
                                         .high = kMostThreads,
                                         .whole = true,
                                         .target = &threads},
                                        {.name = "unexpected",
                                         .help = "receives are posted when the messages of a window have arrived",
                                         .target = &unexpected},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_mr",
                                    .summary = "message rate of all pairs together, a window of messages in flight",
                                    .unit = "messages/s",
                                    .better = "higher",
                                    .decimals = 0,
                                    .windowed = true,
                                    .threads = &threads,
                                    .ranks = kPairsOfRanks,
                                    .default_max_bytes = 64 << 10,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
