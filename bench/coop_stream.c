/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth over the course of a long transfer, to show the effect of changes in the network. Rank 0 sends messages of
 * one size, a window of them in flight; rank 1 records the arrival of each and checks its first and last bytes. When
 * given messages have arrived, rank 1 runs a command, for example to load or pull a cable.
 */
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kTag = 5, kMostWindow = 1024, kMostEvents = 16, kMark = 8 };

struct event {
    long message;
    const char* command;
};
struct options {
    long messages, bytes, window, group;
    struct event events[kMostEvents];
    int count;
};

static int help(FILE* to, int status) {
    fprintf(to,
            "coop_stream: MB/s over the course of a long transfer between two ranks\n\n"
            "  -n MESSAGES    number of messages (default 240)\n"
            "  -m BYTES       size of each, at least 16 (default 1048576)\n"
            "  -w WINDOW      messages in flight (default 4)\n"
            "  -g MESSAGES    messages per line of output (default 10)\n"
            "  -e N=COMMAND   run COMMAND in a shell of rank 1 when message N has arrived; up to 16 times\n"
            "  -h             this text\n");
    return status;
}

static bool number(const char* text, long least, long most, long* target) {
    char* rest;
    *target = strtol(text, &rest, 10);
    return rest != text && *rest == '\0' && *target >= least && *target <= most;
}

static bool event(char* text, struct options* o) {
    char* sign = strchr(text, '=');
    if (!sign || o->count == kMostEvents) {
        return false;
    }
    *sign = '\0';
    o->events[o->count].command = sign + 1;
    const bool right = number(text, 0, INT_MAX, &o->events[o->count++].message);
    *sign = '=';
    return right;
}

static int complain(bool tell, int option, const char* value, const char* allowed) {
    if (tell) {
        fprintf(stderr, "coop_stream: option -%c: value '%s' not allowed: use %s\n", option, value, allowed);
    }
    return 2;
}

/* Returns 0 to continue, 1 after printing the help, or another exit status. */
static int parse(int argc, char** argv, bool tell, struct options* o) {
    const struct {
        int option;
        long least, most, *target;
    } numbers[] = {{'n', 1, 1000000, &o->messages},
                   {'m', 2 * kMark, INT_MAX, &o->bytes},
                   {'w', 1, kMostWindow, &o->window},
                   {'g', 1, 1000000, &o->group}};
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "n:m:w:g:e:h")) != -1) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
            if (option == numbers[i].option && !number(optarg, numbers[i].least, numbers[i].most, numbers[i].target)) {
                char range[64];
                snprintf(range, sizeof range, "%ld to %ld", numbers[i].least, numbers[i].most);
                return complain(tell, option, optarg, range);
            }
        }
        if (option == 'e' && !event(optarg, o)) {
            return complain(tell, option, optarg, "MESSAGE=COMMAND, 16 times at most");
        }
        if (option == 'h') {
            return tell ? help(stdout, 1) : 1;
        }
        if (option == '?') {
            return tell ? help(stderr, 2) : 2;
        }
    }
    return optind < argc ? (tell ? help(stderr, 2) : 2) : 0;
}

static void mark(unsigned char* buffer, long bytes, long message) {
    memcpy(buffer, &message, kMark);
    memcpy(buffer + bytes - kMark, &message, kMark);
}

static void check(const unsigned char* buffer, long bytes, long message) {
    if (memcmp(buffer, &message, kMark) != 0 || memcmp(buffer + bytes - kMark, &message, kMark) != 0) {
        fprintf(stderr, "coop_stream: message %ld has the data of another message\n", message);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
}

static void start(int rank, const struct options* o, unsigned char* buffers, long message, MPI_Request* requests) {
    const long slot = message % o->window;
    unsigned char* buffer = buffers + slot * o->bytes;
    if (rank == 0) {
        mark(buffer, o->bytes, message);
        MPI_Isend(buffer, (int)o->bytes, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests[slot]);
    } else {
        MPI_Irecv(buffer, (int)o->bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[slot]);
    }
}

static void happen(const struct options* o, long message) {
    for (int i = 0; i < o->count; ++i) {
        if (o->events[i].message == message) {
            const int status = system(o->events[i].command);
            printf("# message %ld: %s%s\n", message, o->events[i].command, status == 0 ? "" : " (failed)");
        }
    }
}

/* The line of a group starts with the number of its first message. */
static void stream(int rank, const struct options* o, unsigned char* buffers, MPI_Request* requests) {
    double since_s = MPI_Wtime();
    for (long message = 0; message < o->window && message < o->messages; ++message) {
        start(rank, o, buffers, message, requests);
    }
    for (long message = 0; message < o->messages; ++message) {
        MPI_Wait(&requests[message % o->window], MPI_STATUS_IGNORE);
        if (rank == 1) {
            check(buffers + message % o->window * o->bytes, o->bytes, message);
            happen(o, message);
        }
        if (message + o->window < o->messages) {
            start(rank, o, buffers, message + o->window, requests);
        }
        if (rank == 1 && (message + 1) % o->group == 0) {
            const double now_s = MPI_Wtime();
            printf("%-10ld %12.3f\n", message + 1 - o->group, (double)(o->group * o->bytes) / (now_s - since_s) * 1e-6);
            since_s = now_s;
        }
    }
}

int main(int argc, char** argv) {
    struct options o = {.messages = 240, .bytes = 1 << 20, .window = 4, .group = 10};
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = parse(argc, argv, rank == 0, &o);
    if (status == 0 && ranks != 2) {
        if (rank == 0) {
            fprintf(stderr, "coop_stream: needs exactly 2 ranks, was started with %d\n", ranks);
        }
        status = 2;
    }
    if (status == 0) {
        unsigned char* buffers = calloc((size_t)o.window, (size_t)o.bytes);
        MPI_Request* requests = malloc((size_t)o.window * sizeof *requests);
        if (!buffers || !requests) {
            fprintf(stderr, "coop_stream: no memory for %ld messages of %ld bytes\n", o.window, o.bytes);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        if (rank == 1) {
            printf(
                "# benchmark: coop_stream (bandwidth over the course of a transfer of %ld messages of %ld bytes, %ld "
                "under way)\n"
                "# unit: MB/s\n# better: higher\n# key: message\n",
                o.messages, o.bytes, o.window);
        }
        stream(rank, &o, buffers, requests);
        free(requests);
        free(buffers);
    }
    MPI_Finalize();
    return status == 1 ? 0 : status;
}
