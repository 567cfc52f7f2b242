/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --near: figures only of the time in which the cores of two ranks are near each other. The CPUs of a virtual machine may
 * share a cache at one time and not at another, so that a cache line takes 40 or 250 ns from one to the other. Two
 * libraries that are measured one after the other then differ for this reason alone.
 *
 * Threading: none. Errors: ranks that share no memory abort the job (bench_shared.h).
 */
#ifndef COOP_BENCH_LINE_H
#define COOP_BENCH_LINE_H

#include "bench_common.h"

/* A cache line takes at most so many nanoseconds from one core to the other; 0: does not matter. For benchmarks of two ranks. */
extern double bench_near_ns;
extern const struct bench_extra bench_near_option;

/* Collective. Opens the memory for the others, if --near is given. */
void bench_line_open(const struct bench* b);
void bench_line_close(void);

/* Collective; all ranks get the same answer, at once true without --near. Whether the cores are near, and the same after waiting
 * until they are, for `*patience_s` seconds at most, which becomes less by the time that this took. */
bool bench_is_near(const struct bench* b);
bool bench_wait_near(const struct bench* b, double* patience_s);

#endif
