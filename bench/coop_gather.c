/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All to one: every other rank sends a message to rank 0 (MPI_Send), which receives all of them (MPI_Irecv, then
 * MPI_Waitall). With --collective it is MPI_Gather with MPI_IN_PLACE on rank 0.
 */
#include "bench_common.h"

enum { kTag = 12 };

static void prepare(struct bench* b, size_t bytes) {
    bench_fill(b->send, bytes, b->rank, b->message);
    for (int peer = 0; b->rank == 0 && peer < b->ranks; ++peer) {
        bench_guard(bench_slot(b, b->recv, bytes, peer), bytes);
    }
}

static void gather(struct bench* b, size_t bytes) {
    if (b->rank == 0) {
        MPI_Gather(MPI_IN_PLACE, 1, bench_rooted_now.slot_type, b->recv, 1, bench_rooted_now.slot_type, 0,
                   MPI_COMM_WORLD);
    } else {
        MPI_Gather(b->send, (int)bytes, MPI_BYTE, NULL, 0, bench_rooted_now.slot_type, 0, MPI_COMM_WORLD);
    }
}

static void receive_from_all(struct bench* b, size_t bytes) {
    for (int peer = 1; peer < b->ranks; ++peer) {
        MPI_Irecv(bench_slot(b, b->recv, bytes, peer), (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                  &b->requests[peer - 1]);
    }
    MPI_Waitall(b->ranks - 1, b->requests, MPI_STATUSES_IGNORE);
}

static void operate(struct bench* b, size_t bytes) {
    if (bench_rooted_now.collective) {
        gather(b, bytes);
    } else if (b->rank == 0) {
        receive_from_all(b, bytes);
    } else {
        MPI_Send(b->send, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    }
}

static void check(struct bench* b, size_t bytes) {
    for (int peer = 1; b->rank == 0 && peer < b->ranks; ++peer) {
        bench_check(b, bench_slot(b, b->recv, bytes, peer), bytes, peer, b->message);
    }
}

int main(int argc, char** argv) {
    static const struct bench_rooted program = {.name = "coop_gather",
                                                .summary = "all to one, a message from each rank",
                                                .collective = "MPI_Gather instead of messages",
                                                .operation = {prepare, operate, check}};
    return bench_rooted_main(argc, argv, &program);
}
