/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the two ranks of a benchmark share without MPI, for the programs that show a limit. Both must be on one
 * host. Errors abort the job.
 */
#ifndef COOP_BENCH_SHARED_H
#define COOP_BENCH_SHARED_H

#include "bench_common.h"

enum { kLineBytes = 64 };

/* Collective. Returns `bytes` bytes of zeros, whose pages exist. The caller unmaps them. */
void* bench_share(const struct bench* b, size_t bytes);

/* Says what is not possible and why (errno), and aborts the job. */
void bench_give_up(const struct bench* b, const char* what);

#endif
