/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the time that a C program spends in MPI calls: a library to preload (LD_PRELOAD) that intercepts the calls
 * through MPI's profiling interface (MPI 3.1, section 14.2). At MPI_Finalize rank 0 prints, for every rank, two lines
 *
 *     # mpi PART RANK elapsed_s wait_s blocking_s testing_s starting_s collective_s calls
 *
 * PART `all` is the time between MPI_Init and MPI_Finalize. PART `split` is the time during which a communicator
 * existed that MPI_Comm_split made from one other than MPI_COMM_WORLD. In HPC Challenge only the solver HPL does this,
 * for its process grid. `wait` is MPI_Wait and the like; `blocking` is blocking sends,
 * receives and probes; `testing` is tests and nonblocking probes; `starting` is nonblocking sends and receives;
 * `collective` is the collectives listed below. A call costs two readings of the clock, about 50 ns. Other calls are
 * not counted, nor are calls that MPI makes internally. Threading: the times of
 * concurrent threads add up; only one thread at a time may split or free communicators. Errors:
 * MPI's. Only C programs are covered.
 */
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum kind { kWait, kBlocking, kTesting, kStarting, kCollective, kKinds };
enum part { kAll, kSplit, kParts };
enum { kMostCommunicators = 64 };

/* The times of a part in nanoseconds and its number of calls, in the order of printing. */
struct account {
    uint64_t elapsed, spent[kKinds], calls;
};
enum { kFields = sizeof(struct account) / sizeof(uint64_t) };

static _Atomic uint64_t spent[kParts][kKinds], calls[kParts];
static _Atomic int splits;                         /* number of communicators that make the part `split` last */
static MPI_Comm communicators[kMostCommunicators]; /* their handles; an unused entry is MPI_COMM_NULL or 0 */
static uint64_t begun_ns, split_begun_ns, split_ns;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void count(enum kind kind, uint64_t begin_ns) {
    const uint64_t took_ns = now_ns() - begin_ns;
    for (int part = kAll; part <= (splits > 0 ? kSplit : kAll); ++part) {
        atomic_fetch_add_explicit(&spent[part][kind], took_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&calls[part], 1, memory_order_relaxed);
    }
}

#define COUNTED(kind, name, parameters, arguments) \
    int MPI_##name parameters {                    \
        const uint64_t begin_ns = now_ns();        \
        const int result = PMPI_##name arguments;  \
        count(kind, begin_ns);                     \
        return result;                             \
    }

#define SEND_PARAMETERS const void *buffer, int count_, MPI_Datatype type, int peer, int tag, MPI_Comm comm
#define SEND_ARGUMENTS buffer, count_, type, peer, tag, comm

COUNTED(kWait, Wait, (MPI_Request * request, MPI_Status* status), (request, status))
COUNTED(kWait, Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]), (n, requests, statuses))
COUNTED(kWait, Waitany, (int n, MPI_Request requests[], int* which, MPI_Status* status), (n, requests, which, status))
COUNTED(kWait, Waitsome, (int n, MPI_Request requests[], int* done, int which[], MPI_Status statuses[]),
        (n, requests, done, which, statuses))

COUNTED(kBlocking, Send, (SEND_PARAMETERS), (SEND_ARGUMENTS))
COUNTED(kBlocking, Ssend, (SEND_PARAMETERS), (SEND_ARGUMENTS))
COUNTED(kBlocking, Rsend, (SEND_PARAMETERS), (SEND_ARGUMENTS))
COUNTED(kBlocking, Recv, (void* buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status),
        (buffer, n, type, peer, tag, comm, status))
COUNTED(kBlocking, Sendrecv,
        (const void* out, int out_n, MPI_Datatype out_type, int to, int out_tag, void* in, int in_n,
         MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status),
        (out, out_n, out_type, to, out_tag, in, in_n, in_type, from, in_tag, comm, status))
COUNTED(kBlocking, Sendrecv_replace,
        (void* buffer, int n, MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm,
         MPI_Status* status),
        (buffer, n, type, to, out_tag, from, in_tag, comm, status))
COUNTED(kBlocking, Probe, (int from, int tag, MPI_Comm comm, MPI_Status* status), (from, tag, comm, status))

COUNTED(kTesting, Test, (MPI_Request * request, int* done, MPI_Status* status), (request, done, status))
COUNTED(kTesting, Testall, (int n, MPI_Request requests[], int* done, MPI_Status statuses[]),
        (n, requests, done, statuses))
COUNTED(kTesting, Testany, (int n, MPI_Request requests[], int* which, int* done, MPI_Status* status),
        (n, requests, which, done, status))
COUNTED(kTesting, Testsome, (int n, MPI_Request requests[], int* done, int which[], MPI_Status statuses[]),
        (n, requests, done, which, statuses))
COUNTED(kTesting, Iprobe, (int from, int tag, MPI_Comm comm, int* found, MPI_Status* status),
        (from, tag, comm, found, status))

