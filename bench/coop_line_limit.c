/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shortest half round trip that two processes can reach through shared memory. MPI only starts them. A message of
 * up to 48 bytes is in the cache line of the word that announces it: one line goes to the other core. A longer one
 * follows in pieces; after each, the sender announces how many bytes are there, and the receiver copies them out while
 * the sender copies the next piece in.
 *
 * With --ring each message takes the lines after those of the message before, in a ring of kRingBytes, or of 4 messages
 * if that is more. A record is a word, the number of the message, and its data. The sender prefetches the lines of the
 * next record after each message.
 */
#include "bench_shared.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { kInLine = 48, kPieceBytes = 4096, kRingBytes = 64 << 10 };

/* What one rank writes and the other reads. */
struct lane {
    _Alignas(kLineBytes) atomic_ulong there; /* bytes of all messages until now; a short message counts as one byte */
    unsigned char payload[kInLine];
    _Alignas(kLineBytes) unsigned char pieces[];
};

static double in_ring;
static struct lane *out, *in;
static size_t ring_bytes, out_at, in_at; /* with --ring */
static unsigned long sent, received;     /* counted as in `there` */
static unsigned char* mapped;            /* the lanes of both */
static size_t mapped_bytes;

static size_t record_bytes(size_t bytes) {
    return (sizeof(atomic_ulong) + bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

static void start(struct bench* b) {
    const size_t four = 4 * record_bytes(b->options.max_bytes);
    ring_bytes = four > kRingBytes ? four : kRingBytes;
    const size_t bytes = in_ring != 0 ? ring_bytes : sizeof(struct lane) + b->options.max_bytes;
    const size_t lines = (bytes + kLineBytes - 1) / kLineBytes;
    mapped_bytes = 2 * lines * kLineBytes;
    mapped = bench_share(b, mapped_bytes);
    void* const first = mapped;
    void* const second = mapped + lines * kLineBytes;
    out = b->rank == 0 ? first : second;
    in = b->rank == 0 ? second : first;
}

static void end(struct bench* b) {
    (void)b;
    munmap(mapped, mapped_bytes);
}

/* Without a yield: each process needs a core. */
static void wait_until(unsigned long bytes) {
    while (atomic_load_explicit(&in->there, memory_order_acquire) < bytes) {
    }
}

static void announce(unsigned long bytes) {
    sent += bytes;
    atomic_store_explicit(&out->there, sent, memory_order_release);
}

/* Where the next record begins. A word of an earlier lap has a smaller number. */
static unsigned char* next_record(struct lane* lane, size_t* at, size_t bytes) {
    if (*at + record_bytes(bytes) > ring_bytes) {
        *at = 0;
    }
    unsigned char* const record = (unsigned char*)lane + *at;
    *at += record_bytes(bytes);
    return record;
}

static void send_through_ring(struct bench* b, size_t bytes) {
    unsigned char* const record = next_record(out, &out_at, bytes);
    memcpy(record + sizeof(atomic_ulong), b->send, bytes);
    atomic_store_explicit((atomic_ulong*)(void*)record, ++sent, memory_order_release);
    for (size_t line = 0; line < record_bytes(bytes) && out_at + line < ring_bytes; line += kLineBytes) {
        __builtin_prefetch((unsigned char*)out + out_at + line, 1);
    }
}

static void receive_through_ring(struct bench* b, size_t bytes) {
    unsigned char* const record = next_record(in, &in_at, bytes);
    ++received;
    while (atomic_load_explicit((atomic_ulong*)(void*)record, memory_order_acquire) != received) {
    }
    memcpy(b->recv, record + sizeof(atomic_ulong), bytes);
}

static void send_one(struct bench* b, size_t bytes) {
    if (b->options.verify) {
        bench_fill(b->send, bytes, b->rank, b->message);
    }
    if (in_ring != 0) {
        send_through_ring(b, bytes);
        return;
    }
    if (bytes <= kInLine) {
        memcpy(out->payload, b->send, bytes);
        announce(1);
        return;
    }
    for (size_t at = 0; at < bytes; at += kPieceBytes) {
        const size_t piece = bytes - at < kPieceBytes ? bytes - at : kPieceBytes;
        memcpy(out->pieces + at, b->send + at, piece);
        announce(piece);
    }
}

static void receive_pieces(struct bench* b, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kPieceBytes) {
        const size_t piece = bytes - at < kPieceBytes ? bytes - at : kPieceBytes;
        wait_until(received += piece);
        memcpy(b->recv + at, in->pieces + at, piece);
    }
}

static void receive_one(struct bench* b, size_t bytes) {
    if (b->options.verify) {
        bench_guard(b->recv, bytes);
    }
    if (in_ring != 0) {
        receive_through_ring(b, bytes);
    } else if (bytes <= kInLine) {
        wait_until(received += 1);
        memcpy(b->recv, in->payload, bytes);
    } else {
        receive_pieces(b, bytes);
    }
    if (b->options.verify) {
        bench_check(b, b->recv, bytes, 1 - b->rank, b->message);
    }
}

static double seconds(struct bench* b, size_t bytes, long iterations) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = bench_now_s();
    for (long i = 0; i < iterations; ++i, ++b->message) {
        if (b->rank == 0) {
            send_one(b, bytes);
            receive_one(b, bytes);
        } else {
            receive_one(b, bytes);
            send_one(b, bytes);
        }
    }
    return bench_now_s() - start_s;
}

int main(int argc, char** argv) {
    const struct bench_extra extra[] = {{.name = "ring",
                                         .help = "each message takes other lines, of a ring, and not the same ones",
                                         .target = &in_ring},
                                        {.name = NULL}};
    const struct bench_spec spec = {.name = "coop_line_limit",
                                    .summary = "half round trip through shared memory without MPI",
                                    .unit = "us",
                                    .better = "lower",
                                    .decimals = 4,
                                    .extra = extra,
                                    .default_max_bytes = 128 << 10,
                                    .start = start,
                                    .end = end,
                                    .seconds = seconds,
                                    .figure = bench_half_round_trip_us};
    return bench_main(argc, argv, &spec);
}
