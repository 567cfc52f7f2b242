/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conjugate gradient on the sparse matrix of bench_sparse.h, as in Nieplocha et al., "Optimizing mechanisms for latency
 * tolerance in remote memory access communication on clusters", section 4.3. Each of --steps iterations from zero sends
 * the entries of the search direction that other ranks need into their caches, one message to each, multiplies the own
 * part of the matrix meanwhile, and adds two scalars over all ranks (MPI_Allreduce). The second addition separates the
 * exchanges, so that they can use the same cache.
 *
 * The size is the number of rows. With -d, every byte of a cache is compared with the whole direction (MPI_Allgatherv),
 * and the residual at the end with the one that the iterations computed along with the solution.
 */
#include "bench_sparse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Rounding leaves less than this, relative to the right side, between the residual and the one of the iterations. */
#define TOLERANCE 1e-9

static double steps = 25;
static struct bench_sparse matrix;     /* valid if matrix.size is not 0 */
static struct bench_exchange exchange; /* its memory is the cache */
static struct bench_message* messages;
static double *right, *solution, *residual, *direction, *product; /* own rows */
static double* whole;                                             /* a vector of all rows */
static int *counts, *firsts;                                      /* rows of each rank */
static double squares;                                            /* of the residual */

static double* new_vector(const struct bench* b, int rows) {
    return rma_doubles(bench_new_buffer(b, ((size_t)rows + 1) * sizeof(double)));
}

static void open_matrix(struct bench* b, size_t size) {
    bench_sparse_open(b, &matrix, size);
    messages = bench_sparse_open_exchange(b, &matrix, &exchange, matrix.cached, NULL);
    right = new_vector(b, matrix.rows);
    solution = new_vector(b, matrix.rows);
    residual = new_vector(b, matrix.rows);
    direction = new_vector(b, matrix.rows);
    product = new_vector(b, matrix.rows);
    whole = new_vector(b, b->options.verify ? matrix.size : 0);
    counts = malloc((size_t)b->ranks * sizeof *counts);
    firsts = malloc((size_t)b->ranks * sizeof *firsts);
    for (int rank = 0; rank < b->ranks; ++rank) {
        firsts[rank] = bench_sparse_first_of(&matrix, b, rank);
        counts[rank] = bench_sparse_first_of(&matrix, b, rank + 1) - firsts[rank];
    }
    for (int row = 0; row < matrix.rows; ++row) {
        right[row] = bench_sparse_entry(matrix.first + row, b->message);
    }
}

static void close_matrix(struct bench* b) {
    (void)b;
    bench_exchange_close(&exchange);
    bench_sparse_close(&matrix);
    double* const vectors[] = {right, solution, residual, direction, product, whole};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; ++i) {
        free(vectors[i]);
    }
    free(messages);
    free(counts);
    free(firsts);
}

static double scalar_product(const double* x, const double* y) {
    double mine = 0, sum;
    for (int row = 0; row < matrix.rows; ++row) {
        mine += x[row] * y[row];
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void gather(const double* vector) {
    MPI_Allgatherv(vector, matrix.rows, MPI_DOUBLE, whole, counts, firsts, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void check_cache(struct bench* b) {
    double* expected = new_vector(b, matrix.cached);
    gather(direction);
    for (int i = 0; i < matrix.cached; ++i) {
        expected[i] = whole[matrix.cache[i]];
    }
    bench_check_bytes(b, exchange.memory, (size_t)matrix.cached * sizeof *expected, kGuardBytes, (const void*)expected,
                      "entries of the direction");
    free(expected);
}

/* product = matrix * direction */
static void multiply(struct bench* b) {
    bench_exchange_begin(&exchange, messages, matrix.peers);
    bench_sparse_pack(&matrix, direction, rma_doubles(b->send));
    for (int i = 0; i < matrix.peers; ++i) {
        bench_exchange_send(&exchange, &messages[i]);
    }
    bench_sparse_multiply(&matrix, &matrix.own, direction, product, false);
    bench_exchange_end(&exchange);
    if (b->options.verify) {
        check_cache(b);
    }
    bench_sparse_multiply(&matrix, &matrix.remote, rma_doubles(exchange.memory), product, true);
}

static void begin(void) {
    for (int row = 0; row < matrix.rows; ++row) {
        solution[row] = 0;
        residual[row] = direction[row] = right[row];
    }
    squares = scalar_product(residual, residual);
}

static void step(struct bench* b) {
    multiply(b);
    const double energy = scalar_product(direction, product), length = energy > 0 ? squares / energy : 0;
    for (int row = 0; row < matrix.rows; ++row) {
        solution[row] += length * direction[row];
        residual[row] -= length * product[row];
    }
    const double before = squares;
    squares = scalar_product(residual, residual);
    const double share = before > 0 ? squares / before : 0;
    for (int row = 0; row < matrix.rows; ++row) {
        direction[row] = residual[row] + share * direction[row];
    }
}

static void prepare(struct bench* b, size_t size) {
    (void)size;
    for (int row = 0; row < matrix.rows; ++row) {
        right[row] = bench_sparse_entry(matrix.first + row, b->message);
    }
    bench_exchange_own(&exchange);
    bench_guard(exchange.memory, (size_t)matrix.cached * sizeof(double));
    bench_exchange_disown(&exchange);
}

static void operate(struct bench* b, size_t size) {
    (void)size;
    begin();
    for (int i = 0; i < (int)steps; ++i) {
        step(b);
    }
}

/* The right side minus the product of the solution and the rows as they are generated, compared with the residual. */
static void check(struct bench* b, size_t size) {
    (void)size;
    int columns[kMostInRow];
    double values[kMostInRow];
    gather(solution);
    for (int row = 0; row < matrix.rows; ++row) {
        const int count = bench_sparse_row(&matrix, matrix.first + row, columns, values);
        product[row] = right[row] - residual[row];
        for (int i = 0; i < count; ++i) {
            product[row] -= values[i] * whole[columns[i]];
        }
    }
    const double off = sqrt(scalar_product(product, product)), length = sqrt(scalar_product(right, right));
    if (!(off <= TOLERANCE * length) || !(squares < length * length)) {
        fprintf(stderr, "rank %d: the residual is off by %g and has the length %g; the right side has %g\n", b->rank,
                off, sqrt(squares), length);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
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
    const struct bench_extra extra[] = {bench_exchange_puts_option,
                                        bench_exchange_sync_option,
                                        bench_rma_window_option,
                                        bench_sparse_shuffle_option,
                                        {.name = "steps",
                                         .value = "N",
                                         .help = "iterations of a solution (default 25)",
                                         .low = 1,
                                         .high = 1000,
                                         .whole = true,
                                         .target = &steps},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_cg",
                                    .summary = "conjugate gradient on a distributed sparse matrix",
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
