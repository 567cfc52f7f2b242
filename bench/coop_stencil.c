/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Halo exchange of a 3-D stencil of 7 points: every rank exchanges a message with up to six neighbours of a process
 * grid (MPI_Dims_create) with MPI_Irecv, MPI_Isend, MPI_Waitall. Before that it may compute for a fixed time
 * (--compute) and for a random time of up to --skew, which differs for each rank and iteration and repeats with the
 * same --seed. Between
 * MPI_Isend and MPI_Waitall it may compute (--interior), as an application computes its inner points, to overlap this
 * with the transfers.
 *
 * After each size it prints each rank's copy count, from pml/coop's counters. A message is one copy, which its two
 * ends may share, so the copies of a rank are its copied bytes divided by the size of a message. The ideal is half of
 * the messages that a rank sends and receives; the ideal time is the time of all copies of all ranks, divided in the
 * same proportion. Deviations are the differences of the ranks from the ideal, in percent of it, over all batches of a
 * size.
 */
#include "bench_common.h"
#include "bench_compute.h"
#include "bench_pvars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTag = 20, kFaces = 6 };

enum { kCopiesMean, kCopiesMax, kTimeMean, kTimeMax, kWait, kCompute };

/* The work of a rank at one size. */
struct account {
    double messages; /* sent and received */
    double copies, copied_bytes, copy_time_s;
    double operations;                    /* as the component counts them */
    double iterations, wait_s, compute_s; /* in MPI_Waitall, and outside of MPI */
};

enum { kFields = sizeof(struct account) / sizeof(double) };

static const char* const columns[] = {"copies_dev%", "copies_devmax%", "time_dev%", "time_devmax%",
                                      "wait_us",     "compute_us",     NULL};
static double periodic = 0, compute_us = 0, interior_us = 0, skew_us = 0, seed = 1;
static MPI_Comm grid = MPI_COMM_NULL;
static int neighbours[kFaces]; /* face 2d: towards lower coordinates of dimension d, 2d + 1: higher */
static struct account mine;
static struct account* all; /* of every rank, on rank 0 */
static uint64_t random_state;

static int slots(const struct bench* b) {
    (void)b;
    return kFaces;
}

