/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a connected peer costs rank 0: it talks to one rank after the other for the first time, and compares
 * its heap before and after. Argument: the permitted maximum in KiB. This includes Open MPI's data for a peer and the
 * queue pairs of the software subnet. The first two peers do not count, because they also allocate what all share. */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 64 << 10, FIRST = 3 };

static char buffer[BYTES];

static void talk(int rank, int peer) {
    for (int bytes = 1; bytes <= BYTES; bytes *= 256) {
        if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_CHAR, rank == 0 ? peer : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char** argv) {
    int rank, ranks, good = 1;
    const double most = argc > 1 ? atof(argv[1]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
        size_t before = 0;
        for (int peer = 1; peer < ranks; ++peer) {
            if (peer == FIRST) before = mallinfo2().uordblks;
            talk(rank, peer);
        }
        const double each = (double)(mallinfo2().uordblks - before) / (ranks - FIRST) / 1024;
        good = each > 0 && each <= most;
        printf("%.1f KiB of heap for each connected peer, over %d peers%s\n", each, ranks - FIRST,
               good ? "" : ": too much");
    } else {
        talk(rank, 0);
    }
    MPI_Finalize();
    return !good;
}
