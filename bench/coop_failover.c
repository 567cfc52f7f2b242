/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When messages arrive while rails fail and come back. Two ranks; the caller makes the faults. Each rank writes the times at
 * which it has received messages, in seconds of CLOCK_MONOTONIC, to a file that is complete up to the last message also if the
 * job dies. Every byte of each message is checked.
 *
 *     coop_failover [-k KIND] [-m BYTES] [-w WINDOW] [-t SECONDS] [-d SECONDS] [-o FILE]
 *
 * -t: how long messages are sent (2 s); -d: pause between 'started' and the first message (0). KIND (default send):
 *     send       rank 0 sends, WINDOW messages under way
 *     both       both ranks send and receive
 *     put, get   rank 0 writes to or reads from rank 1, WINDOW messages and a flush; the time of each is that of the flush,
 *                at rank 0. Puts are checked at the end
 *     add        rank 0 adds to a counter of rank 1, a flush after each; the sum is checked at the end
 * FILE.0 and FILE.1 are arrays of doubles; a zero ends them. Rank 0 prints 'started' when the ranks are connected. At the end each
 * receiver prints the MB/s of each tenth of a second.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kTag = 7, kLeast = 16, kMostWindow = 256, kMostTimes = 1 << 21 };

struct options {
    const char *kind, *file;
    long bytes, window;
    double seconds, delay;
};

static int rank;
static double* times; /* of messages; in a shared mapping, if there is a file */
static long received;
static double begun;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char* what, long number) {
    fprintf(stderr, "coop_failover: rank %d: %s, message %ld\n", rank, what, number);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void* room(size_t bytes) {
    void* memory = calloc(1, bytes);
    if (memory == NULL) fail("no memory", 0);
    return memory;
}

static void open_times(const char* file) {
    const size_t bytes = sizeof(double) * (kMostTimes + 1);
    char name[4096];
    times = NULL;
    if (file == NULL) {
        times = room(bytes);
        return;
    }
    snprintf(name, sizeof name, "%s.%d", file, rank);
    const int descriptor = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes) != 0) fail("cannot write the file of -o", 0);
    times = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (times == MAP_FAILED) fail("cannot map the file of -o", 0);
}

static void count(long messages) {
    const double at = now();
    for (; messages > 0 && received < kMostTimes; --messages) times[received++] = at;
}

/* Word 0 is the number of the message, word 1 the number of messages in all, or 0 while that is unknown. */
static void fill(uint64_t* words, long bytes, long number, long all) {
    const uint64_t base = (uint64_t)(number + 1) * 0x9E3779B97F4A7C15u;
    for (long i = 2; i < bytes / 8; ++i) words[i] = base + (uint64_t)i;
    words[0] = (uint64_t)number;
    words[1] = (uint64_t)all;
}

static long check(const uint64_t* words, long bytes, long number) {
    const uint64_t base = (uint64_t)(number + 1) * 0x9E3779B97F4A7C15u;
    uint64_t wrong = words[0] ^ (uint64_t)number;
    for (long i = 2; i < bytes / 8; ++i) wrong |= words[i] ^ (base + (uint64_t)i);
    if (wrong != 0) fail("the data is not that of the message", number);
    return (long)words[1];
}

/* One direction. The sender tells the end a window ahead, so that the receiver has posted no receive for which there is no
 * message. */
struct flow {
    bool sends, active;
    long next, all; /* the number of the next message to wait for; of messages, 0 while unknown */
    uint64_t** buffers;
    MPI_Request* requests;
};

static void start(struct flow* f, const struct options* o, long number) {
    uint64_t* const buffer = f->buffers[number % o->window];
    MPI_Request* const request = &f->requests[number % o->window];
    if (f->sends) {
        if (f->all == 0 && now() - begun >= o->seconds) f->all = number + o->window;
        fill(buffer, o->bytes, number, f->all);
        MPI_Isend(buffer, (int)o->bytes, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, request);
    } else {
        MPI_Irecv(buffer, (int)o->bytes, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, request);
    }
}

static void begin(struct flow* f, const struct options* o, bool sends) {
    *f = (struct flow){.sends = sends, .active = true};
    f->buffers = room((size_t)o->window * sizeof *f->buffers);
    f->requests = room((size_t)o->window * sizeof *f->requests);
    for (long i = 0; i < o->window; ++i) f->buffers[i] = room((size_t)o->bytes);
}

/* Takes the next message if it is there. */
static void step(struct flow* f, const struct options* o) {
    const long number = f->next;
    int done = 0;
    MPI_Test(&f->requests[number % o->window], &done, MPI_STATUS_IGNORE);
    if (!done) return;
    if (!f->sends) {
        const long all = check(f->buffers[number % o->window], o->bytes, number);
        count(1);
        if (f->all == 0) f->all = all;
    }
    ++f->next;
    if (f->all == 0 || number + o->window < f->all) start(f, o, number + o->window);
    f->active = f->all == 0 || f->next < f->all;
}

static void exchange(const struct options* o, bool both) {
    struct flow flows[2];
    const int used = both ? 2 : 1;
    begin(&flows[0], o, rank == 0);
    if (both) begin(&flows[1], o, rank == 1);
    for (int i = 0; i < used; ++i)
        for (long number = 0; number < o->window; ++number) start(&flows[i], o, number);
    while (flows[0].active || (both && flows[1].active))
        for (int i = 0; i < used; ++i)
            if (flows[i].active) step(&flows[i], o);
}

