/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exchange of messages with neighbours, as the kernels of applications do it, in one of several ways (--way):
 *
 *     put           MPI_Put; the synchronization of --sync completes all messages together
 *     blocking-put  MPI_Put and MPI_Win_flush of each message
 *     get, blocking-get  the same with MPI_Get, from memory that nobody writes meanwhile
 *     isend         MPI_Irecv, MPI_Isend and MPI_Waitall, without a window
 *
 * After the flush of puts, an empty message tells each neighbour that its data has arrived. Ranks that are neighbours
 * exchange with each other every time, in both directions. A rank may begin the next exchange while a neighbour still
 * reads what the last one brought, so a program does not use the same memory in two exchanges that follow each other,
 * unless a collective call is between them.
 *
 * Threading: none. Errors abort the job.
 */
#ifndef COOP_BENCH_EXCHANGE_H
#define COOP_BENCH_EXCHANGE_H

#include "bench_rma.h"

enum bench_way { kNonblocking, kBlocking, kIsend };

struct bench_exchange {
    bool gets;             /* of messages, not puts; set by the caller */
    unsigned char* memory; /* what other ranks access: of the window, or with isend of this rank only */
    struct bench_rma rma;
    int* ranks; /* the neighbours */
    int peers, pending;
    MPI_Request* requests;
};

/* A message to a neighbour and one from it. */
struct bench_message {
    int peer;
    int out_tag, in_tag;
    MPI_Datatype type;
    int out, in;      /* elements of the type */
    const void* from; /* what is sent */
    MPI_Aint at;      /* puts: where that goes in the neighbour's memory */
    void* into;       /* where the neighbour's data arrives, in memory */
};

/* The values of the options. */
extern double bench_exchange_way;
extern const struct bench_extra bench_exchange_puts_option, bench_exchange_gets_option, bench_exchange_sync_option;

/* Collective. `ranks` are the neighbours, each once; `messages`: the most of them in an exchange. */
void bench_exchange_open(struct bench* b, struct bench_exchange* e, size_t bytes, const int* ranks, int peers,
                         int messages);
void bench_exchange_close(struct bench_exchange* e);

/* One exchange: begin, the messages one after another, end. All ranks take part. */
void bench_exchange_begin(struct bench_exchange* e, const struct bench_message* messages, int count);
void bench_exchange_send(struct bench_exchange* e, const struct bench_message* message); /* not of gets */
void bench_exchange_get(const struct bench_exchange* e, int peer, MPI_Aint at, void* into, int doubles);
void bench_exchange_end(struct bench_exchange* e);

/* Called by all ranks. Between the two, this rank may write memory that others get. */
void bench_exchange_own(const struct bench_exchange* e);
void bench_exchange_disown(const struct bench_exchange* e);

#endif
