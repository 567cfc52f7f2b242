/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First contact with peers that are outside of MPI. All ranks but 0 stay outside of MPI until rank 0 has sent to each
 * of them. Each of these sends is the first to its peer and needs a connection, so the program ends only if peers
 * outside of MPI can be connected.
 *
 *     first_contact FILE LEVEL sleep|spin     LEVEL: single funneled serialized multiple
 *     first_contact FILE LEVEL stop SECONDS   rank 1 stops itself (SIGSTOP) and continues after that many seconds
 *
 * The program creates FILE, through which the ranks communicate without MPI. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 100, MOST_PEERS = 64 };

struct shared {
    volatile int told;    /* set by rank 0: everything has been sent */
    volatile int outside; /* ranks that have left MPI */
    volatile pid_t stopped;
};
static struct shared* shared;

static struct shared* open_shared(const char* path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared)) != 0) exit(3);
    void* at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) exit(3);
    return at;
}

static int level_of(const char* word) {
    if (strcmp(word, "funneled") == 0) return MPI_THREAD_FUNNELED;
    if (strcmp(word, "serialized") == 0) return MPI_THREAD_SERIALIZED;
    if (strcmp(word, "multiple") == 0) return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_SINGLE;
}

static void wait_outside(const char* how) {
    __sync_fetch_and_add(&shared->outside, 1);
    if (strcmp(how, "stop") == 0) {
        shared->stopped = getpid();
        raise(SIGSTOP);
    }
    while (!shared->told)
        if (strcmp(how, "spin") != 0) usleep(1000);
}

static void wake_the_stopped(int signal) {
    (void)signal;
    kill(shared->stopped, SIGCONT);
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void contact(int size, const char* how, int seconds) {
    char message[BYTES];
    double times[MOST_PEERS];
    while (shared->outside < size - 1) usleep(1000);
    if (strcmp(how, "stop") == 0) {
        while (shared->stopped == 0) usleep(1000);
        usleep(100000); /* until rank 1 has stopped */
        signal(SIGALRM, wake_the_stopped);
        alarm((unsigned)seconds);
    }
    for (int peer = 1; peer < size; ++peer) {
        MPI_Request request;
        memset(message, peer, sizeof message);
        const double start = MPI_Wtime();
        MPI_Isend(message, BYTES, MPI_CHAR, peer, 5, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        times[peer - 1] = (MPI_Wtime() - start) * 1e3;
    }
    shared->told = 1;
    qsort(times, (size_t)(size - 1), sizeof times[0], ascending);
    printf("first contact: median %.2f ms, longest %.2f ms, %d peers\n", times[(size - 1) / 2], times[size - 2],
           size - 1);
    for (int peer = 1; peer < size; ++peer) MPI_Recv(message, 1, MPI_CHAR, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void be_contacted(int rank, const char* how) {
    char message[BYTES];
    wait_outside(how);
    MPI_Recv(message, BYTES, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < BYTES; ++i)
        if (message[i] != (char)rank) {
            printf("rank %d: byte %d is %d\n", rank, i, message[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_Send(message, 1, MPI_CHAR, 0, 6, MPI_COMM_WORLD);
}

int main(int count, char** words) {
    int provided, rank, size;
    if (count < 4) return 2;
    MPI_Init_thread(&count, &words, level_of(words[2]), &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    shared = open_shared(words[1]);
    if (rank == 0) contact(size, words[3], count > 4 ? atoi(words[4]) : 0);
    else be_contacted(rank, words[3]);
    if (rank == 0) unlink(words[1]);
    MPI_Finalize();
    if (rank == 0) puts("first contact: all right");
    return 0;
}
