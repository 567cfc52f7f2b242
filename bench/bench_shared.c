/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "bench_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void bench_give_up(const struct bench* b, const char* what) {
    fprintf(stderr,
            "rank %d: %s: %s (both ranks must be on one host and in one PID namespace, and may need CAP_SYS_PTRACE)\n",
            b->rank, what, strerror(errno));
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 4);
    exit(4);
}

/* Rank 0 creates the memory and rank 1 opens it. */
void* bench_share(const struct bench* b, size_t bytes) {
    char name[64];
    long creator = getpid();
    MPI_Bcast(&creator, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/coop_bench.%ld", creator);
    int fd = -1;
    if (b->rank == 0 &&
        ((fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600)) < 0 || ftruncate(fd, (off_t)bytes) != 0)) {
        bench_give_up(b, "cannot create shared memory");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->rank == 1 && (fd = shm_open(name, O_RDWR, 0600)) < 0) {
        bench_give_up(b, "cannot open shared memory");
    }
    void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        bench_give_up(b, "cannot map shared memory");
    }
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->rank == 0) {
        shm_unlink(name);
    }
    /* Each rank touches its half first, so that this memory is near, and then all pages. */
    unsigned char* const all = at;
    memset(all + (b->rank == 0 ? 0 : bytes / 2), 0, b->rank == 0 ? bytes / 2 : bytes - bytes / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t page = 0; page < bytes; page += 4096) {
        (void)*(volatile unsigned char*)(all + page);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return at;
}
