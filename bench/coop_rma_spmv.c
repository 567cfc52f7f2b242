/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Product of a sparse matrix and a vector, both distributed by rows, as in Nieplocha et al., "Optimizing mechanisms for
 * latency tolerance in remote memory access communication on clusters", section 4.2: a rank gets the entries of the
 * vector that its rows need from their owners into a cache, with one MPI_Get of each run of neighbouring entries, or of
 * each entry (--runs entries). With --way get, it multiplies the own part of the matrix meanwhile. With --way isend,
 * the owners know what others need, and send it in one message to each.
 *
 * The size is the number of rows. With -d, the product is compared with that of the rows as they are generated.
 */
#include "bench_sparse.h"

#include <stdlib.h>
#include <string.h>

enum { kRuns, kEntries };

static const char* const lengths[] = {"runs", "entries", NULL};
static double length = kRuns;

/* Entries that one MPI_Get fetches. */
struct run {
    int rank;
    int at, into; /* in the vector of the rank, in the cache */
    int count;
};

static struct bench_sparse matrix;     /* valid if matrix.size is not 0 */
static struct bench_exchange exchange; /* its memory is the own part of the vector */
static struct bench_message* messages; /* with isend */
static double* cache;
static struct run* runs;
static int run_count;

static void find_runs(const struct bench* b) {
    runs = malloc((size_t)(matrix.cached + 1) * sizeof *runs);
    run_count = 0;
    for (int i = 0; i < matrix.peers; ++i) {
        const struct bench_sparse_peer* p = &matrix.peer[i];
        const int first = bench_sparse_first_of(&matrix, b, p->rank);
        for (int at = p->in_at; at < p->in_at + p->in; ++at) {
            const bool follows = at > p->in_at && matrix.cache[at] == matrix.cache[at - 1] + 1;
            if (follows && length == kRuns) {
                ++runs[run_count - 1].count;
            } else {
                runs[run_count++] = (struct run){p->rank, matrix.cache[at] - first, at, 1};
            }
        }
    }
}

static void fill(const struct bench* b) {
    for (int row = 0; row < matrix.rows; ++row) {
        rma_doubles(exchange.memory)[row] = bench_sparse_entry(matrix.first + row, b->message);
    }
}

static void open_matrix(struct bench* b, size_t size) {
    bench_sparse_open(b, &matrix, size);
    exchange.gets = true;
    cache = rma_doubles(bench_new_buffer(b, ((size_t)matrix.cached + 1) * sizeof *cache));
    messages = bench_sparse_open_exchange(b, &matrix, &exchange, matrix.rows, cache);
    find_runs(b);
    bench_exchange_own(&exchange);
    fill(b);
    bench_exchange_disown(&exchange);
}

static void close_matrix(struct bench* b) {
    (void)b;
    bench_exchange_close(&exchange);
    bench_sparse_close(&matrix);
    free(cache);
    free(runs);
    free(messages);
}

static void prepare(struct bench* b, size_t size) {
    (void)size;
    bench_exchange_own(&exchange);
    fill(b);
    bench_exchange_disown(&exchange);
    memset(cache, kGuardByte, (size_t)matrix.cached * sizeof *cache);
    bench_guard(b->recv, (size_t)matrix.rows * sizeof(double));
}

/* Requests what the remote part needs. */
static void fetch(const struct bench* b) {
    if (bench_exchange_way != kIsend) {
        bench_exchange_begin(&exchange, NULL, 0);
        for (const struct run* r = runs; r < runs + run_count; ++r) {
            bench_exchange_get(&exchange, r->rank, (MPI_Aint)((size_t)r->at * sizeof *cache), cache + r->into,
                               r->count);
        }
        return;
    }
    bench_exchange_begin(&exchange, messages, matrix.peers);
    bench_sparse_pack(&matrix, rma_doubles(exchange.memory), rma_doubles(b->send));
    for (int i = 0; i < matrix.peers; ++i) {
        bench_exchange_send(&exchange, &messages[i]);
    }
}

static void operate(struct bench* b, size_t size) {
    (void)size;
    fetch(b);
    bench_sparse_multiply(&matrix, &matrix.own, rma_doubles(exchange.memory), rma_doubles(b->recv), false);
    bench_exchange_end(&exchange);
    bench_sparse_multiply(&matrix, &matrix.remote, cache, rma_doubles(b->recv), true);
}

static void check(struct bench* b, size_t size) {
    (void)size;
    int columns[kMostInRow];
    double values[kMostInRow], *product = malloc(((size_t)matrix.rows + 1) * sizeof *product);
    for (int row = 0; row < matrix.rows; ++row) {
        const int count = bench_sparse_row(&matrix, matrix.first + row, columns, values);
        product[row] = 0;
        for (int i = 0; i < count; ++i) {
            product[row] += values[i] * bench_sparse_entry(columns[i], b->message);
        }
    }
    bench_check_bytes(b, b->recv, (size_t)matrix.rows * sizeof *product, kGuardBytes, (const void*)product, "product");
    free(product);
}

static double seconds(struct bench* b, size_t size, long iterations) {
    static const struct bench_operation operation = {prepare, operate, check};
    if ((size_t)matrix.size != size) {
        if (matrix.size) {
            close_matrix(b);
        }
        open_matrix(b, size);
    }
    return bench_operations(b, size, iterations, &operation);
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {bench_exchange_gets_option,
                                        bench_exchange_sync_option,
                                        bench_rma_window_option,
                                        bench_sparse_shuffle_option,
                                        {.name = "runs",
                                         .value = "LENGTH",
                                         .help = "runs (default): a get of each run of entries; entries: of each entry",
                                         .words = lengths,
                                         .target = &length},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_spmv",
                                    .summary = "product of a distributed sparse matrix and a vector",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_min_bytes = 41092,
                                    .default_max_bytes = 41092,
                                    .slots = bench_sparse_slots,
                                    .extra = extra,
                                    .end = close_matrix,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
