/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks exchange short messages; then rank 1 overwrites the last byte of each slot of the ring that it has made for
 * rank 0. Arguments: the number of slots, and the bytes per slot; the mmap() of a ring of that size is recognised by
 * its length. Exit code 3 if there was none. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURNS = 100, PAGE = 4096 };

static size_t slots, stride;
static volatile unsigned char* ring;

/* Replaces libc's mmap for all libraries of the process. */
__attribute__((visibility("default"))) void* mmap(void* address, size_t bytes, int protection, int flags, int file,
                                                  off_t offset) {
    void* memory = (void*)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
    const size_t wanted = (slots * stride + PAGE - 1) / PAGE * PAGE;
    if (memory != MAP_FAILED && bytes == wanted && file == -1 && (flags & MAP_ANONYMOUS)) ring = memory;
    return memory;
}

static void turn(int rank) {
    int number = 0;
    if (rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&number, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    int rank;
    slots = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    stride = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TURNS; ++i) turn(rank);
    if (rank == 1 && ring == NULL) {
        printf("no ring was made\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (size_t slot = 0; rank == 1 && slot < slots; ++slot) ring[(slot + 1) * stride - 1] = 0x77;
    for (int i = 0; i < TURNS; ++i) turn(rank);
    MPI_Finalize();
    return 0;
}
