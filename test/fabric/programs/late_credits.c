/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 sends more short messages than its first credits permit. Rank 1 sends no message that could return credits.
 * It is inside MPI while the two connect, and then outside until every message that the first credits permit has
 * arrived. Arguments: milliseconds inside, outside. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MESSAGES = 200 };

int main(int argc, char** argv) {
    int rank, values[MESSAGES], there;
    MPI_Request requests[MESSAGES];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < MESSAGES; ++i) values[i] = i;
    if (rank == 0) {
        for (int i = 0; i < MESSAGES; ++i) MPI_Isend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    } else {
        const double end = MPI_Wtime() + atof(argv[1]) / 1000;
        while (MPI_Wtime() < end) MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        usleep(1000 * (unsigned)atoi(argv[2]));
        for (int i = 0; i < MESSAGES; ++i) {
            int value = -1;
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (value != i) MPI_Abort(MPI_COMM_WORLD, 1);
        }
        printf("all %d messages are here\n", MESSAGES);
    }
    MPI_Finalize();
    return 0;
}
