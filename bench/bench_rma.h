/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the benchmarks of one-sided communication share: a window, its synchronization, and transfers into and out of
 * its memory that -d verifies. A program opens one window in start() and uses one way to synchronize for all sizes:
 *
 *     flush   MPI_Win_lock_all when the window opens, MPI_Win_flush after the operations
 *     unlock  MPI_Win_lock (shared) before them, MPI_Win_unlock after them
 *     fence   MPI_Win_fence on both sides after them, which also begins the next epoch
 *     pscw    MPI_Win_start and MPI_Win_complete, MPI_Win_post and MPI_Win_wait
 *
 * With `flush` and `unlock` a target is in MPI_Barrier or MPI_Bcast meanwhile, so that components whose target has to
 * help make progress. MPI does not promise more.
 *
 * Threading: all functions except bench_rma_issue() are for one thread. Errors abort the job.
 */
#ifndef COOP_BENCH_RMA_H
#define COOP_BENCH_RMA_H

#include "bench_common.h"

enum bench_rma_op { kPut, kGet };
enum bench_rma_sync { kFlush, kUnlock, kFence, kPscw };

struct bench_rma {
    MPI_Win win;
    unsigned char* base; /* this rank's memory of the window */
    bool origin, target; /* the roles of this rank; it can have both */
    int peer;            /* of both roles; kAllPeers: every other rank; kGivenPeers: those of the group */
    MPI_Group group;     /* the same; with kGivenPeers the caller sets it, and bench_rma_close() frees it */
};

enum { kAllPeers = -1, kGivenPeers = -2 };

/* The values of the options. A program may set bench_rma_sync itself instead of offering the option. */
extern double bench_rma_op, bench_rma_sync;
extern const struct bench_extra bench_rma_op_option, bench_rma_sync_option, bench_rma_window_option;

/* Collective. `origin`, `target` and `peer` are set by the caller. */
void bench_rma_open(struct bench* b, struct bench_rma* r, size_t bytes);
void bench_rma_close(struct bench_rma* r);

/* The epoch of one exchange, called by all ranks; operations of origins come between the two. */
void bench_rma_begin(const struct bench_rma* r);
void bench_rma_end(const struct bench_rma* r);

/* Called by all ranks, with -d. Between the two, this rank may read and write its own memory of the window. */
void bench_rma_own(const struct bench_rma* r);
void bench_rma_disown(const struct bench_rma* r);

/* Messages of an exchange: slots of the buffers b->send (puts) or b->recv (gets), and of the window from slot `at` on. */
struct bench_rma_part {
    int op;
    size_t bytes;
    int slots, at;
};

/* Starts the operations of some of the slots at the peer, if this rank is an origin. */
void bench_rma_issue(const struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part, int first,
                     int count);

/* Called by all ranks. They do nothing without -d. */
void bench_rma_prepare(struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part);
void bench_rma_check(struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part);

/* All of the above: one exchange of the messages. The next one has other data. */
void bench_rma_exchange(struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part);

// The memory of a buffer as doubles; all buffers of the benchmarks are aligned for them.
static inline double* rma_doubles(unsigned char* memory) { return (double*)(void*)memory; }

#endif
