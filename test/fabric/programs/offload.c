/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages inside a node, of which HCAs copy a part (pml_coop_hca). Ranks 2k and 2k + 1 are a pair: each sends the
 * other messages of 64 KiB to 8 MiB, with blocking and nonblocking calls and with receives posted before and after, and
 * checks every byte.
 *
 *     offload WHAT [ROUNDS]    WHAT the HCAs must have done in the end (MPI_T counters of all ranks):
 *                                some       copied pieces, and refused none
 *                                none       copied nothing
 *                                refused    refused pieces
 *                                held       been found busy
 *                                used       copied pieces; others may have been refused
 *     offload leave [ROUNDS]   instead: rank 1 tests its receive for a while and then computes until rank 0 has sent
 *                              the message, which must not depend on rank 1
 *     offload rate [ROUNDS]    instead: all pairs send 8 MiB at once, one way, and rank 0 prints the sum in MB/s
 *
 * Exit code 1 if a byte is wrong or the counters differ. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

enum { ROUNDS = 6, GUARD = 64 };

static const int kSizes[] = {64 << 10, (1 << 20) - 1, 1 << 20, (1 << 20) + 4097, 3 << 20, 8 << 20};
enum { SIZES = sizeof kSizes / sizeof kSizes[0], LARGEST = 8 << 20 };

static unsigned char *out, *in;
static int rank, peer, wrong;

static unsigned char byte_of(int message, int from, size_t at) {
    const unsigned long long word = (at / 8 + 1) * 0x9e3779b97f4a7c15ull + (unsigned)message * 0xbf58476d1ce4e5b9ull +
                                    (unsigned)from;
    return (unsigned char)((word ^ word >> 29) >> 8 * (at % 8));
}

static void fill(int message, int bytes) {
    for (int i = 0; i < bytes; ++i) out[i] = byte_of(message, rank, (size_t)i);
    memset(in, 0x5a, (size_t)bytes + GUARD);
}

static void check(int message, int bytes) {
    for (int i = 0; i < bytes + GUARD; ++i) {
        const unsigned char expected = i < bytes ? byte_of(message, peer, (size_t)i) : 0x5a;
        if (in[i] == expected) continue;
        printf("rank %d, message %d of %d bytes: byte %d is %d instead of %d\n", rank, message, bytes, i, in[i],
               expected);
        wrong = 1;
        return;
    }
}

static void send_one(int message, int bytes) {
    fill(message, bytes);
    if (message % 2 == 0) MPI_Send(out, bytes, MPI_BYTE, peer, message, MPI_COMM_WORLD);
    else MPI_Ssend(out, bytes, MPI_BYTE, peer, message, MPI_COMM_WORLD);
}

