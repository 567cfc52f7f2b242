/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks at equal distances, as in MPI_Type_vector, and what -d does with them: the bytes between the blocks count, too. */
#ifndef COOP_BENCH_SHAPE_H
#define COOP_BENCH_SHAPE_H

#include "bench_common.h"

struct bench_shape {
    size_t count, block, stride; /* bytes; the stride is at least the block */
};

size_t bench_shape_span(const struct bench_shape* shape);       /* from the first byte to the last of the blocks */
MPI_Datatype bench_shape_type(const struct bench_shape* shape); /* of bytes; the caller frees it */

/* Writes a message of this rank into the blocks, and the guard's byte between and after them. */
void bench_shape_fill(const struct bench* b, const struct bench_shape* shape, unsigned char* buffer);
/* Writes the guard's byte between and after the blocks, and into them. */
void bench_shape_clear(const struct bench_shape* shape, unsigned char* buffer);
void bench_shape_check(struct bench* b, const struct bench_shape* shape, unsigned char* buffer, int from);

#endif
