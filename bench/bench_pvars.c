/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_pvars.h"

#include <math.h>
#include <mpi.h>
#include <string.h>

enum { kVariables = 3 };

static const char* const names[kVariables] = {"pml_coop_copies", "pml_coop_copied_bytes", "pml_coop_copy_time"};
static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
static MPI_T_pvar_handle handles[kVariables];
static bool found[kVariables];

static void allocate(int variable, int index, bool continuous) {
    int count = 0;
    if (MPI_T_pvar_handle_alloc(session, index, NULL, &handles[variable], &count) != MPI_SUCCESS) {
        return;
    }
    found[variable] = count == 1 && (continuous || MPI_T_pvar_start(session, handles[variable]) == MPI_SUCCESS);
}

static void look_at(int index) {
    char name[128], text[1];
    int name_length = sizeof name, text_length = sizeof text, verbosity, class, bind, read_only, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &class, &type, &values, text, &text_length, &bind,
                            &read_only, &continuous, &atomic) != MPI_SUCCESS) {
        return;
    }
    for (int variable = 0; variable < kVariables; ++variable) {
        if (strcmp(name, names[variable]) == 0 && type == MPI_UNSIGNED_LONG_LONG && bind == MPI_T_BIND_NO_OBJECT) {
            allocate(variable, index, continuous != 0);
        }
    }
}

bool bench_pvars_open(void) {
    int provided, count = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) {
        return false;
    }
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&count);
    for (int index = 0; index < count; ++index) {
        look_at(index);
    }
    return found[0] && found[1] && found[2];
}

static double read_one(int variable) {
    unsigned long long value = 0;
    const bool known = found[variable] && MPI_T_pvar_read(session, handles[variable], &value) == MPI_SUCCESS;
    return known ? (double)value : NAN;
}

struct bench_pvars bench_pvars_read(void) {
    return (struct bench_pvars){read_one(0), read_one(1), read_one(2) * 1e-9};
}

void bench_pvars_close(void) {
    for (int variable = 0; variable < kVariables; ++variable) {
        if (found[variable]) {
            MPI_T_pvar_handle_free(session, &handles[variable]);
            found[variable] = false;
        }
    }
    if (session != MPI_T_PVAR_SESSION_NULL) {
        MPI_T_pvar_session_free(&session);
        MPI_T_finalize();
    }
}
