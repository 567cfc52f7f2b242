/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of an idle job: the memory of all ranks after MPI_Init, a barrier and one message around a ring. The figure is
 * PSS (shared pages are divided among the processes that map them), which counts libraries and shared-memory segments
 * once. RSS, the third column, counts them once per rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kTag = 4 };

/* One line of /proc/self/smaps_rollup, in KiB; -1 if the file (new in Linux 4.14) or the line does not exist. */
static double rollup_kib(const char* field) {
    FILE* file = fopen("/proc/self/smaps_rollup", "r");
    if (!file) {
        return -1;
    }
    char line[256], name[64];
    double kib = -1, value;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63[^:]: %lf kB", name, &value) == 2 && strcmp(name, field) == 0) {
            kib = value;
        }
    }
    fclose(file);
    return kib;
}

static void ring(int rank, int ranks) {
    int out = rank, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % ranks, kTag, &in, 1, MPI_INT, (rank + ranks - 1) % ranks, kTag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void print(int ranks, const double* sum_kib) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    for (int i = 0; i < length; ++i) {
        if (library[i] == ',' || library[i] == '\n') {
            library[i] = '\0';
        }
    }
    printf(
        "# benchmark: coop_mem (memory of an idle job, PSS of all ranks; third column: RSS)\n# library: %s\n"
        "# unit: MiB\n# better: lower\n# key: ranks\n# %-8s %16s %16s\n%-10d %16.3f %16.3f\n",
        library, "ranks", "PSS_MiB", "RSS_MiB", ranks, sum_kib[0] / 1024, sum_kib[1] / 1024);
}

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1) {
        if (rank == 0) {
            fprintf(stderr, "coop_mem: argument '%s' not allowed: it takes none\n", argv[1]);
        }
        MPI_Finalize();
        return 2;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ring(rank, ranks);
    MPI_Barrier(MPI_COMM_WORLD);

    /* All ranks read before any of them exits or reduces: an exited rank would raise the PSS of the others. */
    double kib[2] = {rollup_kib("Pss"), rollup_kib("Rss")}, least = kib[0], sum[2];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(kib, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) {
        if (least < 0) {
            fprintf(stderr, "coop_mem: /proc/self/smaps_rollup cannot be read (Linux 4.14 or newer is needed)\n");
        } else {
            print(ranks, sum);
        }
    }
    MPI_Finalize();
    return least < 0 ? 3 : 0;
}
