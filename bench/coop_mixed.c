/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a transfer between nodes overlaps with one inside a node. Ranks 0 and 1 are on one node, rank 2 is on
 * another. Rank 0 posts a receive for a long message from each (MPI_Irecv) and waits; the others send (rank 1: MPI_Isend
 * and MPI_Wait, rank 2: MPI_Send). These rounds alternate with rounds in which rank 0 receives each of the two messages
 * alone:
 *
 *     hidden = (intra + inter - both) / min(intra, inter) * 100 %
 *
 * This is figure 3 of "Cooperative Rendezvous Protocols for Improved Performance and Overlap": a processor copies the
 * message inside the node and the HCA moves the other one, but the processor must first answer the request (RTS) of the
 * other one. To make that request arrive during the copy, and not before, rank 2 starts when rank 1 tells it to, after
 * rank 1's own request.
 *
 * The size is that of the message between the nodes. The one inside the node is --ratio times as long, so that both can
 * take the same time.
 */
#include "bench_common.h"

#include <math.h>
#include <stdio.h>

enum { kIntraTag = 23, kInterTag = 24, kWordTag = 25 };
enum { kIntra = 1, kInter = 2, kBoth = kIntra | kInter }; /* the messages that are sent */
enum { kReceiver = 0, kNeighbour = 1, kFar = 2 };         /* ranks */
enum { kInterSlot = 0, kIntraSlot = 1 };                  /* the intra message uses this slot and all after it */

enum { kBothUs, kIntraUs, kInterUs, kIntraEnd, kInterEnd };

static const char* const columns[] = {"both_us", "intra_us", "inter_us", "intra_end_us", "inter_end_us", NULL};
static double ratio = 1;

/* When each message was complete, since the first call of rank 0; only valid there. 0: it was not sent. */
struct ends {
    double intra_s, inter_s;
};

static int slots(const struct bench* b) {
    (void)b;
    return kIntraSlot + (int)ratio;
}

