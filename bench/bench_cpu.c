/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_cpu.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static clockid_t engine_clock;
static bool engine_known = false;

static double clock_s(clockid_t clock) {
    struct timespec used;
    return clock_gettime(clock, &used) == 0 ? (double)used.tv_sec + 1e-9 * (double)used.tv_nsec : NAN;
}

/* The kernel's number for the CPU clock of a thread of this process, as computed by pthread_getcpuclockid(). That
 * function needs a pthread_t, which is not available for a thread that another library started. */
static clockid_t cpu_clock_of(long thread) { return (clockid_t)((~(unsigned)thread << 3) | 6); }

static bool is_named(const char* thread, const char* name) {
    char path[64], found[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
    FILE* file = fopen(path, "re");
    const bool read = file && fgets(found, sizeof found, file);
    if (file) {
        fclose(file);
    }
    found[strcspn(found, "\n")] = '\0';
    return read && strcmp(found, name) == 0;
}

void bench_cpu_open(void) {
    DIR* tasks = opendir("/proc/self/task");
    engine_known = false;
    for (struct dirent* entry; tasks && !engine_known && (entry = readdir(tasks)) != NULL;) {
        if (entry->d_name[0] != '.' && is_named(entry->d_name, "coop-fabric")) {
            engine_clock = cpu_clock_of(strtol(entry->d_name, NULL, 10));
            engine_known = true;
        }
    }
    if (tasks) {
        closedir(tasks);
    }
}

double bench_cpu_own_s(void) { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

struct bench_cpu bench_cpu_read(void) {
    const double all_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    struct bench_cpu cpu = {.own_s = bench_cpu_own_s(), .engine_s = engine_known ? clock_s(engine_clock) : NAN};
    cpu.others_s = all_s - cpu.own_s - (engine_known ? cpu.engine_s : 0);
    return cpu;
}