static void start(struct bench* b) {
    int dims[3] = {0, 0, 0}, wraps[3];
    wraps[0] = wraps[1] = wraps[2] = periodic != 0;
    MPI_Dims_create(b->ranks, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, wraps, 0, &grid);
    for (int d = 0; d < 3; ++d) {
        MPI_Cart_shift(grid, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
    }
    for (int face = 0; face < kFaces; ++face) {
        if (neighbours[face] == b->rank) {
            neighbours[face] = MPI_PROC_NULL; /* the grid is one rank wide: nothing to exchange */
        }
    }
    all = calloc((size_t)b->ranks, sizeof *all);
    random_state = (uint64_t)seed * 0x9e3779b97f4a7c15u + (uint64_t)b->rank + 1;
    bench_pvars_open();
    bench_steps(0);
    if (b->rank == 0) {
        printf("# grid: %d x %d x %d%s\n", dims[0], dims[1], dims[2], periodic != 0 ? ", periodic" : "");
    }
}

static void end(struct bench* b) {
    (void)b;
    bench_pvars_close();
    MPI_Comm_free(&grid);
    free(all);
}

/* A random number from 0 to 1 (xorshift64*). */
static double next_random(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (double)((random_state * 0x2545f4914f6cdd1du) >> 11) / 9007199254740992.0;
}

static void prepare(struct bench* b, size_t bytes) {
    for (int face = 0; face < kFaces; ++face) {
        bench_fill(bench_slot(b, b->send, bytes, face), bytes, b->rank, b->message + (uint64_t)face);
        bench_guard(bench_slot(b, b->recv, bytes, face), bytes);
    }
}

static void compute(double us) {
    const double begin_s = bench_now_s();
    bench_compute(bench_steps(us * 1e-6));
    mine.compute_s += bench_now_s() - begin_s;
}

static void exchange(struct bench* b, size_t bytes) {
    for (int face = 0; face < kFaces; ++face) {
        MPI_Irecv(bench_slot(b, b->recv, bytes, face), (int)bytes, MPI_BYTE, neighbours[face], kTag + (face ^ 1), grid,
                  &b->requests[face]);
    }
    for (int face = 0; face < kFaces; ++face) {
        MPI_Isend(bench_slot(b, b->send, bytes, face), (int)bytes, MPI_BYTE, neighbours[face], kTag + face, grid,
                  &b->requests[kFaces + face]);
    }
    compute(interior_us);
    const double begin_s = bench_now_s();
    MPI_Waitall(2 * kFaces, b->requests, MPI_STATUSES_IGNORE);
    mine.wait_s += bench_now_s() - begin_s;
}

static void operate(struct bench* b, size_t bytes) {
    compute(compute_us + skew_us * next_random());
    exchange(b, bytes);
    ++mine.iterations;
}

/* Checks the message that a neighbour sent from its face towards us. */
static void check(struct bench* b, size_t bytes) {
    for (int face = 0; face < kFaces; ++face) {
        if (neighbours[face] != MPI_PROC_NULL) {
            bench_check(b, bench_slot(b, b->recv, bytes, face), bytes, neighbours[face],
                        b->message + (uint64_t)(face ^ 1));
        }
    }
}

static void add_to_account(size_t bytes, long iterations, struct bench_pvars before, struct bench_pvars after) {
    for (int face = 0; face < kFaces; ++face) {
        mine.messages += neighbours[face] == MPI_PROC_NULL ? 0 : 2.0 * (double)iterations;
    }
    mine.copied_bytes += after.copied_bytes - before.copied_bytes;
    mine.copies = mine.copied_bytes / (double)bytes;
    mine.copy_time_s += after.copy_time_s - before.copy_time_s;
    mine.operations += after.copies - before.copies;
}

static double total(const struct bench* b, size_t field) {
    double sum = 0;
    for (int rank = 0; rank < b->ranks; ++rank) {
        sum += ((const double*)&all[rank])[field / sizeof(double)];
    }
    return sum;
}

/* In percent of the ideal. NAN if nothing was copied, as with eager messages. */
static void deviations(const struct bench* b, size_t field, double ideal_per_message, double* mean, double* most) {
    double sum = 0, worst = 0;
    int count = 0;
    for (int rank = 0; rank < b->ranks; ++rank) {
        const double ideal = all[rank].messages * ideal_per_message;
        if (ideal > 0) {
            const double off = fabs(((const double*)&all[rank])[field / sizeof(double)] - ideal) / ideal * 100;
            sum += off;
            worst = fmax(worst, off);
            ++count;
        }
    }
    const bool known = count > 0 && total(b, field) > 0;
    *mean = known ? sum / count : NAN;
    *most = known ? worst : NAN;
}

/* Mean of all ranks and iterations, in microseconds. */
static double per_iteration_us(const struct bench* b, size_t field) {
    return total(b, field) / total(b, offsetof(struct account, iterations)) * 1e6;
}

static void conclude(struct bench* b) {
    const double messages = total(b, offsetof(struct account, messages));
    const double time_s = total(b, offsetof(struct account, copy_time_s));
    deviations(b, offsetof(struct account, copies), 0.5, &b->more[kCopiesMean], &b->more[kCopiesMax]);
    deviations(b, offsetof(struct account, copy_time_s), time_s / messages, &b->more[kTimeMean], &b->more[kTimeMax]);
    b->more[kWait] = per_iteration_us(b, offsetof(struct account, wait_s));
    b->more[kCompute] = per_iteration_us(b, offsetof(struct account, compute_s));
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const struct bench_operation operation = {prepare, operate, check};
    if (b->batch <= 0) {
        mine = (struct account){0};
    }
    const struct bench_pvars before = bench_pvars_read();
    const double elapsed_s = bench_operations(b, bytes, iterations, &operation);
    add_to_account(bytes, iterations, before, bench_pvars_read());
    MPI_Gather(&mine, kFields, MPI_DOUBLE, all, kFields, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (b->rank == 0) {
        conclude(b);
    }
    return elapsed_s;
}

static void print_or_dash(double value, int decimals) {
    if (isnan(value)) {
        printf(" %12s", "-");
    } else {
        printf(" %12.*f", decimals, value);
    }
}

static void print_ranks(struct bench* b, size_t bytes) {
    const double time_s = total(b, offsetof(struct account, copy_time_s));
    const double messages = total(b, offsetof(struct account, messages));
    printf("# rank   %-8s %6s %12s %12s %12s %12s %14s %12s %12s %12s\n", "size", "rank", "copies", "ideal", "copy_ms",
           "ideal_ms", "copied_bytes", "operations", "wait_ms", "compute_ms");
    for (int rank = 0; rank < b->ranks; ++rank) {
        printf("# rank   %-8zu %6d", bytes, rank);
        print_or_dash(all[rank].copies, 2);
        print_or_dash(all[rank].messages / 2, 2);
        print_or_dash(all[rank].copy_time_s * 1e3, 3);
        print_or_dash(messages > 0 ? all[rank].messages * time_s / messages * 1e3 : NAN, 3);
        printf("  ");
        print_or_dash(all[rank].copied_bytes, 0);
        print_or_dash(all[rank].operations, 0);
        print_or_dash(all[rank].wait_s * 1e3, 3);
        print_or_dash(all[rank].compute_s * 1e3, 3);
        printf("\n");
    }
    fflush(stdout);
}

static void after_size(struct bench* b, size_t bytes) {
    if (b->rank == 0) {
        print_ranks(b, bytes);
    }
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "periodic", .help = "the grid wraps around: every rank has as many neighbours", .target = &periodic},
        {.name = "compute",
         .value = "US",
         .help = "microseconds of computing before each exchange (default 0)",
         .low = 0,
         .high = 1e6,
         .target = &compute_us},
        {.name = "interior",
         .value = "US",
         .help = "microseconds of computing between posting and waiting (default 0)",
         .low = 0,
         .high = 1e7,
         .target = &interior_us},
        {.name = "skew",
         .value = "US",
         .help = "random further microseconds up to this, per rank and iteration (default 0)",
         .low = 0,
         .high = 1e6,
         .target = &skew_us},
        {.name = "seed",
         .value = "N",
         .help = "seed of the skew (default 1)",
         .low = 1,
         .high = 1e9,
         .whole = true,
         .target = &seed},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_stencil",
                                    .summary = "halo exchange of a 3-D stencil with up to six neighbours",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_max_bytes = 4 << 20,
                                    .slots = slots,
                                    .extra = extra,
                                    .more = columns,
                                    .running = true,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_operation_us,
                                    .after_size = after_size};
    return bench_main(argc, argv, &spec);
}
