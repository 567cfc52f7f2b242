/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks exchange messages while rails fail. Each message carries its number, and every byte of it is checked, so a
 * lost, repeated, overtaken or damaged message is found.
 *
 *     failover KIND SECONDS BYTES...
 *     failover KIND FILE BYTES...
 *
 * FILE is a path that begins with '/': rank 0 goes on until the file exists and as many rails are up as at the start.
 * If they are not all up after 60 seconds, it is a failure.
 *
 * A length is at least 16. KIND:
 *       both     both ranks send, a window of messages at a time, of the given lengths in turn
 *       stream   only rank 0 sends
 *       wide     the same, 500 messages at a time: more than a queue pair has receive buffers
 *       one      one message at a time, there and back
 *       put, get, fence: rank 0 writes into a window of rank 1, or reads from it; fence: both write, with fences
 *       epoch    rank 0 writes into a window of rank 1 in epochs of post, start, complete and wait
 *       watch    the same, and rank 1 watches its memory for late writes, for WATCH_MS after each epoch
 *       add      both ranks add to a counter in the memory of rank 1
 *       compute  two messages from rank 0 to 1; before the end of the first one rank 0 computes for SECONDS, before that of the
 *                second one rank 1. The other rank waits
 *       crowd    both ranks start 500 messages at once, and rank 0 computes for SECONDS before it waits for them
 * After it has checked messages of 'both' and 'epoch', a rank changes its memory, and no late write may change it back.
 * Rank 0 prints 'started', makes the file COOP_TEST_STARTED, if this is set, and prints at the end the bytes per second of each
 * tenth of a second. Exit code 1 on failure. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counter.h"

enum { WINDOW = 16, WIDE_WINDOW = 500, MOST_SIZES = 8, TENTHS = 3000, WATCH_MS = 40 };

static int rank, kinds;
static size_t sizes[MOST_SIZES], most;
static double seconds, begun;
static uint64_t tenths[TENTHS];

