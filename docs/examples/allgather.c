/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers blocks of 8 bytes, 4 KiB and 256 KiB from all ranks, ten times each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    const int bytes[] = {8, 4096, 262144};
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char* block = calloc(1, 262144);
    char* all = malloc((size_t)ranks * 262144);
    for (int i = 0; i < 30; ++i) {
        MPI_Allgather(block, bytes[i / 10], MPI_CHAR, all, bytes[i / 10], MPI_CHAR, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("done\n");
    }
    free(all);
    free(block);
    MPI_Finalize();
    return 0;
}
