// SPDX-License-Identifier: BSD-3-Clause
// Messages to processes of another job on the same node, whose lane opens after the first messages have used a
// transport: lane_guests. Two ranks. Only for pml/coop, with pml_coop_lane 1.
#include <climits>
#include <string>
#include <vector>

#include <unistd.h>

#include "mpi_test.h"
#include "variable.h"

namespace {

// More than half of all sequence numbers, which is what a message may overtake without being taken for a repeated one.
constexpr int kMessages = 40000;
constexpr int kRounds = 5;

std::string this_program() {
    char path[PATH_MAX] = "";
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, n > 0 ? static_cast<std::size_t>(n) : 0);
}

void receive_in_order(int from, int messages, MPI_Comm comm) {
    for (int i = 0; i < messages; ++i) {
        int value = -1;
        CHECK_MPI(MPI_Recv(&value, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE));
        CHECK_EQ(value, i);
    }
}

int child(MPI_Comm parent) {
    int rank = 0;
    MPI_Comm_rank(parent, &rank);
    MPI_Barrier(parent);
    if (rank == 2) receive_in_order(1, kMessages, parent);
    for (int i = 0; rank == 2 && i < kRounds; ++i) {
        receive_in_order(1, 100, parent);
        CHECK_MPI(MPI_Send(&i, 1, MPI_INT, 1, 1, parent));
    }
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
    return 0;
}

const mpitest::Configure configure([](mpitest::Settings& s) { s.child_main = child; });

}  // namespace

// The transport connects at the first message and keeps the first ones until the sender makes progress, which MPI_Isend
// does not. (Rank 1 and rank 2 of the children have not sent each other anything before.) A sender that then changed
// over to the lane would overtake them by all that it sends.
CASE(messages_do_not_overtake_those_that_a_transport_still_keeps) {
    MPI_Comm children;
    MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, env.comm, &children,
                   MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    const Variable lane("messages_lane");
    if (env.rank == 1) {
        std::vector<int> values(kMessages);
        std::vector<MPI_Request> requests(values.size());
        for (int i = 0; i < kMessages; ++i) {
            values[static_cast<std::size_t>(i)] = i;
            CHECK_MPI(MPI_Isend(&values[static_cast<std::size_t>(i)], 1, MPI_INT, 2, 0, children,
                                &requests[static_cast<std::size_t>(i)]));
            if (i % 2000 == 1999) usleep(100000);  // for the receiver, so that the ring never fills up
        }
        CHECK_MPI(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
        // Once the transport has sent them, messages go through the lane.
        const auto before = lane.read();
        for (int round = 0; round < kRounds; ++round) {
            int answer = -1;
            for (int i = 0; i < 100; ++i) CHECK_MPI(MPI_Send(&i, 1, MPI_INT, 2, 0, children));
            CHECK_MPI(MPI_Recv(&answer, 1, MPI_INT, 2, 1, children, MPI_STATUS_IGNORE));
            CHECK_EQ(answer, round);
        }
        CHECK(lane.read() - before >= 100);
    }
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}
