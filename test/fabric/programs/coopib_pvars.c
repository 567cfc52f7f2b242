/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks send each other 4 MiB, then many messages at once. Are the performance variables of btl/coopib right?
 * Arguments: the number of HCAs, of rails, and the resource that the many messages exhaust: "reads" (outstanding reads
 * of a rail) or "rails" (send queues). Exit code 1 if a variable is wrong. The handles are made before MPI_Init, when
 * no HCA is open yet. MPI_T_finalize comes before MPI_Finalize: if it comes later, it crashes in Open MPI 4.1.4, with
 * stock components alone too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

enum { BYTES = 4 << 20, HCAS = 8, RAILS = 32, MANY = 128, EACH = 32 << 10 };

static int failed;

static void expect(int good, const char* what) {
    if (!good) {
        printf("not so: %s\n", what);
        failed = 1;
    }
}

typedef struct {
    const char* name;
    int count, class;
    MPI_T_pvar_handle handle;
    unsigned long long values[RAILS];
} Variable;

enum {
    OF_BYTES,
    OF_SENDS,
    OF_STRIPES,
    OF_WAITS,
    OF_REGISTRATIONS,
    RAIL_BYTES,
    RAIL_SENDS,
    RAIL_STRIPES,
    RAIL_WAITS,
    RAIL_READ_WAITS,
    RAIL_EARLY,
    RAIL_WEIGHT,
    WHOLE,
    STRIPED,
    EARLY,
    CONNECT_WAITS,
    REPEATS,
    CONNECTIONS,
    VARIABLES
};

static Variable variables[VARIABLES] = {
    [OF_BYTES] = {.name = "bytes", .count = HCAS},
    [OF_SENDS] = {.name = "sends", .count = HCAS},
    [OF_STRIPES] = {.name = "stripes", .count = HCAS},
    [OF_WAITS] = {.name = "waits", .count = HCAS},
    [OF_REGISTRATIONS] = {.name = "registrations", .count = HCAS},
    [RAIL_BYTES] = {.name = "rail_bytes", .count = RAILS},
    [RAIL_SENDS] = {.name = "rail_sends", .count = RAILS},
    [RAIL_STRIPES] = {.name = "rail_stripes", .count = RAILS},
    [RAIL_WAITS] = {.name = "rail_waits", .count = RAILS},
    [RAIL_READ_WAITS] = {.name = "rail_read_waits", .count = RAILS},
    [RAIL_EARLY] = {.name = "rail_out_of_order", .count = RAILS},
    [RAIL_WEIGHT] = {.name = "rail_weight", .count = RAILS, .class = MPI_T_PVAR_CLASS_LEVEL},
    [WHOLE] = {.name = "operations_whole", .count = 1},
    [STRIPED] = {.name = "operations_striped", .count = 1},
    [EARLY] = {.name = "out_of_order", .count = 1},
    [CONNECT_WAITS] = {.name = "connect_waits", .count = 1},
    [REPEATS] = {.name = "connect_repeats", .count = 1},
    [CONNECTIONS] = {.name = "connections", .count = 1},
};

static void make_handle(Variable* v) {
    char name[64];
    snprintf(name, sizeof name, "btl_coopib_%s", v->name);
    v->handle = handle_of_class(name, v->class == MPI_T_PVAR_CLASS_LEVEL ? v->class : MPI_T_PVAR_CLASS_COUNTER,
                                v->count);
}

static void read_all(void) {
    for (int i = 0; i < VARIABLES; ++i) read_values(variables[i].handle, variables[i].values);
}

static unsigned long long sum(int which) {
    unsigned long long all = 0;
    for (int i = 0; i < variables[which].count; ++i) all += variables[which].values[i];
    return all;
}

static void expect_of_one_message(int hcas, int rails) {
    int used = 0;
    for (int i = 0; i < HCAS; ++i) {
        used += variables[OF_BYTES].values[i] > 0;
        expect((variables[OF_REGISTRATIONS].values[i] > 0) == (variables[OF_BYTES].values[i] > 0),
               "memory is registered on the HCAs in use, and no other");
    }
    expect(used == hcas, "each HCA in use has carried bytes, and no other");
    for (int i = 0; i < RAILS; ++i)
        expect((variables[RAIL_BYTES].values[i] > 0) == (i < rails),
               "each rail in use has carried bytes, and no other");
    for (int i = 0; i < RAILS; ++i)
        expect((variables[RAIL_WEIGHT].values[i] > 0) == (i < rails), "each rail in use has a weight, and no other");
    expect(sum(RAIL_WEIGHT) > 999000 && sum(RAIL_WEIGHT) < 1001000, "the weights are a million together");
    expect(sum(OF_BYTES) >= BYTES && sum(OF_BYTES) < 2 * BYTES, "bytes are those of the message, and few more");
    expect(sum(OF_STRIPES) >= (unsigned)rails, "each rail has had a stripe");
    expect(sum(OF_SENDS) >= 1, "fragments were sent");
    expect((sum(STRIPED) >= 1) == (rails > 1), "the message was cut, if there are several rails");
    expect(sum(CONNECTIONS) == 1, "one peer is connected");
}

static void expect_sums(void) {
    expect(sum(OF_BYTES) == sum(RAIL_BYTES), "HCAs and rails have the same bytes");
    expect(sum(OF_SENDS) == sum(RAIL_SENDS), "HCAs and rails have the same fragments");
    expect(sum(OF_STRIPES) == sum(RAIL_STRIPES), "HCAs and rails have the same stripes");
    expect(sum(OF_WAITS) == sum(RAIL_WAITS), "HCAs and rails have waited equally often");
    expect(sum(EARLY) >= sum(RAIL_EARLY), "no more messages came early over rails than came early in all");
    expect(sum(WHOLE) + sum(STRIPED) <= sum(OF_STRIPES), "no operation is without a stripe");
}

static char out[BYTES], in[BYTES];

static void send_many(int peer) {
    MPI_Request requests[2 * MANY];
    for (int i = 0; i < MANY; ++i) {
        MPI_Irecv(in + (size_t)i * EACH, EACH, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(out + (size_t)i * EACH, EACH, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &requests[MANY + i]);
    }
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
    int provided, rank, hcas = argc > 1 ? atoi(argv[1]) : 1, rails = argc > 2 ? atoi(argv[2]) : 1;
    const int few = argc > 3 && strcmp(argv[3], "reads") == 0 ? RAIL_READ_WAITS : RAIL_WAITS;
    _Static_assert(MANY * EACH <= BYTES, "the many fit");

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < VARIABLES; ++i) make_handle(&variables[i]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(out, BYTES, MPI_CHAR, 1 - rank, 0, in, BYTES, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    read_all();
    expect_of_one_message(hcas, rails);
    expect_sums();

    /* The first messages, which cause the connection, have waited for it on at least one side. */
    unsigned long long waited = sum(CONNECT_WAITS), all_waited = 0;
    MPI_Allreduce(&waited, &all_waited, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    expect(all_waited >= 1, "something has waited for the connection");

    send_many(1 - rank);
    read_all();
    expect_sums();
    expect(sum(few) > 0, few == RAIL_WAITS ? "something has waited for room on its rail"
                                           : "something has waited for its turn to read");
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return failed;
}
