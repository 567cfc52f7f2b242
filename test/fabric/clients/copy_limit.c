/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The most that one process can write to another with process_vm_writev, the call with which the subnet copies. The
 * other process only owns the memory. One buffer on each side is used again and again, as in ib_write_bw.
 *
 *     copy_limit BYTES COPIES           prints GB/s (10^9)
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The child has a private copy of the pages, at the same address. */
static pid_t start_other(char* memory, size_t bytes) {
    int ready[2];
    char byte = 0;
    pid_t child;

    if (pipe(ready) != 0) return -1;
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        memset(memory, 1, bytes);
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        for (;;) pause();
    }
    return child > 0 && read(ready[0], &byte, 1) == 1 ? child : -1;
}

static int copy(pid_t to, char* memory, size_t bytes) {
    struct iovec local = {memory, bytes};
    return process_vm_writev(to, &local, 1, &local, 1, 0) == (ssize_t)bytes ? 0 : -1;
}

int main(int argc, char** argv) {
    const size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 0) : 0;
    const long copies = argc == 3 ? strtol(argv[2], NULL, 0) : 0;
    char* memory;
    pid_t other;
    double start_s;

    if (bytes == 0 || copies < 1) return fprintf(stderr, "usage: copy_limit BYTES COPIES\n"), 2;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return perror("copy_limit: mmap"), 1;
    memset(memory, 2, bytes);
    other = start_other(memory, bytes);
    if (other < 0 || copy(other, memory, bytes) != 0) return perror("copy_limit"), 1;
    start_s = now_s();
    for (long i = 0; i < copies; ++i)
        if (copy(other, memory, bytes) != 0) return perror("copy_limit: process_vm_writev"), 1;
    printf("%.3f\n", (double)bytes * (double)copies / (now_s() - start_s) / 1e9);
    kill(other, SIGKILL);
    return waitpid(other, NULL, 0) == other ? 0 : 1;
}
