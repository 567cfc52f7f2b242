# SPDX-License-Identifier: BSD-3-Clause
"""coop_wait.so, preloaded into a program with known times."""

import os
import subprocess
import unittest

import programs

# Rank 0 is late by 100 ms each time. Rank 1 waits for it in MPI_Wait, MPI_Recv, MPI_Barrier, and, while a communicator split from a
# split one exists, in MPI_Wait again.
LATE = """
#include <mpi.h>
#include <unistd.h>
static void late(int rank) { if (rank == 0) usleep(100000); }
static void wait_for(int rank, MPI_Comm comm)
{
    int word = rank;
    MPI_Request request;
    late(rank);
    if (rank == 0) MPI_Isend(&word, 1, MPI_INT, 1, 1, comm, &request);
    else MPI_Irecv(&word, 1, MPI_INT, 0, 1, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int main(int argc, char **argv)
{
    int rank, word = 0;
    MPI_Comm half, again;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &half);
    wait_for(rank, half);
    late(rank);
    if (rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 2, half);
    else MPI_Recv(&word, 1, MPI_INT, 0, 2, half, MPI_STATUS_IGNORE);
    late(rank);
    MPI_Barrier(half);
    MPI_Comm_split(half, 0, rank, &again);
    wait_for(rank, again);
    MPI_Comm_free(&again);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
"""


class Wait(unittest.TestCase):
    def test_tells_where_the_time_in_mpi_went(self):
        folder = programs.new_folder()
        with open(f"{folder}/late.c", "w", encoding="utf-8") as file:
            file.write(LATE)
        subprocess.run([os.environ.get("MPICC", "mpicc"), "-o", f"{folder}/late", f"{folder}/late.c"], check=True)
        result = subprocess.run(["mpirun", "-n", "2", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "vader,self", "-x",
                                 f"LD_PRELOAD={programs.bench}/coop_wait.so", f"{folder}/late"], capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = {(words[2], words[3]): [float(word) for word in words[4:]] for words in map(str.split, result.stdout.splitlines())
                if words[:2] == ["#", "mpi"]}
        self.assertEqual(set(rows), {(part, rank) for part in ("all", "split") for rank in "01"}, result.stdout)
        elapsed, wait, blocking, testing, starting, collective, calls = rows["all", "1"]
        for value, least in ((wait, 0.1), (blocking, 0.05), (collective, 0.05)):
            self.assertTrue(least < value < elapsed, result.stdout)
        self.assertTrue(elapsed > 0.3 and wait + blocking + collective < elapsed and testing == 0 and starting < 0.05, result.stdout)
        self.assertEqual(calls, 6)
        elapsed, wait, blocking, testing, starting, collective, calls = rows["split", "1"]
        self.assertTrue(0.05 < wait < elapsed < rows["all", "1"][0] - 0.2 and blocking == collective == 0, result.stdout)
        self.assertEqual(calls, 2)
