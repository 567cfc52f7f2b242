/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks start programs in four ways, between long messages and during them: system(); fork() and exec(); fork()
 * with a child that lives on for a while and ends by _exit(); and the same by exit(), like a child whose program was
 * not found. Every byte of the messages is checked. Exit code 1 on failure. Argument: the number of rounds (default 8).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, WAYS = 4 };

static int rank;

static void give_up(const char* what) {
    printf("rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_of(int owner, int round, int at) {
    return (unsigned char)(owner * 101 + round * 31 + at % 251);
}

static void fill(unsigned char* buffer, int round) {
    for (int i = 0; i < BYTES; ++i) buffer[i] = byte_of(rank, round, i);
}

static void check(const unsigned char* buffer, int round) {
    for (int i = 0; i < BYTES; ++i)
        if (buffer[i] != byte_of(1 - rank, round, i)) give_up("a byte is wrong");
}

/* Returns 0 if no child was left running. */
static pid_t start(int way) {
    if (way == 0) {
        if (system("true") != 0) give_up("system() has failed");
        return 0;
    }
    const pid_t child = fork();
    if (child < 0) give_up("fork() has failed");
    if (child > 0) return child;
    if (way == 1) execlp("true", "true", (char*)NULL);
    else usleep(20000);
    if (way == 3) exit(0);
    _exit(way == 1);
}

static void end(pid_t child) {
    int status = 0;
    if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) give_up("a child has failed");
}

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? atoi(argv[1]) : 8;
    unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < rounds; ++round) {
        MPI_Request requests[2];
        memset(in, 0, BYTES);
        MPI_Irecv(in, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
        fill(out, round);
        const pid_t before = start(round % WAYS);
        MPI_Isend(out, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
        int done = 0;
        for (int i = 0; i < 100 && !done; ++i) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        const pid_t during = start((round + 1) % WAYS);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(in, round);
        end(before);
        end(during);
    }
    MPI_Finalize();
    if (rank == 0) printf("all right\n");
    free(out);
    free(in);
    return 0;
}
