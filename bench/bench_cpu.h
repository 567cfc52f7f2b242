/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processor time of this process by who took it: the thread that calls, the thread that emulates its HCA on a software subnet
 * ("coop-fabric"), and all the others (what a library computes on behind the application's back). Units: seconds. Threading: of
 * the thread that opened it. A reading is three system calls, together about a microsecond.
 */
#ifndef COOP_BENCH_CPU_H
#define COOP_BENCH_CPU_H

struct bench_cpu {
    double own_s;     /* the calling thread */
    double engine_s;  /* NAN: there is no such thread */
    double others_s;
};

/* Looks for the engine's thread, which exists once the HCA is open: behind MPI_Init. */
void bench_cpu_open(void);

struct bench_cpu bench_cpu_read(void);

/* Of the calling thread alone: one system call. */
double bench_cpu_own_s(void);

#endif
