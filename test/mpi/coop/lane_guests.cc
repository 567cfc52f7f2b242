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

// More than half of all sequence numbers, which is what a message may overtake without being taken for a repeated one; and
// so few that the lane still opens when the transport has sent them.
constexpr int kMany = 40000, kFew = 10000;
constexpr int kOfMany = 2, kOfFew = 3;  // children
constexpr int kRounds = 5;

std::string this_program() {
    char path[PATH_MAX] = "";
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, n > 0 ? static_cast<std::size_t>(n) : 0);
}

// Receives the messages first, first + 1 … of those that are counted from 0.
void receive_in_order(int from, int first, int messages, MPI_Comm comm) {
    for (int i = first; i < messages; ++i) {
        int value = -1;
        CHECK_MPI(MPI_Recv(&value, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE));
        CHECK_EQ(value, i);
    }
}

int child(MPI_Comm parent) {
    int rank = 0;
    MPI_Comm_rank(parent, &rank);
    MPI_Barrier(parent);
    if (rank == kOfMany) {
        receive_in_order(1, 0, 1, parent);  // lets the transport connect, which reads little while we compute
        sleep(3);
        receive_in_order(1, 1, kMany, parent);
    }
    if (rank == kOfFew) receive_in_order(1, 0, kFew, parent);
    for (int i = 0; (rank == kOfMany || rank == kOfFew) && i < kRounds; ++i) {
        receive_in_order(1, 0, 100, parent);
        CHECK_MPI(MPI_Send(&i, 1, MPI_INT, 1, 1, parent));
    }
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
    return 0;
}

const mpitest::Configure configure([](mpitest::Settings& s) { s.child_main = child; });

// Sends messages while the transport connects, which keeps the first of them until the sender makes progress, which MPI_Isend
// does not. The receiver has not sent us anything before. `pause`: time for the receiver, so that a ring would never be full.
void send_at_once(int to, int messages, bool pause, MPI_Comm comm) {
    std::vector<int> values(static_cast<std::size_t>(messages));
    std::vector<MPI_Request> requests(values.size());
    for (int i = 0; i < messages; ++i) {
        const auto at = static_cast<std::size_t>(i);
        values[at] = i;
        CHECK_MPI(MPI_Isend(&values[at], 1, MPI_INT, to, 0, comm, &requests[at]));
        if (pause && i % 2000 == 1999) usleep(100000);
    }
    CHECK_MPI(MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE));
}

// Returns how many of the messages, each round of which is answered, use the lane.
std::uint64_t through_lane(int to, MPI_Comm comm) {
    const Variable lane("messages_lane");
    const auto before = lane.read();
    for (int round = 0; round < kRounds; ++round) {
        int answer = -1;
        for (int i = 0; i < 100; ++i) CHECK_MPI(MPI_Send(&i, 1, MPI_INT, to, 0, comm));
        CHECK_MPI(MPI_Recv(&answer, 1, MPI_INT, to, 1, comm, MPI_STATUS_IGNORE));
        CHECK_EQ(answer, round);
    }
    return lane.read() - before;
}

MPI_Comm spawn(MPI_Comm comm) {
    MPI_Comm children;
    MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, 4, MPI_INFO_NULL, 0, comm, &children, MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    return children;
}

}  // namespace

// A sender that changed over to the lane would overtake those that the transport still keeps, or whose receiver has not
// looked for them.
CASE(messages_do_not_overtake_those_that_a_transport_still_keeps) {
    MPI_Comm children = spawn(env.comm);
    if (env.rank == 1) {
        send_at_once(kOfMany, kMany, false, children);
        CHECK_EQ(through_lane(kOfMany, children), 0u);
        send_at_once(kOfFew, kFew, true, children);
        CHECK(through_lane(kOfFew, children) >= 100);
    }
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}
