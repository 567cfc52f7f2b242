/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run: header, then for each size warm-up, calibration, batches and a line with their median. Batches are short
 * (1 ms) and many, so that most are unaffected when another program takes a core away for a few ms.
 */
#include "bench_common.h"
#include "bench_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kTag = 7, kBufferAlign = 2 << 20 }; /* aligned to huge pages, so that all runs get the same page sizes */

double bench_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double bench_half_round_trip_us(const struct bench* b, size_t bytes, long iterations, double seconds) {
    (void)b;
    (void)bytes;
    return seconds / (double)iterations / 2 * 1e6;
}

/* Slots start on cache lines; while verifying, a gap of 4096 bytes after each one holds its guard bytes. */
size_t bench_stride(const struct bench* b, size_t bytes) {
    return (bytes + 63) / 64 * 64 + (b->options.verify ? 4096 : 0);
}

int bench_window(const struct bench* b, size_t bytes) {
    const size_t fits = BENCH_IN_FLIGHT_BYTES / (bytes ? bytes : 1) / (size_t)b->threads;
    const int limit = fits < 2 ? 2 : fits > kMaxWindow ? kMaxWindow : (int)fits;
    return b->options.window < limit ? b->options.window : limit;
}

unsigned char* bench_slot(const struct bench* b, unsigned char* buffer, size_t bytes, int slot) {
    return buffer + (size_t)slot * bench_stride(b, bytes);
}

int bench_post_sends(struct bench* b, size_t bytes, int to, MPI_Request* requests) {
    const int window = bench_window(b, bytes);
    for (int slot = 0; slot < window; ++slot) {
        unsigned char* at = bench_slot(b, b->send, bytes, slot);
        bench_write_message(b, at, bytes, b->message + (uint64_t)slot);
        MPI_Isend(at, (int)bytes, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &requests[slot]);
    }
    return window;
}

int bench_post_receives(struct bench* b, size_t bytes, int from, MPI_Request* requests) {
    const int window = bench_window(b, bytes);
    for (int slot = 0; slot < window; ++slot) {
        unsigned char* at = bench_slot(b, b->recv, bytes, slot);
        if (b->options.verify) {
            bench_guard(at, bytes);
        }
        MPI_Irecv(at, (int)bytes, MPI_BYTE, from, kTag, MPI_COMM_WORLD, &requests[slot]);
    }
    return window;
}

void bench_send_window(struct bench* b, size_t bytes, int to) {
    const int window = bench_window(b, bytes);
    for (int slot = 0; slot < window; ++slot) {
        unsigned char* at = bench_slot(b, b->send, bytes, slot);
        bench_write_message(b, at, bytes, b->message + (uint64_t)slot);
        MPI_Send(at, (int)bytes, MPI_BYTE, to, kTag, MPI_COMM_WORLD);
    }
}

