/* SPDX-License-Identifier: BSD-3-Clause */
/* One MPI_T counter, for test programs: read by a handle that counts from when it was made. The session is the program's to open,
 * before MPI_Init, and to free. What cannot be found or read ends the program. */
#ifndef COOP_TEST_COUNTER_H
#define COOP_TEST_COUNTER_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_T_pvar_session session;

static MPI_T_pvar_handle handle_of(const char *name)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int index, count = 0;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS || count != 1) {
        printf("no variable %s\n", name);
        exit(1);
    }
    return handle;
}

static unsigned long long value_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    if (MPI_T_pvar_read(session, handle, &value) != MPI_SUCCESS) {
        printf("a variable cannot be read\n");
        exit(1);
    }
    return value;
}

#endif
