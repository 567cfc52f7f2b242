/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks exchange messages, and put and get data, that are longer than the largest message of a port with the
 * profile small; every byte is checked. The limits of btl/coopib must be what the first argument says, whatever the
 * parameters were set to. Exit code 1 on failure.
 *
 *     longest LIMIT [BYTES]      default: 12 MiB and 13 bytes */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, failed;

static unsigned char byte_of(int owner, int round, size_t at) {
    return (unsigned char)(owner * 101 + round * 31 + at % 253);
}

static void fill(unsigned char* buffer, size_t bytes, int round) {
    for (size_t i = 0; i < bytes; ++i) buffer[i] = byte_of(rank, round, i);
}

static void check(const char* what, const unsigned char* buffer, size_t bytes, int owner, int round) {
    for (size_t i = 0; i < bytes; ++i)
        if (buffer[i] != byte_of(owner, round, i)) {
            printf("rank %d: %s, round %d: byte %zu is wrong\n", rank, what, round, i);
            failed = 1;
            return;
        }
}

static void check_limit(const char* name, unsigned long long expected) {
    int index, count;
    size_t value = 0;
    MPI_T_cvar_handle handle;
    if (strcmp(name, "btl_coopib_get_limit") == 0 && MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS)
        return; /* btl/coopib has no get here */
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS ||
        MPI_T_cvar_read(handle, &value) != MPI_SUCCESS) {
        printf("%s cannot be read\n", name);
        failed = 1;
        return;
    }
    if (value != expected) {
        printf("rank %d: %s is %zu, not %llu\n", rank, name, value, expected);
        failed = 1;
    }
    MPI_T_cvar_handle_free(&handle);
}

static void messages(unsigned char* out, unsigned char* in, size_t bytes) {
    for (int round = 0; round < 3; ++round) {
        fill(out, bytes, round);
        memset(in, 0, bytes);
        MPI_Sendrecv(out, (int)bytes, MPI_BYTE, 1 - rank, 0, in, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check("message", in, bytes, 1 - rank, round);
    }
}

static void one_sided(unsigned char* out, unsigned char* window, size_t bytes) {
    MPI_Win win;
    MPI_Win_create(window, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    fill(out, bytes, 5);
    MPI_Win_fence(0, win);
    MPI_Put(out, (int)bytes, MPI_BYTE, 1 - rank, 0, (int)bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check("put by the other", window, bytes, 1 - rank, 5);
    memset(out, 0, bytes);
    MPI_Win_fence(0, win);
    MPI_Get(out, (int)bytes, MPI_BYTE, 1 - rank, 0, (int)bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check("got back", out, bytes, rank, 5);
    MPI_Win_free(&win);
}

int main(int argc, char** argv) {
    int provided, all = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: longest LIMIT [BYTES]\n");
        return 2;
    }
    const unsigned long long limit = strtoull(argv[1], NULL, 10);
    const size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : (12u << 20) + 13;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check_limit("btl_coopib_put_limit", limit);
    check_limit("btl_coopib_get_limit", limit);
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    messages(out, in, bytes);
    one_sided(out, in, bytes);
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && !all) printf("all right\n");
    MPI_T_finalize();
    MPI_Finalize();
    free(out);
    free(in);
    return all != 0;
}
