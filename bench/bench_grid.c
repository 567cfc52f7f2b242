/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_grid.h"

#include <string.h>

struct bench_processes bench_processes_of(int ranks, int rank) {
    struct bench_processes p = {.dims = {0, 0, 0}};
    MPI_Dims_create(ranks, 3, p.dims);
    for (int d = 0, below = ranks; d < 3; ++d) {
        const int length = p.dims[d];
        below /= length;
        p.coords[d] = rank / below % length;
        for (int side = 0; side < 2; ++side) {
            const int beside = (p.coords[d] + (side ? 1 : length - 1)) % length;
            p.neighbours[2 * d + side] = length == 1 ? MPI_PROC_NULL : rank + (beside - p.coords[d]) * below;
        }
    }
    return p;
}

/* Points in two dimensions: rows at a distance, and points at a distance in each of them. */
struct plane {
    int rows, columns;
    size_t row, column;
};

struct bench_grid bench_grid_of(const int* points) {
    struct bench_grid g = {.points = {points[0], points[1], points[2]}};
    g.stride[2] = 1;
    g.stride[1] = (size_t)points[2] + 2;
    g.stride[0] = g.stride[1] * ((size_t)points[1] + 2);
    return g;
}

size_t bench_grid_size(const struct bench_grid* g) { return g->stride[0] * ((size_t)g->points[0] + 2); }

static struct plane plane_of(const struct bench_grid* g, int face) {
    const int dimension = face / 2, row = dimension == 0 ? 1 : 0, column = dimension == 2 ? 1 : 2;
    return (struct plane){g->points[row], g->points[column], g->stride[row], g->stride[column]};
}

static struct plane packed_plane_of(const struct bench_grid* g, int face) {
    const struct plane p = plane_of(g, face);
    return (struct plane){p.rows, p.columns, (size_t)p.columns, 1};
}

size_t bench_grid_face_size(const struct bench_grid* g, int face) {
    const struct plane p = plane_of(g, face);
    return (size_t)p.rows * (size_t)p.columns;
}

/* Of the points of a face's plane with this coordinate. */
static size_t first_of(const struct bench_grid* g, int face, int coordinate) {
    const struct plane p = plane_of(g, face);
    return (size_t)coordinate * g->stride[face / 2] + p.row + p.column;
}

size_t bench_grid_edge(const struct bench_grid* g, int face) {
    return first_of(g, face, face % 2 ? g->points[face / 2] : 1);
}

size_t bench_grid_ghost(const struct bench_grid* g, int face) {
    return first_of(g, face, face % 2 ? g->points[face / 2] + 1 : 0);
}

static void copy(const double* from, struct plane source, double* to, struct plane target) {
    for (int row = 0; row < source.rows; ++row, from += source.row, to += target.row) {
        for (int column = 0; column < source.columns; ++column) {
            to[(size_t)column * target.column] = from[(size_t)column * source.column];
        }
    }
}

void bench_grid_pack(const struct bench_grid* g, int face, const double* grid, double* packed) {
    copy(grid + bench_grid_edge(g, face), plane_of(g, face), packed, packed_plane_of(g, face));
}

void bench_grid_unpack(const struct bench_grid* g, int face, const double* packed, double* grid) {
    copy(packed, packed_plane_of(g, face), grid + bench_grid_ghost(g, face), plane_of(g, face));
}

void bench_grid_wrap(const struct bench_grid* g, int face, double* grid) {
    copy(grid + bench_grid_edge(g, face ^ 1), plane_of(g, face), grid + bench_grid_ghost(g, face), plane_of(g, face));
}

MPI_Datatype bench_grid_face_type(const struct bench_grid* g, int face) {
    const struct plane p = plane_of(g, face);
    MPI_Datatype row, type;
    MPI_Type_vector(p.columns, 1, (int)p.column, MPI_DOUBLE, &row);
    MPI_Type_create_hvector(p.rows, 1, (MPI_Aint)(p.row * sizeof(double)), row, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&row);
    return type;
}

void bench_grid_copy_block(const struct bench_grid* g, const int* low, const int* points, const double* grid,
                           double* packed) {
    for (int i = 0; i < points[0] * points[1]; ++i) {
        const int z = low[0] + i / points[1], y = low[1] + i % points[1];
        const double* row = grid + (size_t)z * g->stride[0] + (size_t)y * g->stride[1] + low[2];
        memcpy(packed + (size_t)i * (size_t)points[2], row, (size_t)points[2] * sizeof *row);
    }
}
