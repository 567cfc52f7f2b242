/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded into the storm to check that the storm detects errors: spoils one message of
 * rank 0, number SABOTAGE_AT of those that MPI_Isend sends with more than 8 MPI_BYTE.
 * SABOTAGE=flip: flips one bit; drop: does not send the message; double: sends it twice.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int chosen(MPI_Datatype type, int count) {
    static int calls;
    const char* at = getenv("SABOTAGE_AT");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0 && type == MPI_BYTE && count > 8 && at != NULL && ++calls == atoi(at);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    const char* how = getenv("SABOTAGE");
    if (how == NULL || !chosen(type, count)) return PMPI_Isend(buffer, count, type, to, tag, comm, request);
    if (strcmp(how, "drop") == 0) return PMPI_Isend(buffer, count, type, MPI_PROC_NULL, tag, comm, request);
    if (strcmp(how, "flip") == 0) {
        unsigned char* other = malloc((size_t)count); /* never freed */
        memcpy(other, buffer, (size_t)count);
        other[count / 2] ^= 4;
        return PMPI_Isend(other, count, type, to, tag, comm, request);
    }
    PMPI_Isend(buffer, count, type, to, tag, comm, request);
    PMPI_Request_free(request);
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}
