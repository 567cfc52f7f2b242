/* SPDX-License-Identifier: BSD-3-Clause */
/* How often is a receiver interrupted while it computes? Two ranks with pml_coop_async=interrupt; exit code 1 if too
 * often or never.
 *
 *     burst [MOST]    rank 0 sends 64 long messages back to back to posted receives: all must be read while rank 1
 *                     computes, with every byte right, and with at most MOST interrupts (default: 2) in most of five
 *                     rounds
 *     quiet           short messages go back and forth, and long ones to a receiver that waits in MPI_Recv: rank 1 is
 *                     never interrupted */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

enum { MESSAGES = 64, BYTES = 64 << 10, ROUNDS = 5, TOO_SHORT = 5 };

static MPI_T_pvar_handle interrupts, events;
static unsigned char (*buffer)[BYTES];
static int rank;

static void compute(double seconds) {
    for (const double until = MPI_Wtime() + seconds; MPI_Wtime() < until;) {
    }
}

static unsigned char byte_of(int round, int message, int at) {
    return (unsigned char)(round * 31 + message * 7 + at % 251);
}

static void fill(int round) {
    for (int m = 0; m < MESSAGES; ++m) {
        for (int i = 0; i < BYTES; ++i) {
            buffer[m][i] = byte_of(round, m, i);
        }
    }
}

static void check(int round) {
    for (int m = 0; m < MESSAGES; ++m) {
        for (int i = 0; i < BYTES; ++i) {
            if (buffer[m][i] != byte_of(round, m, i)) {
                printf("message %d of round %d: byte %d is wrong\n", m, round, i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
}

/* Returns, on rank 1, the number of interrupts in a round. The round counts only if all messages arrived while rank 1
 * computed; otherwise it returns 0, and rank 1 computes longer from then on. */
static unsigned long long burst(int round) {
    static double enough = 0.2; /* seconds, for an idle machine */
    MPI_Request requests[MESSAGES];
    if (rank == 0) {
        fill(round);
        MPI_Barrier(MPI_COMM_WORLD);
        compute(0.01); /* until rank 1 has left the library */
        for (int m = 0; m < MESSAGES; ++m) {
            MPI_Isend(buffer[m], BYTES, MPI_BYTE, 1, m, MPI_COMM_WORLD, &requests[m]);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        return 0;
    }
    memset(buffer, 0, sizeof *buffer * MESSAGES);
    for (int m = 0; m < MESSAGES; ++m) {
        MPI_Irecv(buffer[m], BYTES, MPI_BYTE, 0, m, MPI_COMM_WORLD, &requests[m]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const unsigned long long before = value_of(interrupts), events_before = value_of(events);
    compute(enough);
    const unsigned long long took = value_of(interrupts) - before;
    const int all = value_of(events) - events_before >= MESSAGES;
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    check(round);
    if (!all) {
        enough *= 2;
    }
    return all ? took : 0;
}

static int bursts(unsigned long long most) {
    int counted = 0, good = 0, too_short = 0;
    for (int round = 0; counted < ROUNDS && too_short < TOO_SHORT; ++round) {
        const unsigned long long took = burst(round);
        if (rank == 1) {
            printf("round %d: %llu interrupts for %d messages%s\n", round, took, MESSAGES,
                   took > 0 ? "" : ", or rank 1 did not compute long enough");
            good += took > 0 && took <= most;
            counted += took > 0;
            too_short += took == 0;
        }
        MPI_Bcast(&counted, 1, MPI_INT, 1, MPI_COMM_WORLD);
        MPI_Bcast(&too_short, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        return 0;
    }
    printf("%d of %d rounds took no more than %llu interrupts; %llu events handled in all\n", good, ROUNDS, most,
           value_of(events));
    return good <= ROUNDS / 2;
}

static int quiet(void) {
    for (int i = 0; i < 2000; ++i) {
        if (rank == 0) {
            MPI_Send(buffer, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    for (int i = 0; i < 100; ++i) {
        if (rank == 0) {
            MPI_Send(buffer, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (rank == 1) {
        printf("%llu interrupts\n", value_of(interrupts));
    }
    return value_of(interrupts) != 0;
}

int main(int argc, char** argv) {
    int provided, failed;
    if (argc < 2 || argc > 3 || (strcmp(argv[1], "burst") != 0 && strcmp(argv[1], "quiet") != 0)) {
        fprintf(stderr, "usage: interrupts burst [MOST] | quiet\n");
        return 2;
    }
    buffer = malloc(sizeof *buffer * MESSAGES);
    memset(buffer, 0, sizeof *buffer * MESSAGES);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    interrupts = handle_of("pml_coop_interrupts");
    events = handle_of("pml_coop_events_handled");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    failed = strcmp(argv[1], "burst") == 0 ? bursts(argc > 2 ? strtoull(argv[2], NULL, 10) : 2) : quiet();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    free(buffer);
    return failed;
}