static void start(struct bench* b) {
    char host[MPI_MAX_PROCESSOR_NAME] = "", all[3][MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(host, &length);
    MPI_Gather(host, sizeof host, MPI_CHAR, all, sizeof host, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (b->rank == 0) {
        printf("# hosts: %s %s %s\n", all[0], all[1], all[2]);
        fflush(stdout);
    }
}

static void tell(int peer) {
    char word = 0;
    MPI_Send(&word, 1, MPI_BYTE, peer, kWordTag, MPI_COMM_WORLD);
}

static void await_word(int peer) {
    char word;
    MPI_Recv(&word, 1, MPI_BYTE, peer, kWordTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A datatype of `bytes` bytes: a message of several of them may have more bytes than an int holds. */
static MPI_Datatype element_of(size_t bytes) {
    MPI_Datatype type;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static struct ends receive(struct bench* b, size_t bytes, MPI_Datatype element, int messages) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    struct ends ends = {0};
    const double begin_s = bench_now_s();
    if (messages & kIntra) {
        MPI_Irecv(bench_slot(b, b->recv, bytes, kIntraSlot), (int)ratio, element, kNeighbour, kIntraTag, MPI_COMM_WORLD,
                  &requests[0]);
    }
    if (messages & kInter) {
        MPI_Irecv(bench_slot(b, b->recv, bytes, kInterSlot), 1, element, kFar, kInterTag, MPI_COMM_WORLD, &requests[1]);
    }
    tell(kNeighbour);
    for (;;) {
        int which;
        MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
        if (which == MPI_UNDEFINED) {
            return ends;
        }
        *(which == 0 ? &ends.intra_s : &ends.inter_s) = bench_now_s() - begin_s;
    }
}

/* Rank 1: its own request first, then the signal to rank 2. */
static void send_inside(struct bench* b, size_t bytes, MPI_Datatype element, int messages) {
    MPI_Request request = MPI_REQUEST_NULL;
    await_word(kReceiver);
    if (messages & kIntra) {
        MPI_Isend(bench_slot(b, b->send, bytes, kIntraSlot), (int)ratio, element, kReceiver, kIntraTag, MPI_COMM_WORLD,
                  &request);
    }
    if (messages & kInter) {
        tell(kFar);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_from_afar(struct bench* b, size_t bytes, MPI_Datatype element, int messages) {
    if (messages & kInter) {
        await_word(kNeighbour);
        MPI_Send(bench_slot(b, b->send, bytes, kInterSlot), 1, element, kReceiver, kInterTag, MPI_COMM_WORLD);
    }
}

static void prepare(struct bench* b, size_t bytes) {
    const size_t intra = bytes * (size_t)ratio;
    if (b->rank == kReceiver) {
        bench_guard(bench_slot(b, b->recv, bytes, kIntraSlot), intra);
        bench_guard(bench_slot(b, b->recv, bytes, kInterSlot), bytes);
    } else if (b->rank == kNeighbour) {
        bench_fill(bench_slot(b, b->send, bytes, kIntraSlot), intra, b->rank, b->message);
    } else {
        bench_fill(bench_slot(b, b->send, bytes, kInterSlot), bytes, b->rank, b->message);
    }
}

static void check(struct bench* b, size_t bytes, int messages) {
    if (messages & kIntra) {
        bench_check(b, bench_slot(b, b->recv, bytes, kIntraSlot), bytes * (size_t)ratio, kNeighbour, b->message);
    }
    if (messages & kInter) {
        bench_check(b, bench_slot(b, b->recv, bytes, kInterSlot), bytes, kFar, b->message);
    }
}

static struct ends transfer(struct bench* b, size_t bytes, MPI_Datatype element, int messages) {
    struct ends ends = {0};
    if (b->options.verify) {
        prepare(b, bytes);
    }
    if (b->rank == kReceiver) {
        ends = receive(b, bytes, element, messages);
    } else if (b->rank == kNeighbour) {
        send_inside(b, bytes, element, messages);
    } else {
        send_from_afar(b, bytes, element, messages);
    }
    if (b->options.verify && b->rank == kReceiver) {
        check(b, bytes, messages);
    }
    ++b->message;
    return ends;
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const double us = 1e6 / (double)iterations;
    double sums[sizeof columns / sizeof columns[0] - 1] = {0};
    MPI_Datatype element = element_of(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i) {
        sums[kIntraUs] += transfer(b, bytes, element, kIntra).intra_s;
        sums[kInterUs] += transfer(b, bytes, element, kInter).inter_s;
        const struct ends ends = transfer(b, bytes, element, kBoth);
        sums[kIntraEnd] += ends.intra_s;
        sums[kInterEnd] += ends.inter_s;
        sums[kBothUs] += fmax(ends.intra_s, ends.inter_s);
    }
    const double elapsed_s = bench_now_s() - start_s;
    MPI_Type_free(&element);
    for (int column = 0; columns[column]; ++column) {
        b->more[column] = sums[column] * us;
    }
    return elapsed_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    (void)bytes;
    (void)iterations;
    (void)elapsed_s;
    const double* us = b->more;
    return (us[kIntraUs] + us[kInterUs] - us[kBothUs]) / fmin(us[kIntraUs], us[kInterUs]) * 100;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "ratio",
                                         .value = "N",
                                         .help = "the message inside the node is N times as long (default 1)",
                                         .low = 1,
                                         .high = 1024,
                                         .whole = true,
                                         .target = &ratio},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_mixed",
                                    .summary = "overlap of a transfer between nodes with one inside a node",
                                    .unit = "%",
                                    .better = "higher",
                                    .decimals = 2,
                                    .ranks = kThreeRanks,
                                    .default_min_bytes = 1 << 16,
                                    .default_max_bytes = 4 << 20,
                                    .slots = slots,
                                    .extra = extra,
                                    .more = columns,
                                    .start = start,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
