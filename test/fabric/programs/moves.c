/* SPDX-License-Identifier: BSD-3-Clause */
/* Does a long message arrive while its receiver computes, if the receiver has called MPI in an unusual way before? Two
 * ranks of one node with pml_coop_async=interrupt; exit code 1 if a message does not move.
 *
 *     moves backlog FILE     100 short messages and the request of a long one are there when the receive is posted
 *     moves get_status FILE  the receiver polls for an earlier message with MPI_Request_get_status, which does not
 *                            show that polling ended
 *     moves flush FILE       likewise with MPI_Win_flush
 *
 * FILE is an empty file through which the ranks synchronise without MPI. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counter.h"

enum { SHORT = 100, BYTES = 1 << 20, LIMIT = 20, ROUNDS = 400, ENOUGH = 3, WINDOW = 1 << 16 };

static int rank;
static volatile int* stage; /* of both ranks; it only grows */
static unsigned char *first, *second;
static MPI_T_pvar_handle left;

static unsigned char byte_of(int seed, int at) { return (unsigned char)(1 + (seed * 31 + at) % 255); } /* never 0 */

static void fill(unsigned char* buffer, int seed) {
    for (int i = 0; i < BYTES; ++i) buffer[i] = byte_of(seed, i);
}

static void check(const unsigned char* buffer, int seed) {
    for (int i = 0; i < BYTES; ++i)
        if (buffer[i] != byte_of(seed, i)) {
            printf("message %d: byte %d is wrong\n", seed, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static void reach(int next) { __atomic_store_n(stage, next, __ATOMIC_RELEASE); }

static void wait_for(int next) {
    for (double end = MPI_Wtime() + LIMIT; __atomic_load_n(stage, __ATOMIC_ACQUIRE) < next; usleep(100))
        if (MPI_Wtime() > end) {
            printf("rank %d: the other one has not reached stage %d\n", rank, next);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

/* Computes until the message has arrived. */
static void compute_until_moved(const unsigned char* buffer, const char* what) {
    const volatile unsigned char* last = buffer + BYTES - 1;
    for (double end = MPI_Wtime() + LIMIT; *last == 0;)
        if (MPI_Wtime() > end) {
            printf("%s: the message has not moved while its receiver computed\n", what);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static void backlog(void) {
    MPI_Request request;
    char byte = 0;
    /* The interrupt of this message leaves rank 1 with nothing expected, so that no interrupts are requested when the
     * backlog arrives. */
    if (rank == 0) MPI_Send(second, BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    else MPI_Recv(second, BYTES, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) {
        fill(first, 1);
        usleep(50000);
        for (int i = 0; i < SHORT; ++i) MPI_Send(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Isend(first, BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
        usleep(10000);
        reach(1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    memset(first, 0, BYTES);
    wait_for(1);
    MPI_Irecv(first, BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
    compute_until_moved(first, "backlog");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(first, 1);
    for (int i = 0; i < SHORT; ++i) MPI_Recv(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void poll_by_get_status(MPI_Request request, MPI_Win win) {
    (void)win;
    for (int done = 0; !done;) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
}

static void poll_by_flush(MPI_Request request, MPI_Win win) {
    unsigned char byte = 0;
    (void)request;
    for (const volatile unsigned char* last = first + BYTES - 1; *last == 0;) {
        MPI_Put(&byte, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win);
        MPI_Win_flush(0, win);
    }
}

/* Repeats until interrupts were left to the polling receiver a few times, which is the case under test. */
static void polling(const char* what, void (*poll)(MPI_Request, MPI_Win), MPI_Win win) {
    int round = 0, enough = 0;
    unsigned long long times = 0;
    for (; round < ROUNDS && !enough; ++round) {
        MPI_Request requests[2];
        if (rank == 0) {
            fill(first, round);
            fill(second, round + 7);
            wait_for(4 * round + 1);
            MPI_Send(first, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            wait_for(4 * round + 2);
            MPI_Send(second, BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        } else {
            memset(first, 0, BYTES);
            memset(second, 0, BYTES);
            MPI_Irecv(first, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(second, BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
            reach(4 * round + 1);
            const unsigned long long before = value_of(left);
            poll(requests[0], win);
            times += value_of(left) - before;
            reach(4 * round + 2);
            compute_until_moved(second, what);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            check(first, round);
            check(second, round + 7);
            enough = times >= ENOUGH;
        }
        MPI_Bcast(&enough, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    if (rank == 0) return;
    printf("%s: %d rounds, %llu interrupts were left to a poll\n", what, round, times);
    if (times == 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
    int provided, file;
    MPI_Win win = MPI_WIN_NULL;
    void* memory = NULL;
    if (argc != 3 || (file = open(argv[2], O_RDWR)) < 0 || ftruncate(file, sizeof *stage) != 0) {
        fprintf(stderr, "usage: moves backlog|get_status|flush FILE\n");
        return 2;
    }
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    first = calloc(1, BYTES);
    second = calloc(1, BYTES);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    left = handle_of("pml_coop_interrupts_left");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(argv[1], "flush") == 0) {
        MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        MPI_Win_lock_all(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "backlog") == 0) backlog();
    else polling(argv[1], win == MPI_WIN_NULL ? poll_by_get_status : poll_by_flush, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (win != MPI_WIN_NULL) {
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
