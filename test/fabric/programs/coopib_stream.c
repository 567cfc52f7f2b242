/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 has many short messages under way at once, rank 1 receives them, in order and with what was sent in them. */
#include <mpi.h>
#include <stdio.h>

enum { MESSAGES = 8000, WORDS = 128 };

static int words[MESSAGES][WORDS];
static MPI_Request requests[MESSAGES];

int main(int argc, char **argv)
{
    int rank, wrong = 0;
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
    if (rank == 1) printf("%d wrong\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
