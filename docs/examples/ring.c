/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rank hands messages of growing size to the next one, round the ring. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    static char out[1 << 20], in[1 << 20];
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int bytes = 1; bytes <= (int)sizeof out; bytes *= 4) {
        MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % ranks, 0, in, bytes, MPI_CHAR, (rank + ranks - 1) % ranks, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        printf("done\n");
    }
    MPI_Finalize();
    return 0;
}
