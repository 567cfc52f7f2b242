// SPDX-License-Identifier: BSD-3-Clause
// Sends long messages from rank 0 to rank 1 (send) or both ways at once (exchange), one after the other, until it is
// killed: endless send|exchange. Each rank prints its process id after the first message. For the test that kills a
// rank in the middle of a copy.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
    constexpr int kBytes = 256 << 20;
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const bool exchange = argc > 1 && std::strcmp(argv[1], "exchange") == 0;
    std::vector<char> out(exchange || rank == 0 ? kBytes : 0, 'x'), in(exchange || rank == 1 ? kBytes : 0);
    for (int i = 0;; ++i) {
        if (exchange)
            MPI_Sendrecv(out.data(), kBytes, MPI_BYTE, 1 - rank, 0, in.data(), kBytes, MPI_BYTE, 1 - rank, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 0) MPI_Send(out.data(), kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else MPI_Recv(in.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i == 0) {
            std::printf("PID %d %d\n", rank, static_cast<int>(getpid()));
            std::fflush(stdout);
        }
    }
}
