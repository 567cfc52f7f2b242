/* SPDX-License-Identifier: BSD-3-Clause */
/* Computing for a given time without looking at a clock: a chain of multiplications whose speed is measured once. */
#ifndef COOP_BENCH_COMPUTE_H
#define COOP_BENCH_COMPUTE_H

/* Steps that take this long where nothing disturbs. The first call measures, for some 10 ms. */
long bench_steps(double seconds);

void bench_compute(long steps);

#endif
