/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls exit() without MPI_Finalize in the middle of its messages: leaver STATUS. Two ranks. The process then destroys
 * its threads, registered memory and static objects in an arbitrary order. */
#include <mpi.h>
#include <stdlib.h>

enum { LONG = 4 << 20, SOME = 20 };

int main(int argc, char** argv) {
    static char out[LONG], in[LONG];
    MPI_Request requests[2 * SOME];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < SOME; ++i)
        MPI_Sendrecv(out, 1 << i, MPI_BYTE, 1 - rank, 1, in, 1 << i, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    for (int i = 0; i < SOME; ++i) {
        MPI_Irecv(in, LONG, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(out, LONG >> i, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(SOME, requests, MPI_STATUSES_IGNORE);
    exit(argc > 1 ? atoi(argv[1]) : 0);
}
