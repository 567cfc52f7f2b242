/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_sparse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThick = 3, kWide = 31, kSlice = kThick * kWide, kUnknowns = 2, kMostRows = 1 << 24, kTag = 30 };

static double shuffle = 2;

const struct bench_extra bench_sparse_shuffle_option = {
    .name = "shuffle",
    .value = "PERCENT",
    .help = "nodes of the mesh that are not numbered along the plate (default 2)",
    .low = 0,
    .high = 100,
    .target = &shuffle};

static uint64_t mixed(uint64_t x) {
    x = (x + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static void* allocate(size_t count, size_t bytes) {
    void* memory = calloc(count + 1, bytes);
    if (!memory) {
        fprintf(stderr, "no memory for %zu entries of the sparse matrix\n", count);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    return memory;
}

static int nodes_of(const struct bench_sparse* s) { return (s->size + kUnknowns - 1) / kUnknowns; }

int bench_sparse_first_of(const struct bench_sparse* s, const struct bench* b, int rank) {
    return (int)((long long)s->size * rank / b->ranks);
}

double bench_sparse_entry(int row, uint64_t message) {
    return (double)(mixed(mixed(message) + (uint64_t)row) >> 20 & 1023);
}

/* The chosen nodes exchange their numbers (Fisher-Yates), the same in every run. */
static void number_nodes(struct bench_sparse* s) {
    const int nodes = nodes_of(s);
    int chosen = 0;
    int* loose = allocate((size_t)nodes, sizeof *loose);
    s->number = allocate((size_t)nodes, sizeof *s->number);
    s->place = allocate((size_t)nodes, sizeof *s->place);
    for (int place = 0; place < nodes; ++place) {
        s->number[place] = place;
        if ((double)(mixed((uint64_t)place) >> 16 & 0xffff) < shuffle / 100 * 0x10000) {
            loose[chosen++] = place;
        }
    }
    for (int i = chosen - 1; i > 0; --i) {
        const int other = loose[mixed((uint64_t)i + 77) % (uint64_t)(i + 1)], kept = s->number[loose[i]];
        s->number[loose[i]] = s->number[other];
        s->number[other] = kept;
    }
    for (int place = 0; place < nodes; ++place) {
        s->place[s->number[place]] = place;
    }
    free(loose);
}

static double coupling(int row, int column) {
    const uint64_t low = (uint64_t)(row < column ? row : column), high = (uint64_t)(row < column ? column : row);
    return -(double)(1 + (mixed(low << 32 | high) >> 20 & 7));
}

/* The neighbours of a place in one dimension, from -1 to 1. */
struct range {
    int low, high;
};

static struct range around(int at, int length) { return (struct range){at > 0 ? -1 : 0, at + 1 < length ? 1 : 0}; }

int bench_sparse_row(const struct bench_sparse* s, int row, int* columns, double* values) {
    const int nodes = nodes_of(s), place = s->place[row / kUnknowns];
    const struct range thick = around(place % kThick, kThick), wide = around(place / kThick % kWide, kWide);
    int count = 0, diagonal = 0;
    double sum = 1;
    for (int other = place - kSlice; other <= place + kSlice; other += kSlice) {
        for (int w = wide.low; w <= wide.high; ++w) {
            for (int t = thick.low; t <= thick.high; ++t) {
                const int at = other + w * kThick + t;
                for (int unknown = 0; unknown < kUnknowns && at >= 0 && at < nodes; ++unknown) {
                    const int column = s->number[at] * kUnknowns + unknown;
                    if (column < s->size) {
                        diagonal = column == row ? count : diagonal;
                        columns[count] = column;
                        values[count] = coupling(row, column);
                        sum -= column == row ? 0 : values[count];
                        ++count;
                    }
                }
            }
        }
    }
    values[diagonal] = sum;
    return count;
}

static bool is_own(const struct bench_sparse* s, int column) {
    return column >= s->first && column < s->first + s->rows;
}

/* Returns where in the cache each column is. The caller frees it. */
static int* find_cached(struct bench_sparse* s, size_t* own_count, size_t* remote_count) {
    int columns[kMostInRow], *position = allocate((size_t)s->size, sizeof *position);
    double values[kMostInRow];
    for (int row = s->first; row < s->first + s->rows; ++row) {
        const int count = bench_sparse_row(s, row, columns, values);
        for (int i = 0; i < count; ++i) {
            const bool own = is_own(s, columns[i]);
            ++*(own ? own_count : remote_count);
            s->cached += !own && !position[columns[i]];
            position[columns[i]] |= !own;
        }
    }
    s->cache = allocate((size_t)s->cached, sizeof *s->cache);
    for (int column = 0, at = 0; column < s->size; ++column) {
        if (position[column]) {
            s->cache[at] = column;
            position[column] = at++;
        }
    }
    return position;
}

static void make_part(struct bench_sparse_part* part, int rows, size_t count) {
    part->starts = allocate((size_t)rows + 1, sizeof *part->starts);
    part->columns = allocate(count, sizeof *part->columns);
    part->values = allocate(count, sizeof *part->values);
}

static void fill_parts(struct bench_sparse* s, const int* position) {
    int columns[kMostInRow];
    double values[kMostInRow];
    size_t own_at = 0, remote_at = 0;
    for (int row = 0; row < s->rows; ++row) {
        const int count = bench_sparse_row(s, s->first + row, columns, values);
        for (int i = 0; i < count; ++i) {
            const bool own = is_own(s, columns[i]);
            const struct bench_sparse_part* part = own ? &s->own : &s->remote;
            const size_t at = own ? own_at++ : remote_at++;
            part->columns[at] = own ? columns[i] - s->first : position[columns[i]];
            part->values[at] = values[i];
        }
        s->own.starts[row + 1] = own_at;
        s->remote.starts[row + 1] = remote_at;
    }
}

/* What each rank needs of each other: `in` and `out` count entries, `at` is where they begin in the peer's cache. */
static void find_peers(const struct bench* b, struct bench_sparse* s) {
    const size_t ranks = (size_t)b->ranks;
    int *in = allocate(ranks, sizeof *in), *in_at = allocate(ranks, sizeof *in_at), *out = allocate(ranks, sizeof *out),
        *at = allocate(ranks, sizeof *at);
    for (int rank = 0, i = 0; rank < b->ranks; ++rank) {
        in_at[rank] = i;
        for (const int end = bench_sparse_first_of(s, b, rank + 1); i < s->cached && s->cache[i] < end; ++i) {
            ++in[rank];
        }
    }
    MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(in_at, 1, MPI_INT, at, 1, MPI_INT, MPI_COMM_WORLD);
    s->peer = allocate(ranks, sizeof *s->peer);
    for (int rank = 0; rank < b->ranks; ++rank) {
        if (in[rank] || out[rank]) {
            s->peer[s->peers++] = (struct bench_sparse_peer){rank,      in[rank],       in_at[rank],
                                                             out[rank], s->entries_out, at[rank]};
            s->entries_out += out[rank];
        }
    }
    free(in);
    free(in_at);
    free(out);
    free(at);
}

static void exchange_lists(struct bench_sparse* s) {
    MPI_Request* requests = allocate(2 * (size_t)s->peers, sizeof *requests);
    s->out = allocate((size_t)s->entries_out, sizeof *s->out);
    for (int i = 0; i < s->peers; ++i) {
        const struct bench_sparse_peer* p = &s->peer[i];
        MPI_Irecv(s->out + p->out_at, p->out, MPI_INT, p->rank, kTag, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(s->cache + p->in_at, p->in, MPI_INT, p->rank, kTag, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * s->peers, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < s->entries_out; ++i) {
        s->out[i] -= s->first;
    }
    free(requests);
}

static void describe(const struct bench* b, const struct bench_sparse* s) {
    long long mine[] = {(long long)(s->own.starts[s->rows] + s->remote.starts[s->rows]), s->cached, s->peers}, sums[3];
    MPI_Reduce(mine, sums, 3, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (b->rank == 0) {
        printf("# matrix: %d rows, %lld nonzeros; a rank needs %.0f entries of %.1f others\n", s->size, sums[0],
               (double)sums[1] / b->ranks, (double)sums[2] / b->ranks);
        fflush(stdout);
    }
}

void bench_sparse_open(const struct bench* b, struct bench_sparse* s, size_t size) {
    if (size > kMostRows && b->rank == 0) {
        fprintf(stderr, "a matrix has at most %d rows, not %zu\n", kMostRows, size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has ended the job if it is too large */
    *s = (struct bench_sparse){.size = (int)size};
    s->first = bench_sparse_first_of(s, b, b->rank);
    s->rows = bench_sparse_first_of(s, b, b->rank + 1) - s->first;
    number_nodes(s);
    size_t own = 0, remote = 0;
    int* position = find_cached(s, &own, &remote);
    make_part(&s->own, s->rows, own);
    make_part(&s->remote, s->rows, remote);
    fill_parts(s, position);
    free(position);
    find_peers(b, s);
    exchange_lists(s);
    describe(b, s);
}

struct bench_message* bench_sparse_open_exchange(struct bench* b, const struct bench_sparse* s,
                                                 struct bench_exchange* exchange, int doubles, double* cache) {
    const double* packed = rma_doubles(b->send);
    int* ranks = allocate((size_t)s->peers, sizeof *ranks);
    struct bench_message* messages = allocate((size_t)s->peers, sizeof *messages);
    for (int i = 0; i < s->peers; ++i) {
        ranks[i] = s->peer[i].rank;
    }
    bench_exchange_open(b, exchange, (size_t)doubles * sizeof(double) + kGuardBytes, ranks, s->peers, s->peers);
    cache = cache ? cache : rma_doubles(exchange->memory);
    for (int i = 0; i < s->peers; ++i) {
        const struct bench_sparse_peer* p = &s->peer[i];
        messages[i] = (struct bench_message){.peer = p->rank,
                                             .type = MPI_DOUBLE,
                                             .out = p->out,
                                             .in = p->in,
                                             .from = packed + p->out_at,
                                             .at = (MPI_Aint)((size_t)p->at * sizeof(double)),
                                             .into = cache + p->in_at};
    }
    free(ranks);
    return messages;
}

int bench_sparse_slots(const struct bench* b) {
    (void)b;
    return sizeof(double);
}

static void free_part(struct bench_sparse_part* part) {
    free(part->starts);
    free(part->columns);
    free(part->values);
}

void bench_sparse_close(struct bench_sparse* s) {
    free_part(&s->own);
    free_part(&s->remote);
    free(s->number);
    free(s->place);
    free(s->cache);
    free(s->peer);
    free(s->out);
}

void bench_sparse_multiply(const struct bench_sparse* s, const struct bench_sparse_part* part, const double* vector,
                           double* product, bool add) {
    for (int row = 0; row < s->rows; ++row) {
        double sum = add ? product[row] : 0;
        for (size_t i = part->starts[row]; i < part->starts[row + 1]; ++i) {
            sum += part->values[i] * vector[part->columns[i]];
        }
        product[row] = sum;
    }
}

void bench_sparse_pack(const struct bench_sparse* s, const double* vector, double* out) {
    for (int i = 0; i < s->entries_out; ++i) {
        out[i] = vector[s->out[i]];
    }
}
