/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks, one window: put, get, fetch-and-add, compare-and-swap, each on the other's memory and on the own memory
 * while the other rank does the same; every result is checked. Exit code 1 if one is wrong. Argument: the number of
 * rounds (default 20). */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 18, MOST_WORDS = WORDS / 2, COUNTER = 0, LOCK = 1, FIRST = 8 };

static int rank, failed;
static uint64_t* window;
static MPI_Win win;

static uint64_t word(int owner, int round, int i) {
    return ((uint64_t)owner << 60) ^ ((uint64_t)round << 40) ^ (uint64_t)i * 2654435761u;
}

static void wrong(const char* what, int round, uint64_t is, uint64_t should) {
    if (failed++ < 10)
        printf("rank %d, round %d: %s: %llx, not %llx\n", rank, round, what, (unsigned long long)is,
               (unsigned long long)should);
}

static void check_words(const char* what, int round, const uint64_t* words, int owner, int count) {
    for (int i = 0; i < count; ++i)
        if (words[i] != word(owner, round, i)) {
            wrong(what, round, words[i], word(owner, round, i));
            return;
        }
}

/* From one word to 1 MiB; each size occurs at least once. */
static int words_of(int round) { return 1 << (round % 18); }

static void transfers(int round, uint64_t* buffer) {
    const int other = 1 - rank, count = words_of(round);
    for (int i = 0; i < count; ++i) buffer[i] = word(rank, round, i);
    MPI_Win_lock_all(0, win);
    MPI_Put(buffer, count, MPI_UINT64_T, other, FIRST, count, MPI_UINT64_T, win);
    MPI_Win_flush(other, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    check_words("put by the other", round, window + FIRST, other, count);
    /* Get back what this rank has put there. */
    memset(buffer, 0, (size_t)count * sizeof *buffer);
    MPI_Get(buffer, count, MPI_UINT64_T, other, FIRST, count, MPI_UINT64_T, win);
    MPI_Win_flush(other, win);
    check_words("got back", round, buffer, rank, count);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All ranks increment one counter: each value must be returned once, in increasing order. */
static void counting(int times) {
    const uint64_t one = 1;
    uint64_t got = 0, last = 0;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < times; ++i) {
        MPI_Fetch_and_op(&one, &got, MPI_UINT64_T, 0, COUNTER, MPI_SUM, win);
        MPI_Win_flush(0, win);
        if (i > 0 && got <= last) wrong("fetch and add", i, got, last + 1);
        last = got;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Fetch_and_op(&one, &got, MPI_UINT64_T, 0, COUNTER, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    if (got != (uint64_t)times * 2) wrong("sum of what was added", times, got, (uint64_t)times * 2);
    MPI_Win_unlock_all(win);
}

/* Both ranks compete for a lock that protects a word which is read and written without atomics. */
static void locking(int times) {
    const uint64_t mine = (uint64_t)rank + 1, nobody = 0;
    uint64_t was, value;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < times; ++i) {
        do {
            MPI_Compare_and_swap(&mine, &nobody, &was, MPI_UINT64_T, 1, LOCK, win);
            MPI_Win_flush(1, win);
        } while (was != nobody);
        MPI_Get(&value, 1, MPI_UINT64_T, 1, FIRST, 1, MPI_UINT64_T, win);
        MPI_Win_flush(1, win);
        ++value;
        MPI_Put(&value, 1, MPI_UINT64_T, 1, FIRST, 1, MPI_UINT64_T, win);
        MPI_Win_flush(1, win);
        MPI_Compare_and_swap(&nobody, &mine, &was, MPI_UINT64_T, 1, LOCK, win);
        MPI_Win_flush(1, win);
        if (was != mine) wrong("holder of the lock", i, was, mine);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get(&value, 1, MPI_UINT64_T, 1, FIRST, 1, MPI_UINT64_T, win);
    MPI_Win_flush(1, win);
    if (value != (uint64_t)times * 2) wrong("count under the lock", times, value, (uint64_t)times * 2);
    MPI_Win_unlock_all(win);
}

int main(int argc, char** argv) {
    int size, all = 0;
    const int rounds = argc > 1 ? atoi(argv[1]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        if (rank == 0) printf("two ranks are needed, not %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    window = calloc(WORDS, sizeof *window);
    uint64_t* buffer = calloc(MOST_WORDS, sizeof *buffer);
    MPI_Win_create(window, WORDS * sizeof *window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int round = 0; round < rounds; ++round) transfers(round, buffer);
    counting(rounds * 10);
    MPI_Barrier(MPI_COMM_WORLD);
    window[FIRST] = 0;
    MPI_Win_fence(0, win);
    locking(rounds);
    MPI_Win_free(&win);
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", all == 0 ? "one-sided: all right" : "one-sided: wrong");
    MPI_Finalize();
    return all != 0;
}
