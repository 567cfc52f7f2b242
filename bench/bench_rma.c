/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCreate, kAllocate };

static const char* const ops[] = {"put", "get", NULL};
static const char* const syncs[] = {"flush", "unlock", "fence", "pscw", NULL};
static const char* const kinds[] = {"create", "allocate", NULL};
static double kind = kCreate;
double bench_rma_op = kPut, bench_rma_sync = kFlush;

const struct bench_extra bench_rma_op_option = {
    .name = "op", .value = "OP", .help = "put (default) or get", .words = ops, .target = &bench_rma_op};
const struct bench_extra bench_rma_sync_option = {.name = "sync",
                                                  .value = "SYNC",
                                                  .help = "flush (default), unlock, fence or pscw",
                                                  .words = syncs,
                                                  .target = &bench_rma_sync};
const struct bench_extra bench_rma_window_option = {
    .name = "window",
    .value = "KIND",
    .help = "create (default): memory of the program; allocate: of MPI_Win_allocate",
    .words = kinds,
    .target = &kind};

static bool synchronizes_by(enum bench_rma_sync sync) { return (int)bench_rma_sync == (int)sync; }

static bool passive(void) { return synchronizes_by(kFlush) || synchronizes_by(kUnlock); }

static void make_window(const struct bench* b, struct bench_rma* r, size_t bytes) {
    if (kind == kAllocate) {
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &r->base, &r->win);
        memset(r->base, b->rank + 1, bytes);
    } else {
        r->base = bench_new_buffer(b, bytes);
        MPI_Win_create(r->base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &r->win);
    }
}

/* The owner of memory that others write looks at it after MPI_Win_sync, which suffices in this model only. */
static void demand_unified_model(const struct bench* b, MPI_Win win) {
    int *model, found;
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &found);
    if (!found || *model != MPI_WIN_UNIFIED) {
        fprintf(stderr, "rank %d: the memory model of the window is not MPI_WIN_UNIFIED\n", b->rank);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

static MPI_Group group_of(const struct bench* b, int peer) {
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (peer == kAllPeers) {
        MPI_Group_excl(world, 1, &b->rank, &group);
    } else {
        MPI_Group_incl(world, 1, &peer, &group);
    }
    MPI_Group_free(&world);
    return group;
}

void bench_rma_open(struct bench* b, struct bench_rma* r, size_t bytes) {
    make_window(b, r, bytes);
    demand_unified_model(b, r->win);
    if (r->peer != kGivenPeers) {
        r->group = group_of(b, r->peer);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* nobody accesses memory that is still being initialised */
    if (synchronizes_by(kFlush)) {
        MPI_Win_lock_all(0, r->win);
        MPI_Win_sync(r->win);
    } else if (synchronizes_by(kFence)) {
        MPI_Win_fence(0, r->win);
    }
}

void bench_rma_close(struct bench_rma* r) {
    if (synchronizes_by(kFlush)) {
        MPI_Win_unlock_all(r->win);
    } else if (synchronizes_by(kFence)) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, r->win);
    }
    MPI_Group_free(&r->group);
    MPI_Win_free(&r->win);
    if (kind == kCreate) {
        free(r->base);
    }
}

static void lock(const struct bench_rma* r) {
    if (r->peer < 0) {
        MPI_Win_lock_all(0, r->win);
    } else {
        MPI_Win_lock(MPI_LOCK_SHARED, r->peer, 0, r->win);
    }
}

static void unlock(const struct bench_rma* r) {
    if (r->peer < 0) {
        MPI_Win_unlock_all(r->win);
    } else {
        MPI_Win_unlock(r->peer, r->win);
    }
}

static void flush(const struct bench_rma* r) {
    if (r->peer < 0) {
        MPI_Win_flush_all(r->win);
    } else {
        MPI_Win_flush(r->peer, r->win);
    }
}

