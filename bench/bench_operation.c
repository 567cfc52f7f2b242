/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of all ranks. Each rank adds up the time it spent in them; the figure is the time of the slowest rank. It
 * excludes the barriers between operations; the time that decides the number of iterations includes them.
 *
 * Below: code shared by the programs whose operation has one message per rank, from or to rank 0.
 */
#include "bench_common.h"

double bench_operations(struct bench* b, size_t bytes, long iterations, const struct bench_operation* operation) {
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

double bench_operation_us(const struct bench* b, size_t bytes, long iterations, double seconds) {
    (void)bytes;
    (void)seconds;
    return b->operation_s / (double)iterations * 1e6;
}

MPI_Datatype bench_slot_type(const struct bench* b, size_t bytes) {
    MPI_Datatype message, slot;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &message);
    MPI_Type_create_resized(message, 0, (MPI_Aint)bench_stride(b, bytes), &slot);
    MPI_Type_commit(&slot);
    MPI_Type_free(&message);
    return slot;
}

struct bench_rooted_now bench_rooted_now;
static const struct bench_rooted* rooted;
static double collective = 0;

static int slot_per_rank(const struct bench* b) { return b->ranks; }

static double rooted_seconds(struct bench* b, size_t bytes, long iterations) {
    bench_rooted_now.collective = collective != 0;
    bench_rooted_now.slot_type = bench_slot_type(b, bytes);
    const double elapsed_s = bench_operations(b, bytes, iterations, &rooted->operation);
    MPI_Type_free(&bench_rooted_now.slot_type);
    return elapsed_s;
}

int bench_rooted_main(int argc, char** argv, const struct bench_rooted* program) {
    const struct bench_extra extra[] = {{.name = "collective", .help = program->collective, .target = &collective},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = program->name,
                                    .summary = program->summary,
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 3,
                                    .ranks = kTwoRanksOrMore,
                                    .default_max_bytes = 4 << 20,
                                    .slots = slot_per_rank,
                                    .extra = extra,
                                    .seconds = rooted_seconds,
                                    .figure = bench_operation_us};
    rooted = program;
    return bench_main(argc, argv, &spec);
}
