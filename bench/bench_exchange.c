/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_exchange.h"

#include <stdlib.h>
#include <string.h>

enum { kNoticeTag = 99, kNoSync = -1 };

static const char* const put_ways[] = {"put", "blocking-put", "isend", NULL};
static const char* const get_ways[] = {"get", "blocking-get", "isend", NULL};
static const char* const syncs[] = {"pscw", "fence", "flush", NULL};
static const enum bench_rma_sync sync_of[] = {kPscw, kFence, kFlush}; /* in the order of the words */
static double sync_word = kNoSync;
double bench_exchange_way = kNonblocking;

const struct bench_extra bench_exchange_puts_option = {
    .name = "way",
    .value = "WAY",
    .help = "put (default); blocking-put: with a flush after each; isend: MPI_Isend and MPI_Irecv",
    .words = put_ways,
    .target = &bench_exchange_way};
const struct bench_extra bench_exchange_gets_option = {
    .name = "way",
    .value = "WAY",
    .help = "get (default); blocking-get: with a flush after each; isend: MPI_Isend and MPI_Irecv",
    .words = get_ways,
    .target = &bench_exchange_way};
const struct bench_extra bench_exchange_sync_option = {.name = "sync",
                                                       .value = "SYNC",
                                                       .help =
                                                           "of put and get: pscw (default of put), fence or flush "
                                                           "(default of get)",
                                                       .words = syncs,
                                                       .target = &sync_word};

static bool goes_by(enum bench_way way) { return (int)bench_exchange_way == (int)way; }

static bool flushes(void) { return bench_rma_sync == kFlush; }

static void choose_sync(const struct bench_exchange* e) {
    if (goes_by(kBlocking)) {
        bench_rma_sync = kFlush;
    } else if (sync_word == kNoSync) {
        bench_rma_sync = e->gets ? kFlush : kPscw;
    } else {
        bench_rma_sync = sync_of[(int)sync_word];
    }
}

static MPI_Group group_of(const int* ranks, int peers) {
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, peers, ranks, &group);
    MPI_Group_free(&world);
    return group;
}

void bench_exchange_open(struct bench* b, struct bench_exchange* e, size_t bytes, const int* ranks, int peers,
                         int messages) {
    e->peers = peers;
    e->pending = 0;
    e->ranks = malloc((size_t)(peers + 1) * sizeof *e->ranks);
    memcpy(e->ranks, ranks, (size_t)peers * sizeof *ranks);
    e->requests = malloc(2 * (size_t)(peers + messages + 1) * sizeof(MPI_Request));
    if (goes_by(kIsend)) {
        e->memory = bench_new_buffer(b, bytes);
        return;
    }
    choose_sync(e);
    e->rma = (struct bench_rma){.origin = true, .target = true, .peer = kGivenPeers, .group = group_of(ranks, peers)};
    bench_rma_open(b, &e->rma, bytes);
    e->memory = e->rma.base;
}

void bench_exchange_close(struct bench_exchange* e) {
    if (goes_by(kIsend)) {
        free(e->memory);
    } else {
        bench_rma_close(&e->rma);
    }
    free(e->ranks);
    free(e->requests);
}

static void expect_notices(struct bench_exchange* e) {
    for (int i = 0; i < e->peers; ++i) {
        MPI_Irecv(NULL, 0, MPI_BYTE, e->ranks[i], kNoticeTag, MPI_COMM_WORLD, &e->requests[e->pending++]);
    }
}

static void give_notice(struct bench_exchange* e) {
    for (int i = 0; i < e->peers; ++i) {
        MPI_Isend(NULL, 0, MPI_BYTE, e->ranks[i], kNoticeTag, MPI_COMM_WORLD, &e->requests[e->pending++]);
    }
}

static void await(struct bench_exchange* e) {
    MPI_Waitall(e->pending, e->requests, MPI_STATUSES_IGNORE);
    e->pending = 0;
}

void bench_exchange_begin(struct bench_exchange* e, const struct bench_message* messages, int count) {
    if (goes_by(kIsend)) {
        for (const struct bench_message* m = messages; m < messages + count; ++m) {
            MPI_Irecv(m->into, m->in, m->type, m->peer, m->in_tag, MPI_COMM_WORLD, &e->requests[e->pending++]);
        }
        return;
    }
    if (flushes() && !e->gets) {
        expect_notices(e);
    }
    bench_rma_begin(&e->rma);
}

void bench_exchange_send(struct bench_exchange* e, const struct bench_message* m) {
    if (goes_by(kIsend)) {
        MPI_Isend(m->from, m->out, m->type, m->peer, m->out_tag, MPI_COMM_WORLD, &e->requests[e->pending++]);
        return;
    }
    MPI_Put(m->from, m->out, m->type, m->peer, m->at, m->out, m->type, e->rma.win);
    if (goes_by(kBlocking)) {
        MPI_Win_flush(m->peer, e->rma.win);
    }
}

void bench_exchange_get(const struct bench_exchange* e, int peer, MPI_Aint at, void* into, int doubles) {
    MPI_Get(into, doubles, MPI_DOUBLE, peer, at, doubles, MPI_DOUBLE, e->rma.win);
    if (goes_by(kBlocking)) {
        MPI_Win_flush(peer, e->rma.win);
    }
}

void bench_exchange_end(struct bench_exchange* e) {
    if (goes_by(kIsend)) {
        await(e);
        return;
    }
    if (goes_by(kNonblocking)) {
        bench_rma_end(&e->rma);
    }
    if (flushes() && !e->gets) {
        MPI_Win_sync(e->rma.win);
        give_notice(e);
        await(e);
        MPI_Win_sync(e->rma.win);
    }
}

void bench_exchange_own(const struct bench_exchange* e) {
    if (!goes_by(kIsend)) {
        bench_rma_own(&e->rma);
    }
}

void bench_exchange_disown(const struct bench_exchange* e) {
    if (!goes_by(kIsend)) {
        bench_rma_disown(&e->rma);
    }
}
