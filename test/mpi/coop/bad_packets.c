/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet that arrives twice or damaged: bad_packets repeat|damage KIND [BYTES], where KIND is that of
 * coop/wire/headers.h. Four ranks. Rank 3 is rank 0 of a communicator, in which it sends BYTES to rank 1. The process that
 * gets the first packet of this kind calls the pml twice, or with a flipped bit in the tag. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi_config.h"

#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

static mca_btl_base_module_recv_cb_fn_t real;
static int repeats, done;

static void receive(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* packet, void* data) {
    unsigned char* const header = packet->des_segments[0].seg_addr.pval;
    if (!done && repeats) {
        done = 1;
        real(btl, tag, packet, data);
    }
    if (!done) header[8] ^= 1;
    real(btl, tag, packet, data);
}

int main(int argc, char** argv) {
    int rank, word = 0;
    MPI_Comm pair;

    if (argc < 3) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2 == 0) MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* until the job ends */

    if (rank == 3) MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* rank 1 intercepts */
    repeats = strcmp(argv[1], "repeat") == 0;
    mca_btl_active_message_callback_t* const trigger =
        &mca_btl_base_active_message_trigger[MCA_BTL_TAG_PML + atoi(argv[2])];
    real = trigger->cbfunc;
    trigger->cbfunc = receive;
    if (rank == 1) MPI_Send(&word, 1, MPI_INT, 3, 0, MPI_COMM_WORLD);
    const int bytes = argc > 3 ? atoi(argv[3]) : 1;
    char* const data = calloc(1, (size_t)bytes);
    for (int i = 0; i < 3; ++i)
        if (rank == 3) MPI_Send(data, bytes, MPI_BYTE, 1, 0, pair);
        else MPI_Recv(data, bytes, MPI_BYTE, 0, 0, pair, MPI_STATUS_IGNORE);
    printf("rank %d: nothing was noticed\n", rank);
    MPI_Recv(&word, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* until the time limit */
    return 0;
}
