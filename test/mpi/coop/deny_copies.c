/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a program where the kernel denies copies between processes, as a container's seccomp profile does:
 *
 *     deny_copies all|RANK PROGRAM ARGUMENT...
 *
 * process_vm_readv and process_vm_writev fail with EPERM, in every process of the job or in that of one rank. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int deny(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (argc < 3) {
        fprintf(stderr, "usage: deny_copies all|RANK PROGRAM ARGUMENT...\n");
        return 2;
    }
    if ((strcmp(argv[1], "all") == 0 || (rank && strcmp(argv[1], rank) == 0)) && deny() != 0) {
        perror("deny_copies: seccomp");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
