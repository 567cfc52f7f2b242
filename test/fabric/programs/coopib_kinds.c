/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks exchange messages of 96 KiB, and some of 4 MiB, by calls of different kinds. Which of them go whole, with
 * the rails taking turns, and which are striped? Arguments: "get", "put" or "unmarked"; the number of rails. Prints
 * what it sees; exit code 1 if that does not follow the policy epc: messages of 96 KiB by MPI_Isend and MPI_Irecv go
 * whole, all others are striped (also those of nonblocking collectives). A reader knows the calls of both sides, a
 * writer only its own; messages without a known call are striped. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

enum { BYTES = 96 << 10, MESSAGES = 16, VERY_LARGE = 4 << 20, MOST_RAILS = 32 };

typedef struct {
    unsigned long long whole, striped, stripes[MOST_RAILS];
} Seen;

static MPI_T_pvar_handle of_whole, of_striped, of_stripes;
static char *out, *in;
static int rank, failed;

/* The sum over both ranks, because the protocol determines which of them reads or writes. */
static Seen look(void) {
    Seen here, all;
    read_values(of_whole, &here.whole);
    read_values(of_striped, &here.striped);
    read_values(of_stripes, here.stripes);
    MPI_Allreduce(&here, &all, sizeof here / sizeof here.whole, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void blocking(void) {
    for (int i = 0; i < MESSAGES; ++i)
        if (rank == 0) MPI_Send(out, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        else MPI_Recv(in, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void window(int bytes) {
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < MESSAGES; ++i)
        if (rank == 0) MPI_Isend(out + (size_t)i * bytes, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &requests[i]);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}
static void nonblocking(void) { window(BYTES); }
static void very_large(void) { window(VERY_LARGE); }

static void one_side_waits(void) {
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < MESSAGES; ++i)
        if (rank == 0) MPI_Isend(out, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[i]);
        else MPI_Recv(in, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static void allgather(void) {
    for (int i = 0; i < MESSAGES; ++i) MPI_Allgather(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, MPI_COMM_WORLD);
}

static void broadcast(void) {
    for (int i = 0; i < MESSAGES; ++i) MPI_Bcast(out, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void nonblocking_collective(void) {
    MPI_Request request;
    for (int i = 0; i < MESSAGES; ++i) {
        MPI_Iallgather(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

typedef enum {
    TURNS,  /* every operation goes whole, and each rail has its share of them */
    CUT,    /* every operation is striped */
    MOSTLY, /* several operations are outstanding: adaptive striping leaves one to a single rail if the others are busy
               enough */
} Way;

static void expect(const char* name, void (*communicate)(void), Way way, int rails) {
    const Seen before = look();
    communicate();
    const Seen after = look();
    const unsigned long long whole = after.whole - before.whole, striped = after.striped - before.striped;
    int good = way == TURNS ? whole == MESSAGES && striped == 0
               : way == CUT ? striped >= MESSAGES && whole == 0
                            : striped > whole;
    if (rank == 0) printf("%s: %llu whole, %llu in stripes;", name, whole, striped);
    for (int i = 0; i < rails; ++i) {
        const unsigned long long stripes = after.stripes[i] - before.stripes[i];
        if (way == TURNS && stripes != (unsigned long long)(MESSAGES / rails)) good = 0;
        if (rank == 0) printf(" %llu", stripes);
    }
    if (rank == 0) printf(" on the rails%s\n", good ? "" : ": not as expected");
    failed |= !good;
}

int main(int argc, char** argv) {
    int provided;
    const char* how = argc > 1 ? argv[1] : "unmarked";
    const int get = strcmp(how, "get") == 0, put = strcmp(how, "put") == 0, rails = argc > 2 ? atoi(argv[2]) : 1;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    of_whole = handle_of("btl_coopib_operations_whole");
    of_striped = handle_of("btl_coopib_operations_striped");
    of_stripes = handle_of_class("btl_coopib_rail_stripes", MPI_T_PVAR_CLASS_COUNTER, MOST_RAILS);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    out = calloc(MESSAGES, VERY_LARGE);
    in = calloc(MESSAGES, VERY_LARGE);
    MPI_Barrier(MPI_COMM_WORLD);

    expect("send and receive", blocking, CUT, rails);
    expect("isend and irecv", nonblocking, get || put ? TURNS : MOSTLY, rails);
    expect("isend and receive", one_side_waits, put ? TURNS : get ? CUT : MOSTLY, rails);
    expect("isend and irecv of 4 MiB", very_large, MOSTLY, rails);
    expect("allgather", allgather, CUT, rails);
    expect("broadcast", broadcast, CUT, rails);
    expect("iallgather", nonblocking_collective, CUT, rails);

    free(in);
    free(out);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return failed;
}
