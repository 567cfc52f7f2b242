/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of all ranks. Each rank adds up the time it spent in them; the slowest rank's is the figure. The barriers
 * between them are outside of that, and inside of the time that decides how many iterations there are.
 */
#include "bench_common.h"

double bench_operations(struct bench *b, size_t bytes, long iterations, const struct bench_operation *operation)
{
    double inside_s = 0;
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)b->slots) {
        if (b->options.verify) {
            operation->prepare(b, bytes);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin_s = bench_now_s();
        operation->operate(b, bytes);
        inside_s += bench_now_s() - begin_s;
        if (b->options.verify) {
            operation->check(b, bytes);
        }
    }
    const double elapsed_s = bench_now_s() - start_s;
    MPI_Reduce(&inside_s, &b->operation_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return elapsed_s;
}

double bench_operation_us(const struct bench *b, size_t bytes, long iterations, double seconds)
{
    (void)bytes;
    (void)seconds;
    return b->operation_s / (double)iterations * 1e6;
}

MPI_Datatype bench_slot_type(const struct bench *b, size_t bytes)
{
    MPI_Datatype message, slot;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &message);
    MPI_Type_create_resized(message, 0, (MPI_Aint)bench_stride(b, bytes), &slot);
    MPI_Type_commit(&slot);
    MPI_Type_free(&message);
    return slot;
}
