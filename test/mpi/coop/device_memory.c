/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in the memory of an accelerator, as an Open MPI with CUDA support passes them to a pml: a flag of the
 * convertor marks them, and only the convertor may copy them. Two ranks. There is no accelerator here: a range of
 * addresses, the same in both ranks, stands for it. This program intercepts the functions of
 * Open MPI that prepare convertors, and sets the flag there. It also intercepts process_vm_readv, process_vm_writev and
 * ibv_reg_mr, which must never get an address of the range. Exit code 1: one of them did, data is wrong, no convertor
 * was flagged, or CUDA was not initialised exactly once; 2: the range cannot be mapped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "opal_config.h"

#include "ompi/mca/bml/bml.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_params.h"

#define EXPORTED __attribute__((visibility("default")))

enum { LONGEST = 4 << 20, MESSAGES = 3 };

static char* const device = (char*)0x600000000000;
static const size_t device_bytes = 2 * (size_t)MESSAGES * LONGEST;
static int seen, flagged, looked_for;

static int on_device(const void* at, size_t bytes) {
    const char* from = at;
    return from < device + device_bytes && from + bytes > device;
}

static void* next(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static void flag(opal_convertor_t* convertor, const void* buffer) {
    if (!looked_for || !on_device(buffer, 1)) return;
    convertor->flags |= CONVERTOR_CUDA;
    ++flagged;
}

EXPORTED int32_t opal_convertor_prepare_for_send(opal_convertor_t* convertor, const struct opal_datatype_t* type,
                                                 size_t count, const void* buffer) {
    flag(convertor, buffer);
    return ((int32_t(*)(opal_convertor_t*, const struct opal_datatype_t*, size_t, const void*))next(__func__))(
        convertor, type, count, buffer);
}

EXPORTED int32_t opal_convertor_prepare_for_recv(opal_convertor_t* convertor, const struct opal_datatype_t* type,
                                                 size_t count, const void* buffer) {
    flag(convertor, buffer);
    return ((int32_t(*)(opal_convertor_t*, const struct opal_datatype_t*, size_t, const void*))next(__func__))(
        convertor, type, count, buffer);
}

/* Imitates an Open MPI with CUDA support: opal_cuda_support is set during MPI_Init, and the first use calls
 * mca_common_cuda_stage_one_init() to load the driver. */
EXPORTED int mca_bml_base_init(bool progress_threads, bool mpi_threads) {
    opal_cuda_support = true;
    return ((int (*)(bool, bool))next(__func__))(progress_threads, mpi_threads);
}

EXPORTED int mca_common_cuda_stage_one_init(void) {
    ++looked_for;
    return 0;
}

static void look(const char* who, const struct iovec* list, unsigned long count) {
    for (unsigned long i = 0; i < count; ++i) {
        if (!on_device(list[i].iov_base, list[i].iov_len)) continue;
        if (seen++ == 0) fprintf(stderr, "%s sees the address %p of the device\n", who, list[i].iov_base);
    }
}

typedef ssize_t copy_fn(pid_t, const struct iovec*, unsigned long, const struct iovec*, unsigned long, unsigned long);

EXPORTED ssize_t process_vm_readv(pid_t pid, const struct iovec* local, unsigned long locals,
                                  const struct iovec* remote, unsigned long remotes, unsigned long flags) {
    look(__func__, local, locals);
    look(__func__, remote, remotes);
    return ((copy_fn*)next(__func__))(pid, local, locals, remote, remotes, flags);
}

EXPORTED ssize_t process_vm_writev(pid_t pid, const struct iovec* local, unsigned long locals,
                                   const struct iovec* remote, unsigned long remotes, unsigned long flags) {
    look(__func__, local, locals);
    look(__func__, remote, remotes);
    return ((copy_fn*)next(__func__))(pid, local, locals, remote, remotes, flags);
}

#undef ibv_reg_mr
EXPORTED struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* at, size_t bytes, int access) {
    const struct iovec all = {at, bytes};
    look(__func__, &all, 1);
    return ((struct ibv_mr * (*)(struct ibv_pd*, void*, size_t, int)) next(__func__))(pd, at, bytes, access);
}

EXPORTED struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* at, size_t bytes, uint64_t iova, unsigned access) {
    const struct iovec all = {at, bytes};
    look(__func__, &all, 1);
    return ((struct ibv_mr * (*)(struct ibv_pd*, void*, size_t, uint64_t, unsigned)) next(__func__))(pd, at, bytes,
                                                                                                     iova, access);
}

static unsigned char expected(size_t i, int seed) { return (unsigned char)(i * 7 + i / 251 + (size_t)seed); }

/* Sends several messages at once from `out` of rank 0 to `in` of rank 1. `early`: both sides start together; otherwise
 * the receives are posted before rank 0 sends. Exit code 1 if a byte is wrong. */
static void send_some(int rank, char* out, char* in, int count, MPI_Datatype type, size_t extent, int early) {
    MPI_Request requests[MESSAGES];
    const size_t bytes = (size_t)count * extent;
    int size;

    MPI_Type_size(type, &size);
    for (int i = 0; i < MESSAGES; ++i) {
        char* at = (rank == 0 ? out : in) + (size_t)i * LONGEST;
        for (size_t b = 0; b < bytes; ++b) at[b] = rank == 0 ? (char)expected(b, i) : 0;
    }
    if (early || rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; ++i) {
        if (rank == 0) MPI_Isend(out + (size_t)i * LONGEST, count, type, 1, i, MPI_COMM_WORLD, &requests[i]);
        else MPI_Irecv(in + (size_t)i * LONGEST, count, type, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    if (!early && rank == 1) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 1) return;
    for (int i = 0; i < MESSAGES; ++i)
        for (size_t b = 0; b < bytes; ++b) {
            const int inside = b % extent < (size_t)size;
            if (inside && (unsigned char)in[(size_t)i * LONGEST + b] == expected(b, i)) continue;
            if (!inside && in[(size_t)i * LONGEST + b] == 0) continue;
            fprintf(stderr, "message %d (%d elements of %d bytes): byte %zu is wrong\n", i, count, size, b);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

int main(int argc, char** argv) {
    static const int sizes[] = {1, 1000, 4096, 20000, 65536, 300000, LONGEST};
    char* host = malloc(device_bytes);
    int rank, all_seen, all_flagged;
    MPI_Datatype pieces, gaps;

    if (!host || mmap(device, device_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                      -1, 0) != device)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(60000, MPI_BYTE, &pieces);
    MPI_Type_create_resized(pieces, 0, 70000, &gaps);
    MPI_Type_commit(&gaps);
    for (int where = 1; where < 4; ++where) {
        char *out = where & 1 ? device : host, *in = (where & 2 ? device : host) + (size_t)MESSAGES * LONGEST;
        for (int early = 0; early < 2; ++early) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
                send_some(rank, out, in, sizes[i], MPI_BYTE, 1, early);
            send_some(rank, out, in, 20, gaps, 70000, early);
        }
    }
    MPI_Allreduce(&seen, &all_seen, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&flagged, &all_flagged, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("at least %d convertors flagged in each rank; device addresses reached other functions %d times\n",
               all_flagged, all_seen);
    opal_cuda_support = false;
    MPI_Type_free(&gaps);
    MPI_Type_free(&pieces);
    MPI_Finalize();
    free(host);
    return all_seen != 0 || all_flagged == 0 || looked_for != 1;
}
