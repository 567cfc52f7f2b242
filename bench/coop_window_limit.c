/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bandwidth of a window of messages that a simple program reaches between two processes without matching and
 * without requests. MPI only starts the processes. Messages and buffers are those of coop_bw, or with --both those of
 * coop_bibw; but each window ends before the next one begins.
 *
 * The sender copies a message into a ring in shared memory, in pieces of up to 4 KiB, and the receiver copies them out.
 * A piece of up to 48 bytes is in the cache line of the word that announces it. With --read the sender announces the
 * address of a whole message, and the receiver copies it with process_vm_readv.
 */
#define _GNU_SOURCE
#include "bench_shared.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    kSlots = 64,
    kInLine = 48,
    kPieceBytes = 4096,
    kTellEvery = 16 /* pieces: how often the receiver updates `taken` */
};

/* Written by one rank and read by the other; `taken` the other way round. */
struct ring {
    struct {
        _Alignas(kLineBytes) atomic_ulong number; /* of the piece, from 1 */
        unsigned char payload[kInLine];
    } lines[kSlots];
    _Alignas(kLineBytes) atomic_ulong taken; /* pieces, told by the receiver */
    unsigned long pid;                       /* of the sender */
    _Alignas(kLineBytes) unsigned char pieces[kSlots][kPieceBytes];
};

/* One direction: the messages that this rank sends, or those that it receives. */
struct way {
    struct ring* ring;
    unsigned long pieces;      /* that have been sent or received */
    unsigned long known_taken; /* the value of `taken` when it was read last */
    int slot;                  /* number of the current message in its window */
    size_t at;                 /* bytes of it that have been copied */
};

static double both = 0, by_read = 0;
static struct way out, in;

static void start(struct bench* b) {
    struct ring* rings = bench_share(b, 2 * sizeof *rings);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* needed where Yama restricts ptrace */
    out.ring = &rings[b->rank];
    in.ring = &rings[1 - b->rank];
    out.ring->pid = (unsigned long)getpid();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void end(struct bench* b) { munmap(b->rank == 0 ? out.ring : in.ring, 2 * sizeof *out.ring); }

static size_t next_piece(const struct way* w, size_t bytes) {
    const size_t left = bytes - w->at;
    return by_read != 0 || left < kPieceBytes ? left : kPieceBytes;
}

static void advance(struct way* w, size_t piece, size_t bytes) {
    ++w->pieces;
    if ((w->at += piece) == bytes) {
        w->at = 0;
        ++w->slot;
    }
}

/* Returns at once if the ring is full. */
static void send_piece(struct bench* b, size_t bytes) {
    struct ring* const ring = out.ring;
    if (out.pieces - out.known_taken == kSlots &&
        out.pieces - (out.known_taken = atomic_load_explicit(&ring->taken, memory_order_acquire)) == kSlots) {
        return;
    }
    const size_t slot = out.pieces % kSlots, piece = next_piece(&out, bytes);
    const unsigned char* from = bench_slot(b, b->send, bytes, out.slot) + out.at;
    if (by_read != 0) {
        memcpy(ring->lines[slot].payload, &from, sizeof from);
    } else {
        memcpy(piece <= kInLine ? ring->lines[slot].payload : ring->pieces[slot], from, piece);
    }
    atomic_store_explicit(&ring->lines[slot].number, out.pieces + 1, memory_order_release);
    advance(&out, piece, bytes);
}

static void read_from_sender(const struct bench* b, unsigned char* to, const unsigned char* payload, size_t bytes) {
    struct iovec here = {to, bytes}, there = {NULL, bytes};
    memcpy(&there.iov_base, payload, sizeof there.iov_base);
    errno = EIO; /* for a part of the message */
    if (process_vm_readv((pid_t)in.ring->pid, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
        bench_give_up(b, "process_vm_readv");
    }
}

/* Returns at once if nothing has arrived. */
static void receive_piece(struct bench* b, size_t bytes) {
    struct ring* const ring = in.ring;
    const size_t slot = in.pieces % kSlots, piece = next_piece(&in, bytes);
    if (atomic_load_explicit(&ring->lines[slot].number, memory_order_acquire) != in.pieces + 1) {
        return;
    }
    unsigned char* to = bench_slot(b, b->recv, bytes, in.slot) + in.at;
    if (by_read != 0) {
        read_from_sender(b, to, ring->lines[slot].payload, bytes);
    } else {
        memcpy(to, piece <= kInLine ? ring->lines[slot].payload : ring->pieces[slot], piece);
    }
    advance(&in, piece, bytes);
    if (in.pieces % kTellEvery == 0) {
        atomic_store_explicit(&ring->taken, in.pieces, memory_order_release);
    }
}

static void await_receiver(void) {
    while (atomic_load_explicit(&out.ring->taken, memory_order_acquire) != out.pieces) {
    }
    out.known_taken = out.pieces;
}

static void prepare(struct bench* b, size_t bytes, bool sends, bool receives) {
    out.slot = in.slot = 0;
    for (int slot = 0; slot < bench_window(b, bytes) && b->options.verify; ++slot) {
        if (sends) {
            bench_fill(bench_slot(b, b->send, bytes, slot), bytes, b->rank, b->message + (uint64_t)slot);
        }
        if (receives) {
            bench_guard(bench_slot(b, b->recv, bytes, slot), bytes);
        }
    }
}

/* Each process needs a core: a waiting one does not yield. */
static void exchange(struct bench* b, size_t bytes) {
    const bool sends = both != 0 || b->rank == 0, receives = both != 0 || b->rank == 1;
    const int window = bench_window(b, bytes);
    prepare(b, bytes, sends, receives);
    while ((sends && out.slot < window) || (receives && in.slot < window)) {
        if (sends && out.slot < window) {
            send_piece(b, bytes);
        }
        if (receives && in.slot < window) {
            receive_piece(b, bytes);
        }
    }
    if (receives) {
        atomic_store_explicit(&in.ring->taken, in.pieces, memory_order_release);
        bench_check_window(b, bytes, 1 - b->rank);
    }
    if (sends) {
        await_receiver();
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, b->message += (uint64_t)bench_window(b, bytes)) {
        exchange(b, bytes);
    }
    return bench_now_s() - start_s;
}

static double figure(const struct bench* b, size_t bytes, long iterations, double elapsed_s) {
    return (both != 0 ? 2.0 : 1.0) * (double)bytes * bench_window(b, bytes) * (double)iterations / elapsed_s / 1e6;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {
        {.name = "both", .help = "both ways at once, as coop_bibw", .target = &both},
        {.name = "read", .help = "the receiver copies whole messages with process_vm_readv", .target = &by_read},
        {.name = NULL}};
    const struct bench_spec spec = {
        .name = "coop_window_limit",
        .summary = "bandwidth of a window of messages that a simple program reaches without MPI",
        .unit = "MB/s",
        .better = "higher",
        .decimals = 3,
        .windowed = true,
        .extra = extra,
        .default_max_bytes = 4 << 20,
        .start = start,
        .end = end,
        .seconds = seconds,
        .figure = figure};
    return bench_main(argc, argv, &spec);
}