static void fail(const char* what, uint64_t number, size_t at, uint64_t got, uint64_t wanted) {
    fprintf(stderr, "failover: FAILED: rank %d: %s: message %llu, word %zu: %llx instead of %llx\n", rank, what,
            (unsigned long long)number, at, (unsigned long long)got, (unsigned long long)wanted);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint64_t word(uint64_t number, size_t i) { return (number + 1) * 0x9E3779B97F4A7C15u + i * 0xBF58476D1CE4E5B9u; }

/* Word 0 is the number, word 1 says whether this is the last round. */
static void fill(uint64_t* words, size_t bytes, uint64_t number, uint64_t last) {
    const size_t count = bytes / 8;
    for (size_t i = 2; i < count; ++i) words[i] = word(number, i);
    words[0] = number;
    words[1] = last;
}

static uint64_t check(const char* what, const uint64_t* words, size_t bytes, uint64_t number) {
    const size_t count = bytes / 8;
    if (words[0] != number) fail(what, number, 0, words[0], number);
    for (size_t i = 2; i < count; ++i)
        if (words[i] != word(number, i)) fail(what, number, i, words[i], word(number, i));
    return words[1];
}

/* The program has changed the memory; nobody else may. */
static const uint64_t own = 0xA5A5A5A5A5A5A5A5u;
static void change(uint64_t* words, size_t bytes) {
    for (size_t i = 0; i < bytes / 8; ++i) words[i] = own;
}
static void check_own(const uint64_t* words, size_t bytes, uint64_t number) {
    for (size_t i = 0; i < bytes / 8; ++i)
        if (words[i] != own) fail("a late write", number, i, words[i], own);
}

static void count_bytes(size_t bytes) {
    const double now = MPI_Wtime() - begun;
    const int tenth = (int)(now * 10);
    if (tenth < TENTHS) tenths[tenth] += bytes;
}

static const char* file;     /* null: the time decides */
static MPI_T_pvar_handle up; /* the rails that work; this and the rest are valid if there is a file */
static unsigned long long most_up;
static double ended; /* when the file was seen first; 0: it was not */

static int are_rails_back(void) {
    const unsigned long long now = value_of(up);
    if (now < most_up && MPI_Wtime() - ended > 60) fail("rails stay away", 0, 0, now, most_up);
    return now >= most_up;
}

static int is_last(void) {
    if (file == NULL) return MPI_Wtime() - begun >= seconds;
    if (ended == 0 && access(file, F_OK) == 0) ended = MPI_Wtime();
    return ended != 0 && are_rails_back();
}

static uint64_t exchange(int back, int window) {
    static uint64_t* out[WIDE_WINDOW];
    static uint64_t* in[WIDE_WINDOW];
    MPI_Request requests[2 * WIDE_WINDOW];
    const uint64_t step = (uint64_t)window;
    uint64_t number = 0, last = 0;
    for (int i = 0; i < window; ++i) {
        out[i] = malloc(most);
        in[i] = malloc(most);
        if (back) change(in[i], most);
    }
    while (!last) {
        const uint64_t mine = rank == 0 && is_last();
        int count = 0;
        size_t bytes = 0;
        for (int i = 0; i < window; ++i) {
            const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
            if (back)
                check_own(in[i], number == 0 ? most : sizes[(number - step + (uint64_t)i) % (uint64_t)kinds], number);
            if (rank == 1 || back)
                MPI_Irecv(in[i], (int)size, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[count++]);
        }
        for (int i = 0; i < window; ++i) {
            const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
            if (rank == 1 && !back) break;
            fill(out[i], size, number + (uint64_t)i, mine);
            MPI_Isend(out[i], (int)size, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[count++]);
            bytes += size;
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        last = mine;
        for (int i = 0; i < window && (rank == 1 || back); ++i) {
            const uint64_t theirs = check("a message", in[i], sizes[(number + (uint64_t)i) % (uint64_t)kinds],
                                          number + (uint64_t)i);
            if (rank == 1) last |= theirs;
            if (back) change(in[i], sizes[(number + (uint64_t)i) % (uint64_t)kinds]);
        }
        number += step;
        count_bytes(bytes);
    }
    return number;
}

static uint64_t one_at_a_time(void) {
    uint64_t *out = malloc(most), *in = malloc(most), number = 0, last = 0;
    while (!last) {
        const size_t size = sizes[number % (uint64_t)kinds];
        last = rank == 0 && is_last();
        if (rank == 0) {
            fill(out, size, number, last);
            MPI_Send(out, (int)size, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
        }
        MPI_Recv(in, (int)size, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const uint64_t theirs = check("an answer", in, size, number);
        if (rank == 1) {
            last = theirs;
            fill(out, size, number, last);
            MPI_Send(out, (int)size, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
        }
        ++number;
        count_bytes(size);
    }
    return number;
}

/* Rank 0 fills or reads the window of rank 1, which looks at it after each round. */
static uint64_t one_sided(int puts) {
    uint64_t *window, *local = malloc(most * WINDOW), number = 0;
    int last = 0;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)(most * WINDOW), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_lock_all(0, win);
    while (!last) {
        size_t bytes = 0;
        last = rank == 0 && is_last();
        MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < WINDOW; ++i) {
            const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
            uint64_t* const mine = local + (size_t)i * most / 8;
            if (!puts && rank == 1) fill(window + (size_t)i * most / 8, size, number + (uint64_t)i, 0);
            if (puts && rank == 0) fill(mine, size, number + (uint64_t)i, 0);
            if (rank == 0) memset(mine, 0xff, puts ? 0 : size);
            bytes += size;
        }
        MPI_Win_sync(win);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < WINDOW && rank == 0; ++i) {
            const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
            uint64_t* const mine = local + (size_t)i * most / 8;
            if (puts) MPI_Put(mine, (int)size, MPI_BYTE, 1, (MPI_Aint)((size_t)i * most), (int)size, MPI_BYTE, win);
            else MPI_Get(mine, (int)size, MPI_BYTE, 1, (MPI_Aint)((size_t)i * most), (int)size, MPI_BYTE, win);
        }
        if (rank == 0) MPI_Win_flush(1, win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(win);
        for (int i = 0; i < WINDOW; ++i) {
            const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
            if (puts && rank == 1) check("a put", window + (size_t)i * most / 8, size, number + (uint64_t)i);
            if (!puts && rank == 0) check("a get", local + (size_t)i * most / 8, size, number + (uint64_t)i);
        }
        number += WINDOW;
        count_bytes(bytes);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return number;
}

static uint64_t fences(void) {
    uint64_t *window, *local = malloc(most), number = 0;
    int last = 0;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_fence(0, win);
    while (!last) {
        const size_t size = sizes[number % (uint64_t)kinds];
        last = rank == 0 && is_last();
        MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
        fill(local, size, number, 0);
        MPI_Win_fence(0, win);
        MPI_Put(local, (int)size, MPI_BYTE, 1 - rank, 0, (int)size, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        check("a put between fences", window, size, number++);
        count_bytes(size);
    }
    MPI_Win_free(&win);
    return number;
}

/* Rank 1 looks at its memory as soon as its epoch is over, and changes it. */
static uint64_t epochs(int watch) {
    uint64_t *window, *local = malloc(most * WINDOW), number = 0;
    int last = 0, other = 1 - rank;
    MPI_Win win;
    MPI_Group all, peer;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &peer);
    MPI_Win_allocate((MPI_Aint)(most * WINDOW), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    change(window, most * WINDOW);
    while (!last) {
        size_t bytes = 0;
        last = rank == 0 && is_last();
        MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (rank == 1) {
            check_own(window, most * WINDOW, number);
            MPI_Win_post(peer, 0, win);
            MPI_Win_wait(win);
        } else {
            for (int i = 0; i < WINDOW; ++i)
                fill(local + (size_t)i * most / 8, sizes[(number + (uint64_t)i) % (uint64_t)kinds],
                     number + (uint64_t)i, 0);
            MPI_Win_start(peer, 0, win);
            for (int i = 0; i < WINDOW; ++i) {
                const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
                MPI_Put(local + (size_t)i * most / 8, (int)size, MPI_BYTE, 1, (MPI_Aint)((size_t)i * most), (int)size,
                        MPI_BYTE, win);
            }
            MPI_Win_complete(win);
        }
        for (int i = 0; i < WINDOW; ++i) {
            const size_t size = sizes[(number + (uint64_t)i) % (uint64_t)kinds];
            if (rank == 1) check("a put of an epoch", window + (size_t)i * most / 8, size, number + (uint64_t)i);
            bytes += size;
        }
        if (rank == 1) change(window, most * WINDOW);
        if (rank == 1 && watch) usleep(WATCH_MS * 1000);
        number += WINDOW;
        count_bytes(bytes);
    }
    if (rank == 1) check_own(window, most * WINDOW, number);
    MPI_Win_free(&win);
    MPI_Group_free(&peer);
    MPI_Group_free(&all);
    return number;
}

static uint64_t additions(void) {
    uint64_t *counter, number = 0, sum = 0, one = 1, before = 0, all = 0;
    int last = 0;
    MPI_Win win;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
    *counter = 0;
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (; !last; ++number) {
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 1, 0, MPI_SUM, win);
        MPI_Win_flush(1, win);
        count_bytes(8);
        last = is_last();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&number, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Fetch_and_op(&one, &sum, MPI_UINT64_T, 1, 0, MPI_NO_OP, win);
    MPI_Win_flush(1, win);
    if (sum != all) fail("the sum", number, 0, sum, all);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return number;
}

/* A rank that computes does not call MPI. */
static uint64_t computations(void) {
    uint64_t number = 0;
    uint64_t* const message = malloc(most);
    for (; number < 2; ++number) {
        MPI_Request request;
        if (rank == 0) {
            fill(message, most, number, 0);
            MPI_Isend(message, (int)most, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &request);
        } else if (number == 0) {
            MPI_Irecv(message, (int)most, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request);
        }
        if (rank == (int)number) usleep((useconds_t)(seconds * 1e6));
        if (rank == 1 && number == 1) MPI_Irecv(message, (int)most, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 1) check("a message of a rank that computes", message, most, number);
        count_bytes(most);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(message);
    return number;
}

static uint64_t crowd(void) {
    static uint64_t* out[WIDE_WINDOW];
    static uint64_t* in[WIDE_WINDOW];
    MPI_Request requests[2 * WIDE_WINDOW];
    for (int i = 0; i < WIDE_WINDOW; ++i) {
        in[i] = malloc(most);
        MPI_Irecv(in[i], (int)most, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < WIDE_WINDOW; ++i) {
        out[i] = malloc(most);
        fill(out[i], most, (uint64_t)i, 0);
        MPI_Isend(out[i], (int)most, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[WIDE_WINDOW + i]);
    }
    if (rank == 0) usleep((useconds_t)(seconds * 1e6));
    MPI_Waitall(2 * WIDE_WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WIDE_WINDOW; ++i) check("a message of many", in[i], most, (uint64_t)i);
    return WIDE_WINDOW;
}

int main(int argc, char** argv) {
    int provided;
    if (argc > 2 && argv[2][0] == '/') file = argv[2];
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    if (file != NULL) up = handle_of_class("btl_coopib_rails_up", MPI_T_PVAR_CLASS_LEVEL, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 2);
    seconds = atof(argv[2]);
    MPI_Barrier(MPI_COMM_WORLD); /* connects the ranks */
    if (file != NULL) most_up = value_of(up);
    for (kinds = 0; kinds < MOST_SIZES && kinds + 3 < argc; ++kinds) {
        sizes[kinds] = strtoull(argv[kinds + 3], NULL, 10) / 8 * 8;
        if (sizes[kinds] > most) most = sizes[kinds];
    }
    begun = MPI_Wtime();
    uint64_t number = 0;
    if (rank == 0) {
        printf("started\n");
        fflush(stdout);
        const char* name = getenv("COOP_TEST_STARTED");
        FILE* started = name != NULL ? fopen(name, "w") : NULL;
        if (started != NULL) fclose(started);
    }
    const char* kind = argv[1];
    if (strcmp(kind, "both") == 0) number = exchange(1, WINDOW);
    else if (strcmp(kind, "stream") == 0) number = exchange(0, WINDOW);
    else if (strcmp(kind, "wide") == 0) number = exchange(0, WIDE_WINDOW);
    else if (strcmp(kind, "one") == 0) number = one_at_a_time();
    else if (strcmp(kind, "put") == 0) number = one_sided(1);
    else if (strcmp(kind, "get") == 0) number = one_sided(0);
    else if (strcmp(kind, "fence") == 0) number = fences();
    else if (strcmp(kind, "epoch") == 0) number = epochs(0);
    else if (strcmp(kind, "watch") == 0) number = epochs(1);
    else if (strcmp(kind, "add") == 0) number = additions();
    else if (strcmp(kind, "compute") == 0) number = computations();
    else if (strcmp(kind, "crowd") == 0) number = crowd();
    else MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const int tens = (int)((MPI_Wtime() - begun) * 10);
        printf("MB/s:");
        for (int i = 0; i < tens && i < TENTHS; ++i) printf(" %.0f", (double)tenths[i] / 1e5);
        printf("\nfailover: all right, %llu messages\n", (unsigned long long)number);
        fflush(stdout);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
