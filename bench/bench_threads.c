/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_threads.h"

#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { kMostMembers = 64 };

static struct {
    int members;
    pthread_t threads[kMostMembers]; /* the first is unused */
    pthread_barrier_t begin, end;    /* of a piece of work */
    bench_work* work;                /* NULL: the threads leave */
    void* argument;
} team = {.members = 1};

static void* live(void* member) {
    for (;;) {
        pthread_barrier_wait(&team.begin);
        if (!team.work) {
            return NULL;
        }
        team.work((int)(intptr_t)member, team.argument);
        pthread_barrier_wait(&team.end);
    }
}

void bench_team_open(int members) {
    team.members = members;
    pthread_barrier_init(&team.begin, NULL, (unsigned)members);
    pthread_barrier_init(&team.end, NULL, (unsigned)members);
    for (int member = 1; member < members; ++member) {
        if (pthread_create(&team.threads[member], NULL, live, (void*)(intptr_t)member) != 0) {
            fprintf(stderr, "no resources for %d threads\n", members);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
    }
}

void bench_team_close(void) {
    team.work = NULL;
    if (team.members > 1) {
        pthread_barrier_wait(&team.begin);
    }
    for (int member = 1; member < team.members; ++member) {
        pthread_join(team.threads[member], NULL);
    }
    pthread_barrier_destroy(&team.begin);
    pthread_barrier_destroy(&team.end);
}

void bench_team_run(bench_work* work, void* argument) {
    if (team.members == 1) {
        work(0, argument);
        return;
    }
    team.work = work;
    team.argument = argument;
    pthread_barrier_wait(&team.begin);
    work(0, argument);
    pthread_barrier_wait(&team.end);
}
