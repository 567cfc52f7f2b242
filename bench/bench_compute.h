/* SPDX-License-Identifier: BSD-3-Clause */
/* Computing for a given time without reading a clock: a chain of multiplications whose speed is measured once. */
#ifndef COOP_BENCH_COMPUTE_H
#define COOP_BENCH_COMPUTE_H

/* The number of steps that take this long on an undisturbed core. The first call measures for about 10 ms. */
long bench_steps(double seconds);

void bench_compute(long steps);

#endif
