/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes into the memory of the next rank, and counts all ranks in the memory of rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONG_BLOCK = 8192 }; /* doubles: 64 KiB */

int main(int argc, char** argv) {
    int rank, ranks;
    double* mine;
    double* block = calloc(LONG_BLOCK, sizeof(double));
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate((LONG_BLOCK + 2) * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    mine[0] = mine[1] = 0;

    /* Active target: everybody takes part in the fences. */
    const double number = rank;
    const int next = (rank + 1) % ranks;
    MPI_Win_fence(0, win);
    MPI_Put(&number, 1, MPI_DOUBLE, next, 1, 1, MPI_DOUBLE, win);
    MPI_Put(block, LONG_BLOCK, MPI_DOUBLE, next, 2, LONG_BLOCK, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);

    /* Passive target: as the target, rank 0 need not call anything. */
    const double one = 1;
    double before;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&one, &before, MPI_DOUBLE, 0, 0, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);

    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        printf("rank %.0f wrote here, %.0f ranks counted\n", mine[1], mine[0]);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    free(block);
    MPI_Finalize();
    return 0;
}