/* Only rank 0 works, rank 1 waits in the barrier at the end. */
static void one_sided(const struct options* o, char kind) {
    uint64_t *window, *local = room((size_t)(o->bytes * o->window)), sum = 0, one = 1;
    long number = 0;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)(o->bytes * o->window), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (long i = 0; i < o->window; ++i) fill(window + i * o->bytes / 8, o->bytes, i, 0);
    if (kind == 'a') *window = 0;
    MPI_Win_lock_all(0, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (; rank == 0 && now() - begun < o->seconds; count(kind == 'a' ? 1 : o->window)) {
        for (long i = 0; i < o->window; ++i, ++number) {
            uint64_t* const mine = local + i * o->bytes / 8;
            const MPI_Aint there = (MPI_Aint)(i * o->bytes);
            if (kind == 'p') {
                fill(mine, o->bytes, number, 0);
                MPI_Put(mine, (int)o->bytes, MPI_BYTE, 1, there, (int)o->bytes, MPI_BYTE, win);
            } else if (kind == 'g') {
                memset(mine, 0xff, (size_t)o->bytes);
                MPI_Get(mine, (int)o->bytes, MPI_BYTE, 1, there, (int)o->bytes, MPI_BYTE, win);
            } else {
                MPI_Fetch_and_op(&one, local, MPI_UINT64_T, 1, 0, MPI_SUM, win);
                ++number;
                break;
            }
        }
        MPI_Win_flush(1, win);
        for (long i = 0; kind == 'g' && i < o->window; ++i) check(local + i * o->bytes / 8, o->bytes, i);
    }
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (long i = 0; rank == 1 && kind == 'p' && number > 0 && i < o->window; ++i)
        check(window + i * o->bytes / 8, o->bytes, number - o->window + i);
    if (kind == 'a' && rank == 0) {
        MPI_Fetch_and_op(&one, &sum, MPI_UINT64_T, 1, 0, MPI_NO_OP, win);
        MPI_Win_flush(1, win);
        if (sum != (uint64_t)number) fail("a wrong sum", number);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void print_rates(const struct options* o) {
    if (received == 0) return;
    const int tenths = (int)((times[received - 1] - begun) * 10) + 1;
    long at = 0;
    printf("# rank %d: MB/s:", rank);
    for (int i = 1; i <= tenths; ++i) {
        const long first = at;
        while (at < received && times[at] < begun + 0.1 * i) ++at;
        printf(" %.0f", (double)((at - first) * o->bytes) * 1e-5);
    }
    printf("\n");
    fflush(stdout);
}

static bool number(const char* text, double least, double most, double* target) {
    char* rest;
    *target = strtod(text, &rest);
    return rest != text && *rest == '\0' && *target >= least && *target <= most;
}

static int complain(int option, const char* value, const char* allowed) {
    if (rank == 0)
        fprintf(stderr, "coop_failover: option -%c: value '%s' not allowed: use %s\n", option, value, allowed);
    return 2;
}

static int parse(int argc, char** argv, struct options* o) {
    static const char* const kinds[] = {"send", "both", "put", "get", "add"};
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "k:m:w:t:d:o:")) != -1) {
        double value = 0;
        bool known = false;
        switch (option) {
        case 'k':
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) known = known || strcmp(optarg, kinds[i]) == 0;
            if (!known) return complain(option, optarg, "send, both, put, get or add");
            o->kind = optarg;
            break;
        case 'm':
            if (!number(optarg, kLeast, 1 << 30, &value)) return complain(option, optarg, "16 to 1073741824");
            o->bytes = (long)value / 8 * 8;
            break;
        case 'w':
            if (!number(optarg, 1, kMostWindow, &value)) return complain(option, optarg, "1 to 256");
            o->window = (long)value;
            break;
        case 't':
            if (!number(optarg, 0.01, 3600, &o->seconds)) return complain(option, optarg, "0.01 to 3600");
            break;
        case 'd':
            if (!number(optarg, 0, 3600, &o->delay)) return complain(option, optarg, "0 to 3600");
            break;
        case 'o': o->file = optarg; break;
        default:
            if (rank == 0)
                fprintf(stderr,
                        "usage: coop_failover [-k KIND] [-m BYTES] [-w WINDOW] [-t SECONDS] [-d SECONDS] [-o FILE]\n");
            return 2;
        }
    }
    return 0;
}

int main(int argc, char** argv) {
    struct options o = {.kind = "send", .bytes = 65536, .window = 16, .seconds = 2};
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = parse(argc, argv, &o);
    if (status == 0 && ranks != 2) {
        if (rank == 0) fprintf(stderr, "coop_failover: needs exactly 2 ranks, was started with %d\n", ranks);
        status = 2;
    }
    if (status == 0) {
        open_times(o.file);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("started\n");
            fflush(stdout);
        }
        usleep((useconds_t)(1e6 * o.delay));
        begun = now();
        if (strcmp(o.kind, "send") == 0 || strcmp(o.kind, "both") == 0) exchange(&o, o.kind[0] == 'b');
        else one_sided(&o, o.kind[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        print_rates(&o);
    }
    MPI_Finalize();
    return status;
}
