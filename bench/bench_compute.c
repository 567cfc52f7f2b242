/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_compute.h"

#include "bench_common.h"

enum { kTrials = 20, kTrialSteps = 200000 };

static volatile uint64_t state = 1; /* volatile, so that the compiler keeps the unused computation */

void bench_compute(long steps) {
    uint64_t x = state;
    for (long i = 0; i < steps; ++i) {
        x = x * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    }
    state = x;
}

/* The fastest trial: slower ones were disturbed, or the core had not reached its speed. */
static double steps_per_s(void) {
    double best_s = 1e9;
    for (int trial = 0; trial < kTrials; ++trial) {
        const double start_s = bench_now_s();
        bench_compute(kTrialSteps);
        const double took_s = bench_now_s() - start_s;
        best_s = took_s < best_s ? took_s : best_s;
    }
    return kTrialSteps / best_s;
}

long bench_steps(double seconds) {
    static double speed = 0;
    if (speed == 0) {
        speed = steps_per_s();
    }
    return (long)(seconds * speed);
}
