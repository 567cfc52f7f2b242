/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verification (-d). Each 8-byte word of a message is a hash of (sender, message number, word number): data at a wrong
 * offset, from another message or never written differs in nearly every byte. The bytes after the message are checked,
 * too, for writes past its end.
 */
#include "bench_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t seed_of(int from, uint64_t message) { return mix(message * 0x9e3779b97f4a7c15u + (uint64_t)from + 1); }

static uint64_t word_at(uint64_t seed, size_t word) { return mix(seed + word * 0x9e3779b97f4a7c15u); }

void bench_fill(unsigned char* buffer, size_t bytes, int from, uint64_t message) {
    const uint64_t seed = seed_of(from, message);
    for (size_t at = 0; at < bytes; at += 8) {
        const uint64_t word = word_at(seed, at / 8);
        memcpy(buffer + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

void bench_guard(unsigned char* buffer, size_t bytes) { memset(buffer + bytes, kGuardByte, kGuardBytes); }

/* The expected contents of a message: a pattern, or given bytes. */
struct expectation {
    uint64_t seed;              /* of the pattern; valid if bytes is NULL */
    const unsigned char* bytes; /* NULL: the pattern */
    char what[80];              /* for the error message */
};

static unsigned expected_at(const struct expectation* e, size_t bytes, size_t offset) {
    if (offset >= bytes) {
        return kGuardByte;
    }
    if (e->bytes) {
        return e->bytes[offset];
    }
    const uint64_t word = word_at(e->seed, offset / 8);
    unsigned char raw[8];
    memcpy(raw, &word, 8);
    return raw[offset % 8];
}

static void report(const struct bench* b, const unsigned char* buffer, size_t bytes, size_t guard,
                   const struct expectation* e) {
    size_t first = 0, wrong = 0;
    for (size_t at = 0; at < bytes + guard; ++at) {
        if (buffer[at] != expected_at(e, bytes, at) && wrong++ == 0) {
            first = at;
        }
    }
    fprintf(stderr,
            "data mismatch on rank %d: %s, first wrong offset %zu%s: expected 0x%02x, seen 0x%02x (%zu wrong bytes)\n",
            b->rank, e->what, first, first >= bytes ? " (past the end)" : "", expected_at(e, bytes, first),
            buffer[first], wrong);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static bool same(const unsigned char* buffer, size_t bytes, const struct expectation* e) {
    if (e->bytes) {
        return memcmp(buffer, e->bytes, bytes) == 0;
    }
    for (size_t at = 0; at < bytes; at += 8) {
        const uint64_t word = word_at(e->seed, at / 8);
        if (memcmp(buffer + at, &word, bytes - at < 8 ? bytes - at : 8) != 0) {
            return false;
        }
    }
    return true;
}

static void check(const struct bench* b, unsigned char* buffer, size_t bytes, size_t guard,
                  const struct expectation* e) {
    const long long fault = b->options.fault_at;
    if (fault >= 0 && (size_t)fault < bytes + guard) {
        buffer[fault] ^= 0x40;
    }
    bool good = same(buffer, bytes, e);
    for (size_t at = bytes; at < bytes + guard && good; ++at) {
        good = buffer[at] == kGuardByte;
    }
    if (!good) {
        report(b, buffer, bytes, guard, e);
    }
}

static void check_message(struct bench* b, unsigned char* buffer, size_t bytes, size_t guard, int from,
                          uint64_t message) {
    struct expectation e = {.seed = seed_of(from, message)};
    snprintf(e.what, sizeof e.what, "message %llu of %zu bytes from rank %d", (unsigned long long)message, bytes, from);
    check(b, buffer, bytes, guard, &e);
}

void bench_check(struct bench* b, unsigned char* buffer, size_t bytes, int from, uint64_t message) {
    check_message(b, buffer, bytes, kGuardBytes, from, message);
}

void bench_check_unguarded(struct bench* b, unsigned char* buffer, size_t bytes, int from, uint64_t message) {
    check_message(b, buffer, bytes, 0, from, message);
}

void bench_check_bytes(struct bench* b, unsigned char* buffer, size_t bytes, size_t guard,
                       const unsigned char* expected, const char* what) {
    struct expectation e = {.bytes = expected};
    snprintf(e.what, sizeof e.what, "%s", what);
    check(b, buffer, bytes, guard, &e);
}

static float float_at(uint64_t seed, size_t at) { return (float)(word_at(seed, at) & 0xff); }

void bench_fill_floats(float* buffer, size_t count, int from, uint64_t message) {
    const uint64_t seed = seed_of(from, message);
    for (size_t at = 0; at < count; ++at) {
        buffer[at] = float_at(seed, at);
    }
}

void bench_check_sum(struct bench* b, float* buffer, size_t count, uint64_t message) {
    float* sum = calloc(count, sizeof *sum);
    if (!sum) {
        fprintf(stderr, "rank %d: no memory for a sum of %zu floats\n", b->rank, count);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (int from = 0; from < b->ranks; ++from) {
        const uint64_t seed = seed_of(from, message);
        for (size_t at = 0; at < count; ++at) {
            sum[at] += float_at(seed, at);
        }
    }
    char what[80];
    snprintf(what, sizeof what, "sum %llu of %zu floats over all ranks", (unsigned long long)message, count);
    bench_check_bytes(b, (void*)buffer, count * sizeof *buffer, kGuardBytes, (const void*)sum, what);
    free(sum);
}

double bench_touch;
const struct bench_extra bench_touch_option = {
    .name = "touch",
    .help = "write every message before it is sent, and read it when it has arrived, as programs do",
    .target = &bench_touch};

void bench_write_message(const struct bench* b, unsigned char* buffer, size_t bytes, uint64_t message) {
    if (b->options.verify) {
        bench_fill(buffer, bytes, b->rank, message);
    } else if (bench_touch != 0) {
        memset(buffer, (int)message, bytes);
    }
}

/* The sum of all words, so that the compiler cannot leave out reading any of them. */
static uint64_t sum_of(const unsigned char* buffer, size_t bytes) {
    uint64_t sum = 0, word;
    size_t at = 0;
    for (; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, buffer + at, sizeof word);
        sum += word;
    }
    for (; at < bytes; ++at) {
        sum += buffer[at];
    }
    return sum;
}

void bench_read_message(struct bench* b, unsigned char* buffer, size_t bytes, int from, uint64_t message) {
    if (b->options.verify) {
        bench_check(b, buffer, bytes, from, message);
    } else if (bench_touch != 0) {
        const volatile uint64_t sum = sum_of(buffer, bytes);
        (void)sum;
    }
}
