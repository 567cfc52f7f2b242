/* SPDX-License-Identifier: BSD-3-Clause */
/* The pml's reaction to errors that a transport reports: transport_errors goes_on|fatal|fatal_without_a_text. Two
 * ranks. The program intercepts the function that sets up the transports, and records the callbacks that the pml
 * registers with them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi_config.h"

#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "opal/mca/btl/base/base.h"

static mca_btl_base_module_error_cb_fn_t tell;

static int note(mca_btl_base_module_error_cb_fn_t callback) {
    tell = callback;
    return OMPI_SUCCESS;
}

__attribute__((visibility("default"))) int mca_bml_base_init(bool progress_threads, bool mpi_threads) {
    int (*real)(bool, bool) = (int (*)(bool, bool))dlsym(RTLD_NEXT, "mca_bml_base_init");
    const int rc = real ? real(progress_threads, mpi_threads) : OMPI_ERROR;
    mca_bml.bml_register_error = note;
    return rc;
}

/* Arguments that are not a text: a number whose bytes contain no end of a string, and an address outside of this
 * process's memory. */
static void cuda_ipc(mca_btl_base_module_t* btl, opal_proc_t* peer) {
    static const int stream = 0x7f7f7f7f;
    tell(btl, MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC, peer, (char*)&stream);
    tell(btl, MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC, peer, (char*)8);
}

int main(int argc, char** argv) {
    int rank, word = 0;

    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mca_btl_base_selected_module_t* first = (mca_btl_base_selected_module_t*)opal_list_get_first(
        &mca_btl_base_modules_initialized);
    if (!tell || opal_list_get_size(&mca_btl_base_modules_initialized) == 0) {
        fprintf(stderr, "the pml has registered nothing with transports\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0 && strcmp(argv[1], "goes_on") == 0) {
        cuda_ipc(first->btl_module, opal_proc_local_get());
        tell(first->btl_module, MCA_BTL_ERROR_FLAGS_NONFATAL, opal_proc_local_get(), (char*)"a socket is closed");
        tell(first->btl_module, MCA_BTL_ERROR_FLAGS_NONFATAL, NULL, NULL);
        word = 17;
    } else if (rank == 0) {
        const int has_text = strcmp(argv[1], "fatal") == 0;
        tell(first->btl_module, MCA_BTL_ERROR_FLAGS_FATAL, has_text ? opal_proc_local_get() : NULL,
             has_text ? (char*)"the adapter is gone" : NULL);
        return 0;
    }
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1 && word == 17) printf("the job went on\n");
    MPI_Finalize();
    return 0;
}