COUNTED(kStarting, Isend, (SEND_PARAMETERS, MPI_Request* request), (SEND_ARGUMENTS, request))
COUNTED(kStarting, Issend, (SEND_PARAMETERS, MPI_Request* request), (SEND_ARGUMENTS, request))
COUNTED(kStarting, Irecv,
        (void* buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request),
        (buffer, n, type, peer, tag, comm, request))
COUNTED(kStarting, Start, (MPI_Request * request), (request))
COUNTED(kStarting, Startall, (int n, MPI_Request requests[]), (n, requests))

COUNTED(kCollective, Barrier, (MPI_Comm comm), (comm))
COUNTED(kCollective, Bcast, (void* buffer, int n, MPI_Datatype type, int root, MPI_Comm comm),
        (buffer, n, type, root, comm))
COUNTED(kCollective, Reduce, (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
        (in, out, n, type, op, root, comm))
COUNTED(kCollective, Allreduce, (const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, n, type, op, comm))
COUNTED(kCollective, Gather,
        (const void* in, int in_n, MPI_Datatype in_type, void* out, int out_n, MPI_Datatype out_type, int root,
         MPI_Comm comm),
        (in, in_n, in_type, out, out_n, out_type, root, comm))
COUNTED(kCollective, Scatter,
        (const void* in, int in_n, MPI_Datatype in_type, void* out, int out_n, MPI_Datatype out_type, int root,
         MPI_Comm comm),
        (in, in_n, in_type, out, out_n, out_type, root, comm))
COUNTED(kCollective, Allgather,
        (const void* in, int in_n, MPI_Datatype in_type, void* out, int out_n, MPI_Datatype out_type, MPI_Comm comm),
        (in, in_n, in_type, out, out_n, out_type, comm))
COUNTED(kCollective, Alltoall,
        (const void* in, int in_n, MPI_Datatype in_type, void* out, int out_n, MPI_Datatype out_type, MPI_Comm comm),
        (in, in_n, in_type, out, out_n, out_type, comm))

int MPI_Comm_split(MPI_Comm from, int color, int key, MPI_Comm* made) {
    const int result = PMPI_Comm_split(from, color, key, made);
    if (result != MPI_SUCCESS || from == MPI_COMM_WORLD || *made == MPI_COMM_NULL) {
        return result;
    }
    for (int i = 0; i < kMostCommunicators; ++i) {
        if (!communicators[i] || communicators[i] == MPI_COMM_NULL) {
            communicators[i] = *made;
            if (splits++ == 0) {
                split_begun_ns = now_ns();
            }
            break;
        }
    }
    return result;
}

int MPI_Comm_free(MPI_Comm* comm) {
    for (int i = 0; i < kMostCommunicators; ++i) {
        if (*comm != MPI_COMM_NULL && communicators[i] == *comm) {
            communicators[i] = MPI_COMM_NULL;
            if (--splits == 0) {
                split_ns += now_ns() - split_begun_ns;
            }
            break;
        }
    }
    return PMPI_Comm_free(comm);
}

int MPI_Init(int* argc, char*** argv) {
    const int result = PMPI_Init(argc, argv);
    begun_ns = now_ns();
    return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int result = PMPI_Init_thread(argc, argv, required, provided);
    begun_ns = now_ns();
    return result;
}

static struct account account_of(enum part part, uint64_t elapsed_ns) {
    struct account a = {.elapsed = elapsed_ns, .calls = calls[part]};
    for (int kind = 0; kind < kKinds; ++kind) {
        a.spent[kind] = spent[part][kind];
    }
    return a;
}

static void print_account(enum part part, int rank, const struct account* a) {
    printf("# mpi %-5s %d %.6f", part == kAll ? "all" : "split", rank, (double)a->elapsed * 1e-9);
    for (int kind = 0; kind < kKinds; ++kind) {
        printf(" %.6f", (double)a->spent[kind] * 1e-9);
    }
    printf(" %llu\n", (unsigned long long)a->calls);
}

static void report(void) {
    const uint64_t end_ns = now_ns();
    const struct account mine[kParts] = {account_of(kAll, end_ns - begun_ns),
                                         account_of(kSplit, split_ns + (splits > 0 ? end_ns - split_begun_ns : 0))};
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct account(*all)[kParts] = calloc((size_t)ranks, sizeof *all);
    if (!all) {
        fprintf(stderr, "coop_wait: no memory for %d ranks\n", ranks);
        PMPI_Abort(MPI_COMM_WORLD, 4);
    }
    PMPI_Gather(mine, kParts * kFields, MPI_UINT64_T, all, kParts * kFields, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; ++i) {
        print_account(kAll, i, &all[i][kAll]);
        print_account(kSplit, i, &all[i][kSplit]);
    }
    fflush(stdout);
    free(all);
}

int MPI_Finalize(void) {
    report();
    return PMPI_Finalize();
}
