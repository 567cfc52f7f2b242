/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_T variables for test programs, read through a handle; a counter's handle counts from its creation. The program
 * opens the session before MPI_Init and frees it. A variable that cannot be found or read ends the program. */
#ifndef COOP_TEST_COUNTER_H
#define COOP_TEST_COUNTER_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_T_pvar_session session;

/* A handle of a variable with this number of elements. */
static inline MPI_T_pvar_handle handle_of_class(const char* name, int class, int elements) {
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int index, count = 0;
    if (MPI_T_pvar_get_index(name, class, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS) {
        printf("no variable %s\n", name);
        exit(1);
    }
    if (count != elements) {
        printf("%s has %d elements, not %d\n", name, count, elements);
        exit(1);
    }
    return handle;
}

static inline MPI_T_pvar_handle handle_of(const char* counter) {
    return handle_of_class(counter, MPI_T_PVAR_CLASS_COUNTER, 1);
}

static inline void read_values(MPI_T_pvar_handle handle, unsigned long long* values) {
    if (MPI_T_pvar_read(session, handle, values) != MPI_SUCCESS) {
        printf("a variable cannot be read\n");
        exit(1);
    }
}

static inline unsigned long long value_of(MPI_T_pvar_handle handle) {
    unsigned long long value = 0;
    read_values(handle, &value);
    return value;
}

#endif
