/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every benchmark here shares. A benchmark is a bench_spec: a kernel that moves messages and says how long
 * that took, and a function that turns this time into the figure of the second column. Everything else (options,
 * sizes, iteration counts, batches, medians, headers, verification) is bench_main's.
 *
 * Units: sizes in bytes, times in seconds. Threading: none. Errors: MPI's own abort the job (MPI_ERRORS_ARE_FATAL);
 * a wrong option ends every rank with exit code 2 after one message from rank 0.
 */
#ifndef COOP_BENCH_COMMON_H
#define COOP_BENCH_COMMON_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxWindow = 4096, kMaxBatches = 1001 };

/* Bytes in flight per direction are limited, so that a window of 64 does not need 4 GiB at 64 MiB a message. */
#define BENCH_IN_FLIGHT_BYTES ((size_t)128 << 20)

struct bench_options {
    size_t min_bytes, max_bytes;
    long iterations;    /* per batch; 0: as many as fill the target time */
    long warmup;        /* iterations; -1: by size */
    int window;         /* only where the spec is windowed */
    int batches;
    double target_s;    /* of measuring, per size */
    bool verify;
    bool spread;        /* print the best and the worst batch too */
    long long fault_at; /* -F: received byte to damage before it is checked, -1: none. Proves that -d can fail. */
    bool help;
};

struct bench {
    struct bench_options options;
    int rank, ranks;
    unsigned char *send, *recv;
    MPI_Request *requests; /* 2 * window */
    uint64_t message;      /* counts on both sides alike; part of the pattern, so stale data never passes for new */
};

struct bench_spec {
    const char *name;    /* of the program */
    const char *summary; /* one line, for header and help */
    const char *unit;
    const char *better;  /* "lower" or "higher" */
    int decimals;        /* of the printed figure */
    bool windowed;
    bool many_pairs;     /* any even number of ranks; otherwise exactly two */
    size_t default_max_bytes;

    /* Called by every rank; the result counts on rank 0 only. */
    double (*seconds)(struct bench *, size_t bytes, long iterations);
    /* The figure to print. */
    double (*figure)(const struct bench *, size_t bytes, long iterations, double seconds);
};

int bench_main(int argc, char **argv, const struct bench_spec *spec);

double bench_now_s(void);

/* Messages in flight at this size, and where the buffer of each begins. */
int bench_window(const struct bench *b, size_t bytes);
unsigned char *bench_slot(const struct bench *b, unsigned char *buffer, size_t bytes, int slot);

/* The windowed kernels in three steps: post, complete, look. With -d they fill and check, otherwise they only move. */
int bench_post_sends(struct bench *b, size_t bytes, int to, MPI_Request *requests);
int bench_post_receives(struct bench *b, size_t bytes, int from, MPI_Request *requests);
void bench_check_window(struct bench *b, size_t bytes, int from);

/* bench_options.c. Returns NULL, or what is wrong in one line. */
const char *bench_parse(int argc, char **argv, const struct bench_spec *spec, struct bench_options *options);
void bench_print_help(const struct bench_spec *spec);

/* bench_verify.c. The guard lies behind each slot of a receive buffer while verifying. */
enum { kGuardBytes = 64 };
void bench_fill(unsigned char *buffer, size_t bytes, int from, uint64_t message);
void bench_guard(unsigned char *buffer, size_t bytes);
void bench_check(struct bench *b, unsigned char *buffer, size_t bytes, int from, uint64_t message);

#endif
