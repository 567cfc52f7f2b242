/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A team of threads that work together, for benchmarks of MPI_THREAD_MULTIPLE. Idle members sleep, so that they take no
 * time from others. A team of one has no threads and costs nothing.
 */
#ifndef COOP_BENCH_THREADS_H
#define COOP_BENCH_THREADS_H

typedef void bench_work(int member, void* argument);

void bench_team_open(int members);
void bench_team_close(void);

/* Every member does the work, the caller as member 0. Returns when all have finished. */
void bench_team_run(bench_work* work, void* argument);

#endif
