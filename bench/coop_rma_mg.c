/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One V-cycle of multigrid for the Poisson equation on a periodic cube, as in Nieplocha et al., "Optimizing mechanisms
 * for latency tolerance in remote memory access communication on clusters", section 4.3. Ranks form a grid of processes
 * (MPI_Dims_create). Before each sweep over a level, a rank sends the faces of its block to its neighbours, all
 * dimensions at once, and computes the inner points meanwhile. Faces go into buffers of the neighbours and from there
 * to the ghost points, or with --faces strided directly, by datatypes.
 *
 * Points are centres of cells: a cell of the next level has eight cells of this one. A sweep is one of Jacobi's, from
 * one of two arrays into the other, so that an exchange brings the ghost points of another array than the one before;
 * between the two exchanges of the same array are those of the next level.
 *
 * The size is the number of points along an edge of the cube, a power of two. With -d, each rank does the same cycle
 * alone for the whole cube, with the same operations for each point, and compares its block byte by byte.
 */
#include "bench_exchange.h"
#include "bench_multigrid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostPoints = 2048, kMostLevels = 11, kCoarsestSweeps = 8, kPacked = 0 };

static const char* const faces_words[] = {"packed", "strided", NULL};
static double faces_by = kPacked, sweeps = 2;

struct level {
    struct bench_level block;
    double *inbox[2][kFaces], *outbox[kFaces]; /* packed faces */
    MPI_Datatype types[kFaces];
    struct bench_message messages[2][kFaces]; /* of those faces that have a peer */
    int message_of[kFaces];                   /* -1: the other side of the face is here, too */
    int count;
};

struct solver {
    int size, levels;
    struct bench_processes processes;
    struct bench_exchange* exchange; /* NULL: alone */
    unsigned char *memory, *local;
    struct level level[kMostLevels];
};

static struct bench_exchange exchange;
static struct solver parallel, serial; /* serial: with -d only */
static int result;                     /* the array with the solution */

static size_t block_bytes(void) {
    const int* points = parallel.level[0].block.grid.points;
    return (size_t)points[0] * (size_t)points[1] * (size_t)points[2] * sizeof(double);
}

/* Sets `part` and returns the end of it. Without memory it only counts. */
static size_t take(unsigned char* memory, size_t at, size_t doubles, double** part) {
    *part = memory ? rma_doubles(memory + at) : NULL;
    return at + (doubles * sizeof(double) + 63) / 64 * 64;
}

/* What other ranks write. It is the same in all ranks, so places in it are those of the neighbours, too. */
static size_t place_shared(struct solver* s, unsigned char* memory) {
    size_t at = 0;
    for (struct level* l = s->level; l < s->level + s->levels; ++l) {
        for (int turn = 0; turn < 2; ++turn) {
            at = take(memory, at, bench_grid_size(&l->block.grid), &l->block.arrays[turn]);
            for (int face = 0; face < kFaces; ++face) {
                at = take(memory, at, bench_grid_face_size(&l->block.grid, face), &l->inbox[turn][face]);
            }
        }
    }
    return at;
}

static size_t place_local(struct solver* s, unsigned char* memory) {
    size_t at = 0;
    for (struct level* l = s->level; l < s->level + s->levels; ++l) {
        at = take(memory, at, bench_grid_size(&l->block.grid), &l->block.right);
        for (int face = 0; face < kFaces; ++face) {
            at = take(memory, at, bench_grid_face_size(&l->block.grid, face), &l->outbox[face]);
        }
    }
    return at;
}

static void make_levels(struct solver* s) {
    int points[3];
    for (int d = 0; d < 3; ++d) {
        points[d] = s->size / s->processes.dims[d];
    }
    for (int i = 0; i < s->levels; ++i) {
        s->level[i].block = (struct bench_level){.grid = bench_grid_of(points), .distance = (double)(1ull << 2 * i)};
        for (int d = 0; d < 3; ++d) {
            points[d] /= 2;
        }
    }
}

/* What leaves by a face arrives at the face of the other side. */
static struct bench_message message_of(const struct solver* s, const struct level* l, int turn, int face) {
    struct bench_message m = {.peer = s->processes.neighbours[face],
                              .out_tag = face,
                              .in_tag = face ^ 1,
                              .type = l->types[face],
                              .out = 1,
                              .in = 1};
    const double* place;
    if (faces_by == kPacked) {
        m.type = MPI_DOUBLE;
        m.out = m.in = (int)bench_grid_face_size(&l->block.grid, face);
        m.from = l->outbox[face];
        m.into = l->inbox[turn][face];
        place = l->inbox[turn][face ^ 1];
    } else {
        m.from = l->block.arrays[turn] + bench_grid_edge(&l->block.grid, face);
        m.into = l->block.arrays[turn] + bench_grid_ghost(&l->block.grid, face);
        place = l->block.arrays[turn] + bench_grid_ghost(&l->block.grid, face ^ 1);
    }
    m.at = (const unsigned char*)place - s->memory;
    return m;
}

