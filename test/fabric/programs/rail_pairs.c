/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rail_pairs MESSAGES: two hosts with equal numbers of ranks, in blocks. Each rank of the first host sends messages of
 * 1 MiB to each rank of the second, one pair after the other, with no other traffic. Prints the rate of each pair.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 1 << 20, WINDOW = 4, TAG = 7 };

static char buffers[WINDOW][BYTES];
static int rank;

/* Ranks outside the pair sleep, because the machine has fewer cores than there are ranks. */
static void wait_for_all(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) usleep(500);
}

static void move(int count, int from, int to) {
    MPI_Request requests[WINDOW];
    char end = 0;
    for (int i = 0; i < WINDOW; ++i) requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < count; ++i) {
        MPI_Wait(&requests[i % WINDOW], MPI_STATUS_IGNORE);
        if (rank == from)
            MPI_Isend(buffers[i % WINDOW], BYTES, MPI_CHAR, to, TAG, MPI_COMM_WORLD, &requests[i % WINDOW]);
        if (rank == to)
            MPI_Irecv(buffers[i % WINDOW], BYTES, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &requests[i % WINDOW]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == to) MPI_Send(&end, 1, MPI_CHAR, from, TAG, MPI_COMM_WORLD);
    if (rank == from) MPI_Recv(&end, 1, MPI_CHAR, to, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int count = argc == 2 ? atoi(argv[1]) : 0;
    for (int from = 0; from < ranks / 2; ++from)
        for (int to = ranks / 2; to < ranks; ++to) {
            const double start_s = MPI_Wtime();
            if (rank == from || rank == to) move(count, from, to);
            if (rank == from)
                printf("local ranks %d and %d: %.1f MB/s\n", from, to - ranks / 2,
                       1e-6 * BYTES * count / (MPI_Wtime() - start_s));
            fflush(stdout);
            wait_for_all();
        }
    MPI_Finalize();
    return count <= 0;
}
