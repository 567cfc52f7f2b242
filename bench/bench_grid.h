/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A periodic 3-D grid of doubles that processes divide into blocks. A block has a layer of ghost points around it. Dimension 2 is
 * contiguous in memory. Own points have the coordinates 1 to points[d]; 0 and points[d] + 1 are ghosts. Face 2d is on
 * the lower side of dimension d, face 2d + 1 on the higher one; a face has no edges.
 */
#ifndef COOP_BENCH_GRID_H
#define COOP_BENCH_GRID_H

#include <mpi.h>
#include <stddef.h>

enum { kFaces = 6 };

/* A periodic grid of processes (MPI_Dims_create). neighbours[face] is MPI_PROC_NULL where a process is its own. */
struct bench_processes {
    int dims[3], coords[3], neighbours[kFaces];
};

struct bench_processes bench_processes_of(int ranks, int rank);

struct bench_grid {
    int points[3];
    size_t stride[3]; /* in doubles */
};

struct bench_grid bench_grid_of(const int* points);

/* In doubles: with the ghosts, and of a face. */
size_t bench_grid_size(const struct bench_grid* g);
size_t bench_grid_face_size(const struct bench_grid* g, int face);

/* Where the own points of a face begin, and the ghosts beside them. */
size_t bench_grid_edge(const struct bench_grid* g, int face);
size_t bench_grid_ghost(const struct bench_grid* g, int face);

/* The points of a face, without gaps in a fixed order, or in place. The caller frees the type. */
void bench_grid_pack(const struct bench_grid* g, int face, const double* grid, double* packed);
void bench_grid_unpack(const struct bench_grid* g, int face, const double* packed, double* grid);
MPI_Datatype bench_grid_face_type(const struct bench_grid* g, int face);

/* Copies the face of the other side to the ghosts of this one. */
void bench_grid_wrap(const struct bench_grid* g, int face, double* grid);

/* Copies the points of a smaller block, without gaps. `low`: its first point. */
void bench_grid_copy_block(const struct bench_grid* g, const int* low, const int* points, const double* grid,
                           double* packed);

#endif
