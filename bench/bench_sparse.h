/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sparse matrix whose rows are distributed, and what a rank needs of the others to multiply it by a vector.
 *
 * The matrix is that of finite elements of a plate: a mesh of bricks, 3 nodes thick and 31 wide, with two unknowns per
 * node, which are coupled with those of all nodes of the same bricks. With 41092 rows it has about as many nonzeros as
 * the matrix of Nieplocha et al. (1 683 902), "Optimizing mechanisms for latency tolerance in remote memory access
 * communication on clusters", section 4.2. Nodes are numbered along the plate, except for some (--shuffle) that have
 * each other's numbers, as in a mesh that was refined. All numbers are whole, so that sums are exact in any order. The
 * matrix is symmetric and positive definite: the diagonal is one more than the sum of the others of its row.
 *
 * Each rank has as many rows as the others, or one less. It keeps copies of the entries of other ranks that its rows
 * need in a cache, in ascending order, so those of one rank follow each other.
 */
#ifndef COOP_BENCH_SPARSE_H
#define COOP_BENCH_SPARSE_H

#include "bench_exchange.h"

/* A rank that shares entries of the vector with this one. Positions count doubles. */
struct bench_sparse_peer {
    int rank;
    int in, in_at;   /* entries of it, and where they begin in the cache of this rank */
    int out, out_at; /* entries for it, and where they begin in what bench_sparse_pack() writes */
    int at;          /* where those begin in the cache of it */
};

/* Columns count from the first own row (of own entries), or are positions in the cache. */
struct bench_sparse_part {
    size_t* starts; /* of each own row, and the end */
    int* columns;
    double* values;
};

struct bench_sparse {
    int size; /* rows of the whole matrix */
    int first, rows;
    int *number, *place; /* of the nodes: by place in the mesh, and the other way round */
    struct bench_sparse_part own, remote;
    int cached;
    int* cache; /* the columns whose entries the cache holds */
    int peers, entries_out;
    struct bench_sparse_peer* peer;
    int* out; /* own rows, for each peer in turn, in the order of its cache */
};

extern const struct bench_extra bench_sparse_shuffle_option;

/* Collective. Rank 0 prints a line about the matrix. */
void bench_sparse_open(const struct bench* b, struct bench_sparse* s, size_t size);
void bench_sparse_close(struct bench_sparse* s);

/* An exchange with the peers. Other ranks access `doubles` of this one, and a guard can follow. The result is a message
 * for each peer, from what bench_sparse_pack() writes to b->send into the cache (NULL: that memory). The caller frees
 * it. */
struct bench_message* bench_sparse_open_exchange(struct bench* b, const struct bench_sparse* s,
                                                 struct bench_exchange* exchange, int doubles, double* cache);

/* For the spec of a program whose size is a number of rows: the buffers hold a double of each row. */
int bench_sparse_slots(const struct bench* b);

int bench_sparse_first_of(const struct bench_sparse* s, const struct bench* b, int rank);

/* The nonzeros of a row. Returns their number. */
enum { kMostInRow = 54 };
int bench_sparse_row(const struct bench_sparse* s, int row, int* columns, double* values);

/* product = part * vector, or with `add` product += part * vector */
void bench_sparse_multiply(const struct bench_sparse* s, const struct bench_sparse_part* part, const double* vector,
                           double* product, bool add);

/* Copies the entries for all peers. */
void bench_sparse_pack(const struct bench_sparse* s, const double* vector, double* out);

/* A whole number below 1024 for an entry of a vector, another one for each message. */
double bench_sparse_entry(int row, uint64_t message);

#endif
