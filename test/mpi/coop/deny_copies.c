/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a program for which the kernel denies copies between processes, as a container's seccomp profile does:
 *
 *     deny_copies all|RANK PROGRAM ARGUMENT...
 *
 * process_vm_readv and process_vm_writev fail with EPERM, in every process of the job or in that of one rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/deny.h"

int main(int argc, char** argv) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");

    if (argc < 3) {
        fprintf(stderr, "usage: deny_copies all|RANK PROGRAM ARGUMENT...\n");
        return 2;
    }
    if ((strcmp(argv[1], "all") == 0 || (rank && strcmp(argv[1], rank) == 0)) &&
        deny(SYS_process_vm_readv, SYS_process_vm_writev) != 0) {
        perror("deny_copies: seccomp");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
