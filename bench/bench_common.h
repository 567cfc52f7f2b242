/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The code that the benchmarks share, except coop_mem, coop_stream and coop_wait. A benchmark is a bench_spec: a kernel
 * that moves messages and returns its time, and a function that computes the figure of the second column from this
 * time. bench_main() does everything else: options, sizes, iteration counts, batches, medians, headers, verification.
 *
 * Units: sizes in bytes, times in seconds. Threading: none. Errors: MPI errors abort the job (MPI_ERRORS_ARE_FATAL);
 * a wrong option ends every rank with exit code 2 after one message from rank 0.
 */
#ifndef COOP_BENCH_COMMON_H
#define COOP_BENCH_COMMON_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxWindow = 4096, kMaxBatches = 1001, kMaxMore = 9 };

/* Bytes in flight per direction are limited, so that a window of 64 does not need 4 GiB at 64 MiB a message. */
#define BENCH_IN_FLIGHT_BYTES ((size_t)128 << 20)

struct bench_options {
    size_t min_bytes, max_bytes;
    long iterations; /* per batch; 0: as many as fill the target time */
    long warmup;     /* iterations; -1: by size */
    int window;      /* only where the spec is windowed */
    int batches;
    double target_s; /* time to measure per size */
    int level;       /* MPI_THREAD_...; several threads ask for MPI_THREAD_MULTIPLE anyway */
    bool verify;
    bool spread;        /* print the best and the worst batch too */
    long long fault_at; /* -F: received byte to damage before it is checked, -1: none. Shows that -d can fail. */
    bool help;
};

struct bench {
    struct bench_options options;
    int rank, ranks;
    unsigned char *send, *recv;
    MPI_Request* requests; /* two per slot */
    int slots;             /* messages that fit into send and into recv */
    int threads;           /* that call MPI at once, each with a window of its own */
    size_t buffer_bytes;   /* length of send and of recv */
    uint64_t message;      /* counted alike on both sides; part of the pattern, so that stale data is detected */
    int batch;             /* from 0; -1 while warming up and choosing the iterations */
    double operation_s;    /* set by bench_operations() */
    double more[kMaxMore]; /* of this batch, set by the kernel on rank 0: the further columns. NAN: unknown */
};

/* A long option of one benchmark. Every kind of value is stored in a double. */
struct bench_extra {
    const char* name;
    const char* value; /* its name in the help; NULL: a switch, which sets 1 */
    const char* help;
    const char* const* words; /* NULL-terminated list of allowed words, whose index is stored; NULL: takes a number */
    double low, high;
    bool whole;     /* a number without a fraction */
    double* target; /* holds the default value at first */
};

enum bench_ranks { kTwoRanks, kPairsOfRanks, kTwoRanksOrMore, kThreeRanks };

struct bench_spec {
    const char* name;    /* of the program */
    const char* summary; /* one line, for header and help */
    const char* unit;
    const char* better; /* "lower" or "higher" */
    int decimals;       /* of the printed figure */
    bool windowed;
    int default_window;    /* 0: 64 */
    const double* threads; /* an option: number of threads that call MPI at once; NULL: one */
    enum bench_ranks ranks;
    size_t default_min_bytes, default_max_bytes;
    size_t element_bytes;              /* every size must be a multiple of this; 0: any size */
    int (*slots)(const struct bench*); /* messages in a buffer without a window; NULL: one */
    const struct bench_extra* extra;   /* ends with an entry without a name; NULL: none */
    const char* const* more;           /* names of the further columns, up to a NULL; NULL: none */
    bool running; /* `more` has running totals of this size: prints the last batch's values, not medians */

    /* Called by every rank: start() when the buffers exist, end() after the last size. NULL: nothing to do. */
    void (*start)(struct bench*);
    void (*end)(struct bench*);

    /* Called by every rank; the result counts on rank 0 only. */
    double (*seconds)(struct bench*, size_t bytes, long iterations);
    /* The figure to print. */
    double (*figure)(const struct bench*, size_t bytes, long iterations, double seconds);
    /* Called by every rank after the line of a size; NULL: nothing to add. Lines that it prints begin with #. */
    void (*after_size)(struct bench*, size_t bytes);

    /* Returns how many further measurements (points) follow the line of a size. at_point() changes a parameter other
     * than the size before each, which is printed as '# point SIZE NUMBER FIGURE ...', numbered from 1. NULL: none. */
    int (*points)(const struct bench*);
    void (*at_point)(struct bench*, size_t bytes, int number,
                     int points); /* called by every rank, before the point is measured */
};

