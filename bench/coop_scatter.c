/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One to all: rank 0 sends a message to every other rank (MPI_Isend, then MPI_Waitall), the others receive theirs (MPI_Recv).
 * With --collective it is MPI_Scatter, in which rank 0 keeps its own part where it is.
 */
#include "bench_common.h"

enum { kTag = 11 };

static double collective = 0;
static MPI_Datatype slot_type = MPI_DATATYPE_NULL;

static int slots(const struct bench *b)
{
    return b->ranks;
}

static void prepare(struct bench *b, size_t bytes)
{
    for (int peer = 0; b->rank == 0 && peer < b->ranks; ++peer) {
        bench_fill(bench_slot(b, b->send, bytes, peer), bytes, 0, b->message + (uint64_t)peer);
    }
    bench_guard(b->recv, bytes);
}

static void scatter(struct bench *b, size_t bytes)
{
    if (b->rank == 0) {
        MPI_Scatter(b->send, 1, slot_type, MPI_IN_PLACE, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Scatter(NULL, 0, slot_type, b->recv, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

static void send_to_all(struct bench *b, size_t bytes)
{
    for (int peer = 1; peer < b->ranks; ++peer) {
        MPI_Isend(bench_slot(b, b->send, bytes, peer), (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                  &b->requests[peer - 1]);
    }
    MPI_Waitall(b->ranks - 1, b->requests, MPI_STATUSES_IGNORE);
}

static void operate(struct bench *b, size_t bytes)
{
    if (collective != 0) {
        scatter(b, bytes);
    } else if (b->rank == 0) {
        send_to_all(b, bytes);
    } else {
        MPI_Recv(b->recv, (int)bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void check(struct bench *b, size_t bytes)
{
    if (b->rank != 0) {
        bench_check(b, b->recv, bytes, 0, b->message + (uint64_t)b->rank);
    }
}

static double seconds(struct bench *b, size_t bytes, long iterations)
{
    const struct bench_operation operation = {prepare, operate, check};
    slot_type = bench_slot_type(b, bytes);
    const double elapsed_s = bench_operations(b, bytes, iterations, &operation);
    MPI_Type_free(&slot_type);
    return elapsed_s;
}

int main(int argc, char **argv)
{
    const struct bench_extra extra[] = {
        {.name = "collective", .help = "MPI_Scatter instead of messages", .target = &collective}, {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_scatter",
                                    .summary = "one to all, a message to each rank",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_max_bytes = 4 << 20,
                                    .slots = slots,
                                    .extra = extra,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
