/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks but the last send COUNT messages of BYTES bytes each to the last one, which stays outside of MPI for the
 * first SECONDS and then receives them in order. Checks every byte, and the memory in which btl/coopib keeps messages
 * that arrive ahead of an earlier one: at most a window of 1024 fragments from each sender.
 *
 *     flood COUNT BYTES SECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counter.h"

enum { WINDOW = 1024, FRAGMENT = 16 * 1024 + 128 + 16 };

static void send_all(int count, int bytes, int to) {
    char* message = malloc((size_t)bytes);
    for (int i = 0; i < count; ++i) {
        memset(message, i % 251, (size_t)bytes);
        MPI_Send(message, bytes, MPI_CHAR, to, i % 7, MPI_COMM_WORLD);
    }
    free(message);
}

static int receive_all(int count, int bytes, int senders) {
    unsigned char* message = malloc((size_t)bytes);
    for (int i = 0; i < count; ++i)
        for (int from = 0; from < senders; ++from) {
            MPI_Recv(message, bytes, MPI_CHAR, from, i % 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < bytes; ++at)
                if (message[at] != i % 251) {
                    printf("message %d of rank %d: byte %d is %d\n", i, from, at, message[at]);
                    return 0;
                }
        }
    free(message);
    return 1;
}

int main(int argc, char** argv) {
    int provided, rank, size, good = 1;
    if (argc < 4) return 2;
    const int count = atoi(argv[1]), bytes = atoi(argv[2]);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle of_copies = handle_of("btl_coopib_early_copies");
    MPI_T_pvar_handle of_most = handle_of_class("btl_coopib_early_bytes_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < size - 1) {
        send_all(count, bytes, size - 1);
    } else {
        usleep((useconds_t)(atof(argv[3]) * 1e6));
        good = receive_all(count, bytes, size - 1);
        const unsigned long long copies = value_of(of_copies), most = value_of(of_most);
        printf("%llu early messages were copied, at most %llu bytes at a time\n", copies, most);
        good &= most <= (unsigned long long)(size - 1) * WINDOW * FRAGMENT;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return !good;
}