static void receive_one(int message, int bytes) {
    fill(message, bytes);
    MPI_Recv(in, bytes, MPI_BYTE, peer, message, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(message, bytes);
}

static void exchange(int message, int bytes, int receive_first) {
    MPI_Request requests[2];
    fill(message, bytes);
    if (receive_first) MPI_Irecv(in, bytes, MPI_BYTE, peer, message, MPI_COMM_WORLD, &requests[0]);
    if (receive_first)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 0, NULL, 0, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(out, bytes, MPI_BYTE, peer, message, MPI_COMM_WORLD, &requests[1]);
    if (!receive_first) MPI_Irecv(in, bytes, MPI_BYTE, peer, message, MPI_COMM_WORLD, &requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(message, bytes);
}

static void round_of(int number) {
    for (int i = 0; i < SIZES; ++i) {
        const int message = 1 + number * 100 + i * 10, bytes = kSizes[i];
        for (int turn = 0; turn < 4; ++turn)
            if ((turn + rank) % 2 == 0) send_one(message + turn, bytes);
            else receive_one(message + turn, bytes);
        exchange(message + 4, bytes, 1);
        exchange(message + 5, bytes, 0);
    }
}

/* Measures from the common start until the last pair is done. */
static void print_rate(int rounds) {
    int ranks;
    double seconds = 0, longest;
    memset(out, 1, LARGEST);
    memset(in, 2, LARGEST);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = -3; i < rounds; ++i) {
        if (i == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            seconds = MPI_Wtime();
        }
        if (rank % 2 == 0) MPI_Send(out, LARGEST, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        else MPI_Recv(in, LARGEST, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    seconds = MPI_Wtime() - seconds;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.1f MB/s by %d pairs\n", (double)LARGEST * rounds * (ranks / 2) / longest * 1e-6, ranks / 2);
}

/* Every sender must complete its message although its receiver, after some progress with it, makes no more calls. */
static void leave_receives(int rounds) {
    volatile int* sent;
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    MPI_Win_allocate_shared(rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void*)&sent, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, (void*)&sent);
    if (rank == 0) *sent = 0;
    for (int message = 1000; message < 1010; ++message)
        exchange(message, LARGEST, 1); /* connect the loopback, and measure its rate */
    for (int number = 1; number <= rounds; ++number) {
        fill(number, LARGEST);
        if (rank == 0) {
            MPI_Request request;
            MPI_Isend(out, LARGEST, MPI_BYTE, 1, number, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            __sync_synchronize();
            *sent = number;
        } else {
            MPI_Request request;
            int done = 0;
            const double until = MPI_Wtime() + 0.002 * number;
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE); /* after this the message has arrived and matches at once */
            MPI_Irecv(in, LARGEST, MPI_BYTE, 0, number, MPI_COMM_WORLD, &request);
            while (!done && MPI_Wtime() < until) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            while (*sent < number) sched_yield();
            if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(number, LARGEST);
        }
    }
    MPI_Win_free(&window);
}

static int is_as_expected(const char* expected, const unsigned long long counts[3]) {
    if (strcmp(expected, "some") == 0) return counts[0] > 0 && counts[1] == 0;
    if (strcmp(expected, "none") == 0) return counts[0] == 0;
    if (strcmp(expected, "refused") == 0) return counts[1] > 0;
    if (strcmp(expected, "held") == 0) return counts[2] > 0;
    if (strcmp(expected, "used") == 0) return counts[0] > 0;
    return strcmp(expected, "rate") == 0 || strcmp(expected, "leave") == 0;
}

int main(int argc, char** argv) {
    static const char* const kNames[] = {"pml_coop_offloads", "pml_coop_offloads_refused", "pml_coop_offloads_held"};
    MPI_T_pvar_handle handles[3];
    unsigned long long mine[3], all[3];
    int provided, any_wrong = 0;
    const int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_Init_thread(&argc, &argv, getenv("OFFLOAD_THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = rank ^ 1;
    for (int i = 0; i < 3; ++i) handles[i] = handle_of(kNames[i]);
    out = malloc(LARGEST);
    in = malloc(LARGEST + GUARD);
    const int only_rate = argc > 1 && strcmp(argv[1], "rate") == 0, leaves = argc > 1 && strcmp(argv[1], "leave") == 0;
    if (only_rate) print_rate(rounds);
    if (leaves) leave_receives(rounds);
    for (int number = 0; !only_rate && !leaves && number < rounds; ++number) round_of(number);
    for (int i = 0; i < 3; ++i) mine[i] = value_of(handles[i]);
    MPI_Allreduce(mine, all, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &any_wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const int fits = argc > 1 && is_as_expected(argv[1], all);
    if (rank == 0)
        printf("offloads %llu, refused %llu, held %llu: %s\n", all[0], all[1], all[2],
               fits && !any_wrong ? "as expected" : "WRONG");
    free(out);
    free(in);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize(); /* before MPI_Finalize: otherwise Open MPI 4.1 closes vader twice */
    MPI_Finalize();
    return fits && !any_wrong ? 0 : 1;
}
