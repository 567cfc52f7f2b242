/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For LD_PRELOAD: delays a program at points where other threads may interfere, for tests of races.
 *
 *     SLOW=locks     every thread but the first waits a moment before some of the locks that it takes
 *     SLOW=dup       MPI_Comm_dup waits before a table of the library grows
 *
 * The functions that wait, pthread_mutex_lock() and realloc(), end in a jump to the real ones (a tail call), so that
 * ThreadSanitizer attributes the lock, or the growth, to the caller. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int (*next_lock)(pthread_mutex_t*);
static void* (*next_realloc)(void*, size_t);
static int slow_locks, slow_dup;
static __thread unsigned locks;
static __thread int in_dup;

__attribute__((constructor)) static void find(void) {
    const char* what = getenv("SLOW");

    *(void**)&next_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void**)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    slow_locks = what && strcmp(what, "locks") == 0;
    slow_dup = what && strcmp(what, "dup") == 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    static const struct timespec moment = {0, 50 * 1000};

    if (!next_lock) find();
    if (slow_locks && getpid() != gettid() && ++locks % 4 == 0) nanosleep(&moment, NULL);
    return next_lock(mutex);
}

void* realloc(void* memory, size_t bytes) {
    static const struct timespec moment = {0, 20 * 1000 * 1000};

    if (!next_realloc) find();
    if (slow_dup && in_dup && bytes >= 512) nanosleep(&moment, NULL);
    return next_realloc(memory, bytes);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
    int status;

    in_dup = 1;
    status = PMPI_Comm_dup(comm, copy);
    in_dup = 0;
    return status;
}
