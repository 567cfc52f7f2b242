/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processor time of this process by thread: the calling thread, the thread that emulates its HCA on a software subnet
 * ("coop-fabric"), and all others (a library's own threads). Units: seconds. Threading: use only on the thread that
 * opened it. A reading is three system calls, together about a microsecond.
 */
#ifndef COOP_BENCH_CPU_H
#define COOP_BENCH_CPU_H

struct bench_cpu {
    double own_s;    /* the calling thread */
    double engine_s; /* NAN: there is no such thread */
    double others_s;
};

/* Looks for the engine's thread, which exists when the HCA is open: call after MPI_Init. */
void bench_cpu_open(void);

struct bench_cpu bench_cpu_read(void);

/* The time of the calling thread alone: one system call. */
double bench_cpu_own_s(void);

#endif
