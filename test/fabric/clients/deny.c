/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a program while the kernel denies a system call with EPERM, as a container's seccomp profile does:
 *
 *     deny copies|descriptors PROGRAM ARGUMENT...
 *
 * copies: process_vm_readv and process_vm_writev; descriptors: pidfd_getfd. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int deny(unsigned first, unsigned second)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    int denied = -1;

    if (argc > 2 && strcmp(argv[1], "copies") == 0) denied = deny(SYS_process_vm_readv, SYS_process_vm_writev);
    else if (argc > 2 && strcmp(argv[1], "descriptors") == 0) denied = deny(SYS_pidfd_getfd, SYS_pidfd_getfd);
    else return fprintf(stderr, "usage: deny copies|descriptors PROGRAM ARGUMENT...\n"), 2;
    if (denied != 0) return perror("deny: seccomp"), 77;
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