void bench_receive_window(struct bench* b, size_t bytes, int from) {
    const int window = bench_window(b, bytes);
    for (int slot = 0; slot < window; ++slot) {
        unsigned char* at = bench_slot(b, b->recv, bytes, slot);
        if (b->options.verify) {
            bench_guard(at, bytes);
        }
        MPI_Recv(at, (int)bytes, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

void bench_check_window(struct bench* b, size_t bytes, int from) {
    const int window = bench_window(b, bytes);
    for (int slot = 0; slot < window && (b->options.verify || bench_touch != 0); ++slot) {
        bench_read_message(b, bench_slot(b, b->recv, bytes, slot), bytes, from, b->message + (uint64_t)slot);
    }
}

static size_t next_size(size_t bytes) { return bytes * 2; }

static size_t largest_need(const struct bench* b, const struct bench_spec* spec) {
    size_t need = 0;
    for (size_t bytes = b->options.min_bytes; bytes <= b->options.max_bytes; bytes = next_size(bytes)) {
        const int slots = spec->slots ? b->slots : bench_window(b, bytes) * b->threads;
        const size_t here = (size_t)slots * bench_stride(b, bytes);
        need = here > need ? here : need;
    }
    return need;
}

unsigned char* bench_new_buffer(const struct bench* b, size_t bytes) {
    void* buffer = NULL;
    if (posix_memalign(&buffer, kBufferAlign, bytes) != 0) {
        fprintf(stderr, "rank %d: no memory for a buffer of %zu bytes\n", b->rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    memset(buffer, b->rank + 1, bytes); /* take the page faults now, not while measuring */
    return buffer;
}

/* All ranks get rank 0's measurement, so that they decide alike. */
static double timed(struct bench* b, const struct bench_spec* spec, size_t bytes, long iterations) {
    double seconds = spec->seconds(b, bytes, iterations);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

static void warm_up(struct bench* b, const struct bench_spec* spec, size_t bytes) {
    const long iterations = b->options.warmup >= 0 ? b->options.warmup : bytes <= 65536 ? 10 : 2;
    if (iterations > 0) {
        spec->seconds(b, bytes, iterations);
    }
}

/* Iterations that fill one batch's share of the target time. */
static long calibrate(struct bench* b, const struct bench_spec* spec, size_t bytes) {
    const double share_s = b->options.target_s / b->options.batches;
    long iterations = 1;
    double seconds = timed(b, spec, bytes, iterations);
    while (seconds < share_s / 2 && iterations < 100000000) {
        const double growth = seconds > 0 ? share_s / seconds : 10;
        iterations = (long)ceil((double)iterations * (growth < 2 ? 2 : growth > 10 ? 10 : growth));
        seconds = timed(b, spec, bytes, iterations);
    }
    const long best = (long)((double)iterations * share_s / seconds);
    return best > 1 ? best : 1;
}

/* If one iteration takes longer than a batch should: stop at twice the target time, but not before five batches. */
static bool enough(const struct bench* b, int batches, double spent_s) {
    return batches == b->options.batches ||
           (b->options.iterations == 0 && batches >= 5 && spent_s > 2 * b->options.target_s);
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static int columns_of(const struct bench_spec* spec) {
    int count = 0;
    while (spec->more && spec->more[count]) {
        ++count;
    }
    return count;
}

/* Sorts the values. NAN if any of them is NAN. */
static double median_of(double* values, int count) {
    for (int i = 0; i < count; ++i) {
        if (isnan(values[i])) {
            return NAN;
        }
    }
    qsort(values, (size_t)count, sizeof values[0], ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void print_more(double value) {
    if (isnan(value)) {
        printf(" %16s", "-");
    } else {
        printf(" %16.3f", value);
    }
}

/* With --near: how many times its measuring time a size waits for cores that are near, and how many batches may be left out for
 * each one that counts. */
enum { kNearPatience = 100, kMostLeftOut = 10 };

static double figures[kMaxBatches], more[kMaxMore][kMaxBatches];

/* `label`: the start of the line. */
static void print_row(const struct bench* b, const struct bench_spec* spec, const char* label, int batches) {
    if (batches == 0) {
        printf("# no figure of %s: the cores were not near each other for long enough (--near %g)\n", label,
               bench_near_ns);
        fflush(stdout);
        return;
    }
    const double median = median_of(figures, batches);
    printf("%-10s %16.*f", label, spec->decimals, median);
    for (int i = 0; i < columns_of(spec); ++i) {
        print_more(spec->running ? more[i][batches - 1] : median_of(more[i], batches));
    }
    if (b->options.spread) {
        const bool lower = strcmp(spec->better, "lower") == 0;
        printf(" %16.*f %16.*f", spec->decimals, figures[lower ? 0 : batches - 1], spec->decimals,
               figures[lower ? batches - 1 : 0]);
    }
    printf("\n");
    fflush(stdout);
}

/* Fills `figures` and `more`. Returns the number of batches, 0 if --near does not hold for long enough. */
static int measure_batches(struct bench* b, const struct bench_spec* spec, size_t bytes, long iterations) {
    int batches = 0, left_out = 0;
    double patience_s = kNearPatience * b->options.target_s;
    for (double spent_s = 0; !enough(b, batches, spent_s);) {
        if (!bench_wait_near(b, &patience_s) || left_out > kMostLeftOut * b->options.batches) {
            return 0;
        }
        b->batch = batches;
        const double seconds = timed(b, spec, bytes, iterations);
        if (!bench_is_near(b)) {
            ++left_out;
            continue;
        }
        figures[batches] = spec->figure(b, bytes, iterations, seconds);
        for (int i = 0; i < kMaxMore; ++i) {
            more[i][batches] = b->more[i];
        }
        spent_s += seconds;
        ++batches;
    }
    return batches;
}

static void measure_points(struct bench* b, const struct bench_spec* spec, size_t bytes, long iterations) {
    const int points = spec->points ? spec->points(b) : 0;
    for (int number = 1; number <= points; ++number) {
        char label[64];
        snprintf(label, sizeof label, "# point %zu %d", bytes, number);
        spec->at_point(b, bytes, number, points);
        const int batches = measure_batches(b, spec, bytes, iterations);
        if (b->rank == 0) {
            print_row(b, spec, label, batches);
        }
    }
}

static void measure(struct bench* b, const struct bench_spec* spec, size_t bytes) {
    char label[32];
    snprintf(label, sizeof label, "%zu", bytes);
    b->batch = -1;
    bench_wait_near(b, &(double){kNearPatience * b->options.target_s});
    warm_up(b, spec, bytes);
    const long iterations = b->options.iterations ? b->options.iterations : calibrate(b, spec, bytes);
    const int batches = measure_batches(b, spec, bytes, iterations);
    if (b->rank == 0) {
        print_row(b, spec, label, batches);
    }
    if (spec->after_size) {
        spec->after_size(b, bytes);
    }
    measure_points(b, spec, bytes, iterations);
}

/* coop-ab reads 'unit', 'better' and 'key' from here; the rest is for readers. */
static void print_header(const struct bench* b, const struct bench_spec* spec) {
    const struct bench_options* o = &b->options;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    printf("# benchmark: %s (%s)\n# library: %s\n# unit: %s\n# better: %s\n# key: size\n", spec->name, spec->summary,
           library, spec->unit, spec->better);
    printf("# settings: ranks %d, sizes %zu:%zu", b->ranks, o->min_bytes, o->max_bytes);
    if (spec->windowed) {
        printf(", window %d", o->window);
    }
    if (o->iterations) {
        printf(", %d batches of %ld iterations", o->batches, o->iterations);
    } else {
        printf(", up to %d batches in %g s", o->batches, o->target_s);
    }
    if (bench_touch != 0) {
        printf(", data written and read");
    }
    if (bench_near_ns > 0) {
        printf(", cores within %g ns", bench_near_ns);
    }
    printf("%s\n", o->verify ? ", data verified (the figures say nothing about speed)" : "");
    printf("# %-8s %16s", "size", spec->unit);
    for (int i = 0; i < columns_of(spec); ++i) {
        printf(" %16s", spec->more[i]);
    }
    printf("%s\n", o->spread ? "             best            worst" : "");
    fflush(stdout);
}

static const char* wrong_ranks(const struct bench* b, const struct bench_spec* spec) {
    static const char* const needs[] = {"exactly 2 ranks", "an even number of ranks", "at least 2 ranks",
                                        "exactly 3 ranks"};
    static char text[80];
    const bool right[] = {b->ranks == 2, b->ranks % 2 == 0, b->ranks >= 2, b->ranks == 3};
    if (right[spec->ranks]) {
        return NULL;
    }
    snprintf(text, sizeof text, "needs %s, was started with %d", needs[spec->ranks], b->ranks);
    return text;
}

static int leave(int code) {
    MPI_Finalize();
    return code;
}

/* Asks for threads only if they will be used or -L says so, since some components serve none, or are slower with them. */
static void begin_mpi(struct bench* b) {
    const int level = b->threads > 1 ? MPI_THREAD_MULTIPLE : b->options.level;
    int provided;
    MPI_Init_thread(NULL, NULL, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    if (provided < level) {
        fprintf(stderr, "rank %d: this MPI library does not provide the thread level that -L or --threads asks for\n",
                b->rank);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

int bench_main(int argc, char** argv, const struct bench_spec* spec) {
    struct bench b = {0};
    const char* wrong = bench_parse(argc, argv, spec, &b.options);
    b.threads = spec->threads && !wrong ? (int)*spec->threads : 1;
    begin_mpi(&b);
    if (!wrong && !b.options.help) {
        wrong = wrong_ranks(&b, spec);
    }
    if (wrong) {
        if (b.rank == 0) {
            fprintf(stderr, "%s: %s\n", spec->name, wrong);
        }
        return leave(2);
    }
    if (b.options.help) {
        if (b.rank == 0) {
            bench_print_help(spec);
        }
        return leave(0);
    }

    b.slots = spec->slots ? spec->slots(&b) : b.options.window * b.threads;
    b.requests = malloc(2 * (size_t)b.slots * sizeof(MPI_Request));
    b.buffer_bytes = largest_need(&b, spec);
    b.send = bench_new_buffer(&b, b.buffer_bytes);
    b.recv = bench_new_buffer(&b, b.buffer_bytes);
    if (b.rank == 0) {
        print_header(&b, spec);
    }
    bench_line_open(&b);
    if (spec->start) {
        spec->start(&b);
    }
    for (size_t bytes = b.options.min_bytes; bytes <= b.options.max_bytes; bytes = next_size(bytes)) {
        measure(&b, spec, bytes);
    }
    if (spec->end) {
        spec->end(&b);
    }
    bench_line_close();
    free(b.send);
    free(b.recv);
    free(b.requests);
    return leave(0);
}