static void make_messages(struct solver* s) {
    for (struct level* l = s->level; l < s->level + s->levels; ++l) {
        for (int face = 0; face < kFaces; ++face) {
            l->types[face] = bench_grid_face_type(&l->block.grid, face);
            l->message_of[face] = s->processes.neighbours[face] == MPI_PROC_NULL ? -1 : l->count++;
            for (int turn = 0; turn < 2 && l->message_of[face] >= 0; ++turn) {
                l->messages[turn][l->message_of[face]] = message_of(s, l, turn, face);
            }
        }
    }
}

static void open_solver(struct bench* b, struct solver* s) {
    int ranks[kFaces], peers = 0;
    make_levels(s);
    for (int face = 0; face < kFaces; ++face) {
        bool known = s->processes.neighbours[face] == MPI_PROC_NULL;
        for (int i = 0; i < peers; ++i) {
            known |= ranks[i] == s->processes.neighbours[face];
        }
        ranks[peers] = s->processes.neighbours[face];
        peers += !known;
    }
    if (s->exchange) {
        bench_exchange_open(b, s->exchange, place_shared(s, NULL), ranks, peers, kFaces);
    }
    s->memory = s->exchange ? s->exchange->memory : bench_new_buffer(b, place_shared(s, NULL));
    s->local = bench_new_buffer(b, place_local(s, NULL));
    place_shared(s, s->memory);
    place_local(s, s->local);
    make_messages(s);
}

static void close_solver(struct solver* s) {
    for (int i = 0; i < s->levels; ++i) {
        for (int face = 0; face < kFaces; ++face) {
            MPI_Type_free(&s->level[i].types[face]);
        }
    }
    free(s->local);
    if (s->exchange) {
        bench_exchange_close(s->exchange);
    } else {
        free(s->memory);
    }
}

static void send_face(const struct solver* s, const struct level* l, int turn, int face) {
    if (faces_by == kPacked) {
        bench_grid_pack(&l->block.grid, face, l->block.arrays[turn], l->outbox[face]);
    }
    bench_exchange_send(s->exchange, &l->messages[turn][l->message_of[face]]);
}

/* Without a sweep it only exchanges. */
static void exchange_and_sweep(const struct solver* s, const struct level* l, int turn, bench_sweep sweep) {
    if (s->exchange) {
        bench_exchange_begin(s->exchange, l->messages[turn], l->count);
    }
    for (int face = 0; face < kFaces; ++face) {
        if (l->message_of[face] >= 0) {
            send_face(s, l, turn, face);
        } else {
            bench_grid_wrap(&l->block.grid, face, l->block.arrays[turn]);
        }
    }
    if (sweep) {
        bench_level_sweep_inside(&l->block, turn, sweep);
    }
    if (s->exchange) {
        bench_exchange_end(s->exchange);
    }
    for (int face = 0; face < kFaces && faces_by == kPacked; ++face) {
        if (l->message_of[face] >= 0) {
            bench_grid_unpack(&l->block.grid, face, l->inbox[turn][face], l->block.arrays[turn]);
        }
    }
    if (sweep) {
        bench_level_sweep_shell(&l->block, turn, sweep);
    }
}

/* Returns which array has the solution. */
static int cycle(const struct solver* s, int depth) {
    const struct level *l = &s->level[depth], *coarse = l + 1;
    int turn = 0;
    bench_level_smooth_zero(&l->block);
    const bool coarsest = depth + 1 == s->levels;
    for (int i = 1; i < (coarsest ? kCoarsestSweeps : (int)sweeps); ++i, turn ^= 1) {
        exchange_and_sweep(s, l, turn, bench_level_smooth);
    }
    if (coarsest) {
        return turn;
    }
    exchange_and_sweep(s, l, turn, bench_level_residual);
    bench_level_restrict(&l->block, turn ^ 1, &coarse->block);
    const int found = cycle(s, depth + 1);
    exchange_and_sweep(s, coarse, found, NULL);
    bench_level_correct(&l->block, turn, &coarse->block, found);
    for (int i = 0; i < (int)sweeps; ++i, turn ^= 1) {
        exchange_and_sweep(s, l, turn, bench_level_smooth);
    }
    return turn;
}

/* Without an exchange the solver has the whole cube. */
static struct solver new_solver(const struct bench* b, int size, struct bench_exchange* with) {
    struct solver s = {.size = size, .exchange = with};
    s.processes = with ? bench_processes_of(b->ranks, b->rank) : bench_processes_of(1, 0);
    for (int edge = size / bench_processes_of(b->ranks, 0).dims[0]; edge > 1; edge /= 2) {
        ++s.levels; /* the last one has two points along the shortest edge of the blocks of the job */
    }
    return s;
}

