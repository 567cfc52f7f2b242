/* SPDX-License-Identifier: BSD-3-Clause */
/* A process starts another one, which ends soon, and computes, and goes on for SECONDS with calls of MPI.
 *
 *     leaving SECONDS
 *
 * The last messages in both directions are short: nothing of the processes waits for their acknowledgements. Prints 'leaving: all
 * right' at the end. Exit code 1 on failure. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MESSAGES = 20 };

static void check(int right, const char* what) {
    if (right) return;
    fprintf(stderr, "leaving: FAILED: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void exchange(MPI_Comm other) {
    for (int i = 0; i < MESSAGES; ++i) {
        int number = -1;
        MPI_Send(&i, 1, MPI_INT, 0, 7, other);
        MPI_Recv(&number, 1, MPI_INT, 0, 7, other, MPI_STATUS_IGNORE);
        check(number == i, "a message of the other process is wrong");
    }
}

int main(int argc, char** argv) {
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&other);
    if (other != MPI_COMM_NULL) {
        exchange(other);
        MPI_Comm_disconnect(&other);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE);
    exchange(other);
    MPI_Comm_disconnect(&other);
    sleep(2); /* it has ended before this process looks at its last messages again */
    for (const double end = MPI_Wtime() + atof(argv[1]); MPI_Wtime() < end;) {
        int there = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        check(!there, "a message that nobody sent");
    }
    printf("leaving: all right\n");
    MPI_Finalize();
    return 0;
}
