/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t bench_shape_span(const struct bench_shape* shape) { return (shape->count - 1) * shape->stride + shape->block; }

MPI_Datatype bench_shape_type(const struct bench_shape* shape) {
    MPI_Datatype block, type;
    MPI_Type_contiguous((int)shape->block, MPI_BYTE, &block);
    MPI_Type_create_hvector((int)shape->count, 1, (MPI_Aint)shape->stride, block, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block);
    return type;
}

void bench_shape_clear(const struct bench_shape* shape, unsigned char* buffer) {
    memset(buffer, kGuardByte, bench_shape_span(shape) + kGuardBytes);
}

static void scatter(const struct bench* b, const struct bench_shape* shape, unsigned char* buffer, int from) {
    unsigned char* message = bench_new_buffer(b, shape->count * shape->block);
    bench_fill(message, shape->count * shape->block, from, b->message);
    bench_shape_clear(shape, buffer);
    for (size_t i = 0; i < shape->count; ++i) {
        memcpy(buffer + i * shape->stride, message + i * shape->block, shape->block);
    }
    free(message);
}

void bench_shape_fill(const struct bench* b, const struct bench_shape* shape, unsigned char* buffer) {
    scatter(b, shape, buffer, b->rank);
}

void bench_shape_check(struct bench* b, const struct bench_shape* shape, unsigned char* buffer, int from) {
    char what[80];
    unsigned char* expected = bench_new_buffer(b, bench_shape_span(shape) + kGuardBytes);
    scatter(b, shape, expected, from);
    snprintf(what, sizeof what, "message %llu, %zu blocks of %zu bytes from rank %d", (unsigned long long)b->message,
             shape->count, shape->block, from);
    bench_check_bytes(b, buffer, bench_shape_span(shape), kGuardBytes, expected, what);
    free(expected);
}
