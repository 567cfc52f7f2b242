/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks exchange messages, then rank 0 sends many. Are they written into rings, and are the credits returned?
 * Arguments: 'on' if messages must be written into rings, 'off' if none may be written into a ring, or 'not' if only
 * MPI's own messages may be; then the number of bytes of each message (default: 160). Exit code 1 if a variable of
 * btl/coopib is wrong. The handles are made before MPI_Init, because a handle counts from its creation; MPI_T_finalize
 * comes before MPI_Finalize for the reason given in coopib_pvars.c. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

enum { TURNS = 400, STREAM = 2000, MOST = 4096 };
static int ints = 40;

static void send_number(int number, int peer) {
    int out[MOST] = {0};
    out[0] = out[ints - 1] = number;
    MPI_Send(out, ints, MPI_INT, peer, 0, MPI_COMM_WORLD);
}

static int receives_number(int number, int peer) {
    int in[MOST] = {0};
    MPI_Recv(in, ints, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return in[0] == number && in[ints - 1] == number;
}

int main(int argc, char** argv) {
    int provided, rank, good = 1;
    const int on = argc > 1 && strcmp(argv[1], "on") == 0;
    const unsigned long long most = argc > 1 && strcmp(argv[1], "not") == 0 ? TURNS / 4 : 1;
    if (argc > 2) ints = atoi(argv[2]) / (int)sizeof(int);
    if (ints < 1 || ints > MOST) return 2;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle of_written = handle_of("btl_coopib_ring_messages"),
                      of_credits = handle_of("btl_coopib_credit_messages");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TURNS; ++i) {
        if (rank == 0) send_number(i, 1);
        good &= receives_number(i, 1 - rank);
        if (rank == 1) send_number(i, 0);
    }
    for (int i = 0; i < STREAM; ++i) {
        if (rank == 0) send_number(i, 1);
        else good &= receives_number(i, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const unsigned long long written = value_of(of_written), credits = value_of(of_credits);
    printf("rank %d: %llu messages in the ring of the peer, %llu messages with nothing but credits\n", rank, written,
           credits);
    if (!good) printf("rank %d: a message is not as it was sent\n", rank);
    const int as_expected = on ? written >= TURNS / 2 && (rank == 0 || credits > 0) : written < most;
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return !good || !as_expected;
}
