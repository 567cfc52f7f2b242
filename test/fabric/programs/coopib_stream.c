/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 has many short messages outstanding at once; rank 1 receives them and checks their order and contents.
 * Argument: the number of messages that at least have to arrive ahead of an earlier one, by btl/coopib's own count.
 * Exit code 1 on failure. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "counter.h"

enum { MESSAGES = 8000, WORDS = 128 };

static int words[MESSAGES][WORDS];
static MPI_Request requests[MESSAGES];

int main(int argc, char** argv) {
    int provided, rank, wrong = 0;
    const unsigned long long least = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    unsigned long long early;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle of_early = handle_of("btl_coopib_out_of_order");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MESSAGES; ++i) {
        if (rank == 0) {
            for (int j = 0; j < WORDS; ++j) words[i][j] = i + j;
            MPI_Isend(words[i], WORDS, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
        } else if (rank == 1) {
            MPI_Irecv(words[i], WORDS, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
    }
    if (rank < 2) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; ++i)
        for (int j = 0; j < WORDS; ++j) wrong += rank == 1 && words[i][j] != i + j;
    early = value_of(of_early);
    if (rank == 1)
        printf("%d wrong; %llu messages of %d arrived ahead of an earlier one, expected at least %llu\n", wrong, early,
               MESSAGES, least);
    wrong += rank == 1 && early < least;
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize(); /* before MPI_Finalize: otherwise Open MPI 4.1 closes vader twice */
    MPI_Finalize();
    return wrong != 0;
}
