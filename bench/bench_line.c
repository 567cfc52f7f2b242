/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_line.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "bench_shared.h"

enum { kSeries = 3, kTurns = 50, kNapNs = 100000000 };

double bench_near_ns;
const struct bench_extra bench_near_option = {
    .name = "near",
    .value = "NS",
    .help = "only batches before and after which a cache line takes at most NS ns to the other core (0: all)",
    .high = 1e6,
    .target = &bench_near_ns};

/* The ranks take turns in counting one word. */
struct line {
    _Alignas(kLineBytes) atomic_ulong turn;
    _Alignas(kLineBytes) double ns; /* from rank 0 to rank 1 */
};
static struct line* line;
static unsigned long turns; /* of both ranks until now */

void bench_line_open(const struct bench* b) {
    if (bench_near_ns > 0) {
        line = bench_share(b, sizeof *line);
    }
}

void bench_line_close(void) {
    if (line) {
        munmap(line, sizeof *line);
    }
}

static void await(unsigned long turn) {
    while (atomic_load_explicit(&line->turn, memory_order_acquire) != turn) {
    }
}

/* A turn of rank 0, and one of rank 1. Returns what rank 0 has written into `ns` before. */
static double bounce(const struct bench* b) {
    if (b->rank == 0) {
        atomic_store_explicit(&line->turn, turns + 1, memory_order_release);
        await(turns + 2);
    } else {
        await(turns + 1);
    }
    const double ns = line->ns;
    if (b->rank != 0) {
        atomic_store_explicit(&line->turn, turns + 2, memory_order_release);
    }
    turns += 2;
    return ns;
}

/* Rank 1 gets what rank 0 gives. */
static double told(const struct bench* b, double ns) {
    if (b->rank == 0) {
        line->ns = ns;
    }
    return bounce(b);
}

/* The least of a few series: the ranks may begin at different times, and another process may take a core. */
static double line_ns(const struct bench* b) {
    double least_s = 1;
    for (int series = 0; series < kSeries; ++series) {
        const double start_s = bench_now_s();
        for (int turn = 0; turn < kTurns; ++turn) {
            bounce(b);
        }
        const double took_s = bench_now_s() - start_s;
        least_s = took_s < least_s ? took_s : least_s;
    }
    return told(b, least_s * 1e9 / kTurns / 2);
}

bool bench_is_near(const struct bench* b) { return !line || line_ns(b) <= bench_near_ns; }

bool bench_wait_near(const struct bench* b, double* patience_s) {
    const double end_s = bench_now_s() + *patience_s;
    while (!bench_is_near(b)) {
        *patience_s = told(b, end_s - bench_now_s());
        if (*patience_s < 0) {
            return false;
        }
        /* The hypervisor places a CPU anew when it has slept. */
        nanosleep(&(struct timespec){.tv_nsec = kNapNs}, NULL);
    }
    return true;
}
