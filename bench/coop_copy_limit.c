/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The highest bandwidth that two processes can reach when the kernel copies between them. They do not use MPI for this,
 * only flags in shared memory. A message goes from rank 0 to rank 1. Both announce it and wait for each other; rank 1
 * reads the first half
 * (process_vm_readv) while rank 0 writes the second (process_vm_writev); both announce the end and wait for each other
 * again. With --one rank 1 reads all of it. Buffers, messages per iteration and the acknowledgement after them are as
 * in coop_bw --blocking.
 *
 * MPI starts the processes, exchanges their process numbers and addresses, and synchronises them before each batch.
 * Both ranks must be on one host and be permitted to access each other's memory.
 */
#define _GNU_SOURCE
#include "bench_shared.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kSpinsBeforeYield = 10000 };

/* Each rank writes only its own cache lines. The values are those of `number`, which increase from 1. */
struct flags {
    _Alignas(kLineBytes) atomic_ulong ready[2][8];
    _Alignas(kLineBytes) atomic_ulong done[2][8];
};

/* The addresses that a rank sends to the other. */
struct address_space {
    long pid;
    unsigned long send, recv;
};

static double one = 0;
static struct flags* flags;
static struct address_space spaces[2];
static unsigned long number; /* counts messages and acknowledgements; the flags hold it */

static void tell_each_other(struct bench* b) {
    const struct address_space mine = {getpid(), (unsigned long)(uintptr_t)b->send, (unsigned long)(uintptr_t)b->recv};
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, spaces, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
}

static void start(struct bench* b) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0,
          0); /* needed where Yama restricts ptrace; fails harmlessly elsewhere */
    flags = bench_share(b, sizeof *flags);
    tell_each_other(b);
}

static void end(struct bench* b) {
    (void)b;
    munmap(flags, sizeof *flags);
}

static void meet(atomic_ulong mine[8], atomic_ulong other[8]) {
    atomic_store_explicit(&mine[0], number, memory_order_release);
    for (long spins = 0; atomic_load_explicit(&other[0], memory_order_acquire) < number; ++spins) {
        if (spins > kSpinsBeforeYield) {
            sched_yield();
        }
    }
}

static void copy(const struct bench* b, bool write, unsigned char* here, unsigned long there, size_t bytes) {
    const pid_t peer = (pid_t)spaces[1 - b->rank].pid;
    for (size_t done = 0; done < bytes;) {
        const struct iovec local = {here + done, bytes - done};
        const struct iovec remote = {(void*)(uintptr_t)(there + done), bytes - done};  // NOLINT: an address elsewhere
        const ssize_t moved = write ? process_vm_writev(peer, &local, 1, &remote, 1, 0)
                                    : process_vm_readv(peer, &local, 1, &remote, 1, 0);
        if (moved <= 0) {
            bench_give_up(b, write ? "process_vm_writev" : "process_vm_readv");
        }
        done += (size_t)moved;
    }
}

/* The end of the part that rank 1 copies. */
static size_t middle_of(size_t bytes) { return one != 0 ? bytes : bytes / 2; }

static void move(struct bench* b, size_t bytes, int slot) {
    const size_t middle = middle_of(bytes), at = (size_t)slot * bench_stride(b, bytes);
    ++number;
    meet(flags->ready[b->rank], flags->ready[1 - b->rank]);
    if (b->rank == 0) {
        copy(b, true, b->send + at + middle, spaces[1].recv + at + middle, bytes - middle);
    } else {
        copy(b, false, b->recv + at, spaces[0].send + at, middle);
    }
    meet(flags->done[b->rank], flags->done[1 - b->rank]);
}

static void acknowledge(struct bench* b) {
    ++number;
    meet(flags->done[b->rank], flags->done[1 - b->rank]);
}

static void prepare(struct bench* b, size_t bytes) {
    for (int slot = 0; slot < bench_window(b, bytes) && b->options.verify; ++slot) {
        if (b->rank == 0) {
            bench_fill(bench_slot(b, b->send, bytes, slot), bytes, 0, b->message + (uint64_t)slot);
        } else {
            bench_guard(bench_slot(b, b->recv, bytes, slot), bytes);
        }
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    const int window = bench_window(b, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)window) {
        prepare(b, bytes);
        for (int slot = 0; slot < window; ++slot) {
            move(b, bytes, slot);
        }
        if (b->rank == 1) {
            bench_check_window(b, bytes, 0);
        }
        acknowledge(b);
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "one", .help = "only the receiver copies: it reads the whole message", .target = &one},
        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_copy_limit",
                                    .summary = "upper limit of kernel copies, without MPI; each side copies half",
                                    .unit = "MB/s",
                                    .better = "higher",
                                    .decimals = 3,
                                    .windowed = true,
                                    .default_max_bytes = 64 << 20,
                                    .extra = extra,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = figure};
    return bench_main(argc, argv, &spec);
}
