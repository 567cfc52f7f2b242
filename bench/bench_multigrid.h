/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of multigrid on a block of one level. Points are centres of cells: a cell of the next level has eight
 * cells of this one. What is done to a point does not depend on the blocks, so the results are the same bit for bit
 * however the cube is divided. Sweeps read one array with its ghost points and write the own points of the other one.
 */
#ifndef COOP_BENCH_MULTIGRID_H
#define COOP_BENCH_MULTIGRID_H

#include "bench_grid.h"

struct bench_level {
    struct bench_grid grid;
    double distance; /* of neighbouring points, its square */
    double* right;   /* the right side of the equation; only own points count */
    double* arrays[2];
};

/* Points from low to high, both included. */
struct bench_box {
    int low[3], high[3];
};

/* Reads the array `turn`, writes the other one: a sweep of Jacobi's, or the residual. */
typedef void (*bench_sweep)(const struct bench_level* l, int turn, const struct bench_box* box);
void bench_level_smooth(const struct bench_level* l, int turn, const struct bench_box* box);
void bench_level_residual(const struct bench_level* l, int turn, const struct bench_box* box);

/* A sweep in two steps: the points that need no ghosts, and the others. */
void bench_level_sweep_inside(const struct bench_level* l, int turn, bench_sweep sweep);
void bench_level_sweep_shell(const struct bench_level* l, int turn, bench_sweep sweep);

/* The first sweep, from zero, into array 0. It needs no neighbours. */
void bench_level_smooth_zero(const struct bench_level* l);

/* Sets the right side of the next level to the means of an array of this one. */
void bench_level_restrict(const struct bench_level* l, int turn, const struct bench_level* coarse);

/* Interpolates an array of the next level, with its ghost points, linearly and adds it to one of this level. */
void bench_level_correct(const struct bench_level* l, int turn, const struct bench_level* coarse, int coarse_turn);

#endif
