/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pml/coop's counters of the copies of this process, read from MPI_T performance variables. Other components have no
 * such variables: then bench_pvars_open() returns false, and readings are NAN.
 */
#ifndef COOP_BENCH_PVARS_H
#define COOP_BENCH_PVARS_H

#include <stdbool.h>

struct bench_pvars {
    double copies;       /* copy operations of this process */
    double copied_bytes; /* by them */
    double copy_time_s;  /* in them */
};

/* After MPI_Init. True if all of the variables exist. */
bool bench_pvars_open(void);
/* Totals since bench_pvars_open(); use the differences of two readings. */
struct bench_pvars bench_pvars_read(void);
void bench_pvars_close(void);

#endif
