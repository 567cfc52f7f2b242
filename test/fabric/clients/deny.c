/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a program while the kernel denies a system call with EPERM, as a container's seccomp profile does:
 *
 *     deny copies|descriptors PROGRAM ARGUMENT...
 *
 * copies: process_vm_readv and process_vm_writev; descriptors: pidfd_getfd. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/deny.h"

int main(int argc, char** argv) {
    int denied = -1;

    if (argc > 2 && strcmp(argv[1], "copies") == 0) denied = deny(SYS_process_vm_readv, SYS_process_vm_writev);
    else if (argc > 2 && strcmp(argv[1], "descriptors") == 0) denied = deny(SYS_pidfd_getfd, SYS_pidfd_getfd);
    else return fprintf(stderr, "usage: deny copies|descriptors PROGRAM ARGUMENT...\n"), 2;
    if (denied != 0) return perror("deny: seccomp"), 77;
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
