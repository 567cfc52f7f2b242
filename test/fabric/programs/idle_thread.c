/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Does the thread that answers peers sleep while nobody connects? Counts how often this thread gave up its core during
 * COUNT round trips of 8 bytes between ranks 0 and 1.
 *
 *     idle_thread [COUNT]        counts (default: 20000), and fails if the thread woke more than once
 *     idle_thread 0 SECONDS      rank 0 waits for rank 1, which sleeps for SECONDS: time for HCAs to report events */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Voluntary context switches, from the thread's status file; -1: there is no such thread. */
static long switches(void) {
    long found = -1;
    DIR* tasks = opendir("/proc/self/task");
    struct dirent* task;
    while ((task = readdir(tasks)) != NULL) {
        char path[300], line[200];
        int ours = 0;
        long n;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE* status = fopen(path, "r");
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            if (strcmp(line, "Name:\tcoopib-connect\n") == 0) ours = 1;
            if (ours && sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1) found = n;
        }
        if (status != NULL) fclose(status);
    }
    closedir(tasks);
    return found;
}

static void round_trips(int rank, int count) {
    long word = 0;
    for (int i = 0; i < count; ++i) {
        if (rank == 0) MPI_Send(&word, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_LONG, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&word, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD);
    }
}

int main(int count, char** words) {
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    round_trips(rank, 1000);
    if (count > 2) {
        if (rank == 0) puts("started");
        fflush(stdout);
        if (rank == 1) sleep((unsigned)atoi(words[2]));
        round_trips(rank, 1000);
        MPI_Finalize();
        return 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const long before = switches();
    round_trips(rank, count > 1 ? atoi(words[1]) : 20000);
    const long during = switches() - before;
    printf("rank %d: the thread woke %ld times\n", rank, during);
    if (before < 0 || during > 1) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
