/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One to all: rank 0 sends a message to every other rank (MPI_Isend, then MPI_Waitall), the others receive theirs
 * (MPI_Recv). With --collective it is MPI_Scatter with MPI_IN_PLACE on rank 0.
 */
#include "bench_common.h"

enum { kTag = 11 };

static void prepare(struct bench* b, size_t bytes) {
    for (int peer = 0; b->rank == 0 && peer < b->ranks; ++peer) {
        bench_fill(bench_slot(b, b->send, bytes, peer), bytes, 0, b->message + (uint64_t)peer);
    }
    bench_guard(b->recv, bytes);
}

static void scatter(struct bench* b, size_t bytes) {
    if (b->rank == 0) {
        MPI_Scatter(b->send, 1, bench_rooted_now.slot_type, MPI_IN_PLACE, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Scatter(NULL, 0, bench_rooted_now.slot_type, b->recv, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

static void send_to_all(struct bench* b, size_t bytes) {
    for (int peer = 1; peer < b->ranks; ++peer) {
        MPI_Isend(bench_slot(b, b->send, bytes, peer), (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                  &b->requests[peer - 1]);
    }
    MPI_Waitall(b->ranks - 1, b->requests, MPI_STATUSES_IGNORE);
}

static void operate(struct bench* b, size_t bytes) {
    if (bench_rooted_now.collective) {
        scatter(b, bytes);
    } else if (b->rank == 0) {
        send_to_all(b, bytes);
    } else {
        MPI_Recv(b->recv, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void check(struct bench* b, size_t bytes) {
    if (b->rank != 0) {
        bench_check(b, b->recv, bytes, 0, b->message + (uint64_t)b->rank);
    }
}

int main(int argc, char** argv) {
    static const struct bench_rooted program = {.name = "coop_scatter",
                                                .summary = "one to all, a message to each rank",
                                                .collective = "MPI_Scatter instead of messages",
                                                .operation = {prepare, operate, check}};
    return bench_rooted_main(argc, argv, &program);
}