/* A value and the one half a cube away have a sum of zero, as the equation has no solution otherwise. */
static double right_side(const struct bench* b, int size, const int* at) {
    const int half = size / 2, sign = at[0] < half ? 1 : -1;
    const uint64_t point = ((uint64_t)(at[0] % half) * (uint64_t)size + (uint64_t)at[1]) * (uint64_t)size +
                           (uint64_t)at[2];
    const uint64_t mixed = (point + b->message + 1) * 0x9e3779b97f4a7c15u;
    return sign * (double)((mixed ^ mixed >> 32) >> 20 & 255);
}

static void fill(const struct bench* b, struct solver* s) {
    const struct bench_level* l = &s->level[0].block;
    const int* points = l->grid.points;
    for (int z = 0; z < points[0]; ++z) {
        for (int y = 0; y < points[1]; ++y) {
            double* row = l->right + (size_t)(z + 1) * l->grid.stride[0] + (size_t)(y + 1) * l->grid.stride[1] + 1;
            for (int x = 0; x < points[2]; ++x) {
                const int at[] = {s->processes.coords[0] * points[0] + z, s->processes.coords[1] * points[1] + y,
                                  s->processes.coords[2] * points[2] + x};
                row[x] = right_side(b, s->size, at);
            }
        }
    }
}

static void prepare(struct bench* b, size_t size) {
    (void)size;
    fill(b, &parallel);
}

static void operate(struct bench* b, size_t size) {
    (void)b;
    (void)size;
    result = cycle(&parallel, 0);
}

/* The points of this rank's block, without gaps. */
static double* block_in(const struct bench* b, const struct solver* s) {
    const int* points = parallel.level[0].block.grid.points;
    double* block = rma_doubles(bench_new_buffer(b, block_bytes()));
    int low[3];
    for (int d = 0; d < 3; ++d) {
        low[d] = s->exchange ? 1 : 1 + parallel.processes.coords[d] * points[d];
    }
    bench_grid_copy_block(&s->level[0].block.grid, low, points, s->level[0].block.arrays[result], block);
    return block;
}

static void check(struct bench* b, size_t size) {
    (void)size;
    fill(b, &serial);
    cycle(&serial, 0);
    double *found = block_in(b, &parallel), *expected = block_in(b, &serial);
    bench_check_bytes(b, (void*)found, block_bytes(), 0, (const void*)expected, "block of the solution");
    free(found);
    free(expected);
}

static void close_solvers(struct bench* b) {
    close_solver(&parallel);
    if (b->options.verify) {
        close_solver(&serial);
    }
}

static double seconds(struct bench* b, size_t size, long iterations) {
    static const struct bench_operation operation = {prepare, operate, check};
    if ((size_t)parallel.size != size) {
        if (parallel.size) {
            close_solvers(b);
        }
        parallel = new_solver(b, (int)size, &exchange);
        open_solver(b, &parallel);
        fill(b, &parallel);
        if (b->options.verify) {
            serial = new_solver(b, (int)size, NULL);
            open_solver(b, &serial);
        }
    }
    return bench_operations(b, size, iterations, &operation);
}

static void complain(const struct bench* b, const char* allowed) {
    if (b->rank == 0) {
        fprintf(stderr, "coop_rma_mg: needs %s\n", allowed);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* until rank 0 has ended the job */
}

static bool is_power_of_two(size_t number) { return (number & (number - 1)) == 0; }

static void start(struct bench* b) {
    const size_t low = b->options.min_bytes, high = b->options.max_bytes;
    const struct bench_processes processes = bench_processes_of(b->ranks, b->rank);
    const int* dims = processes.dims;
    if (!is_power_of_two((size_t)b->ranks)) {
        complain(b, "a number of ranks that is a power of two");
    } else if (!is_power_of_two(low) || low < 2 * (size_t)dims[0] || high > kMostPoints) {
        complain(b, "sizes that are powers of two, at least two points per process, at most 2048");
    }
    if (b->rank == 0) {
        printf("# grid: %d x %d x %d\n", dims[0], dims[1], dims[2]);
    }
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {bench_exchange_puts_option,
                                        bench_exchange_sync_option,
                                        bench_rma_window_option,
                                        {.name = "faces",
                                         .value = "FACES",
                                         .help = "packed (default): copied to and from buffers; strided: by datatypes",
                                         .words = faces_words,
                                         .target = &faces_by},
                                        {.name = "sweeps",
                                         .value = "N",
                                         .help = "sweeps before and after those of the next level (default 2)",
                                         .low = 1,
                                         .high = 100,
                                         .whole = true,
                                         .target = &sweeps},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_rma_mg",
                                    .summary = "V-cycle of multigrid on a periodic cube",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_min_bytes = 32,
                                    .default_max_bytes = 256,
                                    .extra = extra,
                                    .start = start,
                                    .end = close_solvers,
                                    .seconds = seconds,
                                    .figure = bench_operation_us};
    return bench_main(argc, argv, &spec);
}
