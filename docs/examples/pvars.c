/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the performance variables of pml/coop: rank 0 sends two messages and prints what was counted. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kMost = 64 };

struct variable {
    char name[128];
    MPI_T_pvar_handle handle;
};

/* Handles for the variables whose name begins with `prefix`; returns their number. */
static int open_variables(MPI_T_pvar_session session, const char* prefix, struct variable* variables) {
    int total, found = 0;
    MPI_T_pvar_get_num(&total);
    for (int i = 0; i < total && found < kMost; ++i) {
        struct variable* v = &variables[found];
        int length = sizeof v->name, verbosity, class, binding, readonly, continuous, atomic, count;
        MPI_Datatype type;
        if (MPI_T_pvar_get_info(i, v->name, &length, &verbosity, &class, &type, NULL, NULL, NULL, &binding, &readonly,
                                &continuous, &atomic) != MPI_SUCCESS ||
            strncmp(v->name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        MPI_T_pvar_handle_alloc(session, i, NULL, &v->handle, &count);
        ++found;
    }
    return found;
}

int main(int argc, char** argv) {
    static char data[1 << 20];
    static struct variable variables[kMost];
    MPI_T_pvar_session session;
    int provided, rank;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_T_pvar_session_create(&session);
    const int count = open_variables(session, "pml_coop_", variables);

    if (rank == 0) {
        MPI_Send(data, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(data, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    for (int i = 0; i < count; ++i) {
        unsigned long long value = 0;
        MPI_T_pvar_read(session, variables[i].handle, &value);
        if (rank == 0 && value > 0) {
            printf("%-32s %llu\n", variables[i].name, value);
        }
        MPI_T_pvar_handle_free(session, &variables[i].handle);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