int bench_main(int argc, char** argv, const struct bench_spec* spec);

double bench_now_s(void);

/* For bench_spec.figure: half the time of a round trip in us, if an iteration is a round trip. */
double bench_half_round_trip_us(const struct bench* b, size_t bytes, long iterations, double seconds);

/* Memory whose pages exist. Aborts the job if there is none. The caller calls free(). */
unsigned char* bench_new_buffer(const struct bench* b, size_t bytes);

/* The number of messages in flight at this size, the distance between their buffers, and the address of one of them. */
int bench_window(const struct bench* b, size_t bytes);
size_t bench_stride(const struct bench* b, size_t bytes);
unsigned char* bench_slot(const struct bench* b, unsigned char* buffer, size_t bytes, int slot);

/* Parts of the windowed kernels: post sends, post receives, and, when they are complete, check the received data. Data
 * is filled and checked only with -d; with --touch it is written and read as a program does. */
int bench_post_sends(struct bench* b, size_t bytes, int to, MPI_Request* requests);
int bench_post_receives(struct bench* b, size_t bytes, int from, MPI_Request* requests);
void bench_check_window(struct bench* b, size_t bytes, int from);

/* Send or receive the messages of a window one by one with blocking calls. bench_check_window() checks them. */
void bench_send_window(struct bench* b, size_t bytes, int to);
void bench_receive_window(struct bench* b, size_t bytes, int from);

/* bench_operation.c. An operation of all ranks, in three steps of which the second is timed. */
struct bench_operation {
    void (*prepare)(struct bench*, size_t bytes); /* with -d only */
    void (*operate)(struct bench*, size_t bytes);
    void (*check)(struct bench*, size_t bytes); /* with -d only */
};

/* All ranks begin each operation together, after a barrier. Returns the total time; b->operation_s becomes the time of
 * the operations on the slowest rank (rank 0 only). */
double bench_operations(struct bench* b, size_t bytes, long iterations, const struct bench_operation* operation);
double bench_operation_us(const struct bench* b, size_t bytes, long iterations, double seconds);

/* A program whose operation has rank 0 as its root: one message from or to every rank, or, with --collective, one
 * collective call. */
struct bench_rooted {
    const char* name;
    const char* summary;
    const char* collective; /* help of the option */
    struct bench_operation operation;
};
struct bench_rooted_now {
    bool collective;
    MPI_Datatype slot_type; /* for the buffer of rank 0, at this size */
};
extern struct bench_rooted_now bench_rooted_now; /* valid inside of an operation */
int bench_rooted_main(int argc, char** argv, const struct bench_rooted* program);

/* Returns a datatype with the data of one message and the extent of a slot, for collectives. The caller frees it. */
MPI_Datatype bench_slot_type(const struct bench* b, size_t bytes);

/* bench_options.c. Returns NULL, or an error message of one line. */
const char* bench_parse(int argc, char** argv, const struct bench_spec* spec, struct bench_options* options);
void bench_print_help(const struct bench_spec* spec);

/* bench_verify.c. While verifying, a guard follows each slot of a receive buffer. */
enum { kGuardBytes = 64, kGuardByte = 0xa5 };
void bench_fill(unsigned char* buffer, size_t bytes, int from, uint64_t message);
void bench_guard(unsigned char* buffer, size_t bytes);
void bench_check(struct bench* b, unsigned char* buffer, size_t bytes, int from, uint64_t message);
/* For a block that another one follows directly, without a guard. */
void bench_check_unguarded(struct bench* b, unsigned char* buffer, size_t bytes, int from, uint64_t message);

/* The data of a message before it is sent, and after it has arrived: with -d the pattern; with --touch, in the programs that have
 * this option, every byte is written and read, as programs do with their data; otherwise nothing. */
extern double bench_touch;
extern const struct bench_extra bench_touch_option;
void bench_write_message(const struct bench* b, unsigned char* buffer, size_t bytes, uint64_t message);
void bench_read_message(struct bench* b, unsigned char* buffer, size_t bytes, int from, uint64_t message);

/* Compares with given bytes. `guard`: number of bytes after them that bench_guard() set. */
void bench_check_bytes(struct bench* b, unsigned char* buffer, size_t bytes, size_t guard,
                       const unsigned char* expected, const char* what);

/* Fills with small whole numbers, whose sum over all ranks is exact in any order. */
void bench_fill_floats(float* buffer, size_t count, int from, uint64_t message);
void bench_check_sum(struct bench* b, float* buffer, size_t count, uint64_t message);

#endif
