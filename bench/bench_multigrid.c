/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_multigrid.h"

#define DAMPING 0.8

static struct bench_box all_of(const struct bench_level* l) {
    const int* p = l->grid.points;
    return (struct bench_box){{1, 1, 1}, {p[0], p[1], p[2]}};
}

/* Six times a point minus its neighbours. */
static double curvature(const double* u, const size_t* stride) {
    return 6 * *u - (u[-(ptrdiff_t)stride[0]] + u[stride[0]] + u[-(ptrdiff_t)stride[1]] + u[stride[1]] + u[-1] + u[1]);
}

/* The point of a row of the box that would be at 0. */
static size_t row_at(const struct bench_level* l, int z, int y) {
    return (size_t)z * l->grid.stride[0] + (size_t)y * l->grid.stride[1];
}

void bench_level_smooth(const struct bench_level* l, int turn, const struct bench_box* box) {
    const double *from = l->arrays[turn], *right = l->right, scale = l->distance, share = DAMPING / 6;
    double* to = l->arrays[turn ^ 1];
    for (int z = box->low[0]; z <= box->high[0]; ++z) {
        for (int y = box->low[1]; y <= box->high[1]; ++y) {
            const size_t row = row_at(l, z, y);
            for (size_t at = row + (size_t)box->low[2]; at <= row + (size_t)box->high[2]; ++at) {
                to[at] = from[at] + share * (scale * right[at] - curvature(from + at, l->grid.stride));
            }
        }
    }
}

void bench_level_residual(const struct bench_level* l, int turn, const struct bench_box* box) {
    const double *from = l->arrays[turn], *right = l->right, scale = l->distance;
    double* to = l->arrays[turn ^ 1];
    for (int z = box->low[0]; z <= box->high[0]; ++z) {
        for (int y = box->low[1]; y <= box->high[1]; ++y) {
            const size_t row = row_at(l, z, y);
            for (size_t at = row + (size_t)box->low[2]; at <= row + (size_t)box->high[2]; ++at) {
                to[at] = right[at] - curvature(from + at, l->grid.stride) / scale;
            }
        }
    }
}

/* The points that have ghosts as neighbours: two slabs in each dimension, without those of the dimensions before. */
void bench_level_sweep_shell(const struct bench_level* l, int turn, bench_sweep sweep) {
    struct bench_box rest = all_of(l);
    for (int d = 0; d < 3; ++d) {
        struct bench_box low = rest, high = rest;
        low.high[d] = low.low[d];
        high.low[d] = high.high[d];
        sweep(l, turn, &low);
        sweep(l, turn, &high);
        ++rest.low[d];
        --rest.high[d];
    }
}

void bench_level_sweep_inside(const struct bench_level* l, int turn, bench_sweep sweep) {
    struct bench_box box = all_of(l);
    for (int d = 0; d < 3; ++d) {
        ++box.low[d];
        --box.high[d];
    }
    sweep(l, turn, &box);
}

void bench_level_smooth_zero(const struct bench_level* l) {
    const struct bench_box box = all_of(l);
    for (int z = 1; z <= box.high[0]; ++z) {
        for (int y = 1; y <= box.high[1]; ++y) {
            const size_t row = row_at(l, z, y);
            for (size_t at = row + 1; at <= row + (size_t)box.high[2]; ++at) {
                l->arrays[0][at] = DAMPING / 6 * (l->distance * l->right[at]);
            }
        }
    }
}

void bench_level_restrict(const struct bench_level* l, int turn, const struct bench_level* coarse) {
    const struct bench_box box = all_of(coarse);
    const size_t up = l->grid.stride[0], over = l->grid.stride[1];
    for (int z = 1; z <= box.high[0]; ++z) {
        for (int y = 1; y <= box.high[1]; ++y) {
            double* to = coarse->right + row_at(coarse, z, y);
            const double* from = l->arrays[turn] + row_at(l, 2 * z - 1, 2 * y - 1);
            for (int x = 1; x <= box.high[2]; ++x) {
                const double* p = from + 2 * x - 1;
                to[x] = (p[0] + p[1] + p[over] + p[over + 1] + p[up] + p[up + 1] + p[up + over] + p[up + over + 1]) / 8;
            }
        }
    }
}

/* From the centre of a coarse cell towards the fine cell with this coordinate. */
static ptrdiff_t towards(int fine, size_t stride) { return fine % 2 ? -(ptrdiff_t)stride : (ptrdiff_t)stride; }

void bench_level_correct(const struct bench_level* l, int turn, const struct bench_level* coarse, int coarse_turn) {
    const struct bench_box box = all_of(l);
    for (int z = 1; z <= box.high[0]; ++z) {
        for (int y = 1; y <= box.high[1]; ++y) {
            const ptrdiff_t up = towards(z, coarse->grid.stride[0]), over = towards(y, coarse->grid.stride[1]);
            double* to = l->arrays[turn] + row_at(l, z, y);
            const double* from = coarse->arrays[coarse_turn] + row_at(coarse, (z + 1) / 2, (y + 1) / 2);
            for (int x = 1; x <= box.high[2]; ++x) {
                const double* p = from + (x + 1) / 2;
                to[x] += (p[0] + p[up] + p[over] + p[towards(x, 1)]) / 4;
            }
        }
    }
}
