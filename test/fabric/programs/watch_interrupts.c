/* SPDX-License-Identifier: BSD-3-Clause */
/* To be preloaded: prints how often a process of an MPI job was interrupted between MPI_Init and MPI_Finalize
 * (pml/coop):
 *
 *     rank 1: 17 interrupts, 230 events handled */
#include "counter.h"

#define EXPORTED __attribute__((visibility("default")))

static MPI_T_pvar_handle interrupts, events;

static void begin(void) {
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    interrupts = handle_of("pml_coop_interrupts");
    events = handle_of("pml_coop_events_handled");
}

EXPORTED int MPI_Init(int* argc, char*** argv) {
    begin();
    return PMPI_Init(argc, argv);
}

EXPORTED int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    begin();
    return PMPI_Init_thread(argc, argv, required, provided);
}

EXPORTED int MPI_Finalize(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "rank %d: %llu interrupts, %llu events handled\n", rank, value_of(interrupts), value_of(events));
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return PMPI_Finalize();
}