void bench_rma_begin(const struct bench_rma* r) {
    if (r->target && synchronizes_by(kPscw)) {
        MPI_Win_post(r->group, 0, r->win);
    }
    if (r->origin && synchronizes_by(kPscw)) {
        MPI_Win_start(r->group, 0, r->win);
    } else if (r->origin && synchronizes_by(kUnlock)) {
        lock(r);
    }
}

static void end_access(const struct bench_rma* r) {
    switch ((enum bench_rma_sync)bench_rma_sync) {
    case kFlush: flush(r); break;
    case kUnlock: unlock(r); break;
    case kPscw: MPI_Win_complete(r->win); break;
    case kFence: break;
    }
}

void bench_rma_end(const struct bench_rma* r) {
    if (r->origin) {
        end_access(r);
    }
    if (r->target && synchronizes_by(kPscw)) {
        MPI_Win_wait(r->win);
    }
    if (synchronizes_by(kFence)) {
        MPI_Win_fence(0, r->win);
    }
}

void bench_rma_own(const struct bench_rma* r) {
    int rank;
    if (passive()) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (synchronizes_by(kFlush)) {
        MPI_Win_sync(r->win);
    } else if (synchronizes_by(kUnlock) && r->target) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, r->win);
    }
}

void bench_rma_disown(const struct bench_rma* r) {
    int rank;
    if (synchronizes_by(kFlush)) {
        MPI_Win_sync(r->win);
    } else if (synchronizes_by(kUnlock) && r->target) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Win_unlock(rank, r->win);
    } else if (synchronizes_by(kFence)) {
        MPI_Win_fence(0, r->win);
    }
    if (passive()) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

void bench_rma_issue(const struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part, int first,
                     int count) {
    const int bytes = (int)part->bytes;
    for (int slot = first; slot < first + count && r->origin; ++slot) {
        const MPI_Aint at = (MPI_Aint)((size_t)(part->at + slot) * bench_stride(b, part->bytes));
        if (part->op == kPut) {
            MPI_Put(bench_slot(b, b->send, part->bytes, slot), bytes, MPI_BYTE, r->peer, at, bytes, MPI_BYTE, r->win);
        } else {
            MPI_Get(bench_slot(b, b->recv, part->bytes, slot), bytes, MPI_BYTE, r->peer, at, bytes, MPI_BYTE, r->win);
        }
    }
}

void bench_rma_prepare(struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part) {
    if (!b->options.verify) {
        return;
    }
    const bool put = part->op == kPut;
    bench_rma_own(r);
    for (int slot = 0; slot < part->slots; ++slot) {
        unsigned char* local = bench_slot(b, put ? b->send : b->recv, part->bytes, slot);
        unsigned char* shared = bench_slot(b, r->base, part->bytes, part->at + slot);
        if (put ? r->origin : r->target) {
            bench_fill(put ? local : shared, part->bytes, b->rank, b->message + (uint64_t)slot);
        }
        if (put ? r->target : r->origin) {
            bench_guard(put ? shared : local, part->bytes);
        }
    }
    bench_rma_disown(r);
}

void bench_rma_check(struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part) {
    if (!b->options.verify) {
        return;
    }
    const bool put = part->op == kPut;
    bench_rma_own(r);
    for (int slot = 0; slot < part->slots && (put ? r->target : r->origin); ++slot) {
        unsigned char* at = put ? bench_slot(b, r->base, part->bytes, part->at + slot)
                                : bench_slot(b, b->recv, part->bytes, slot);
        bench_check(b, at, part->bytes, r->peer, b->message + (uint64_t)slot);
    }
    bench_rma_disown(r);
}

void bench_rma_exchange(struct bench* b, const struct bench_rma* r, const struct bench_rma_part* part) {
    bench_rma_prepare(b, r, part);
    bench_rma_begin(r);
    bench_rma_issue(b, r, part, 0, part->slots);
    bench_rma_end(r);
    bench_rma_check(b, r, part);
    b->message += (uint64_t)part->slots;
}
