// SPDX-License-Identifier: BSD-3-Clause
// Dynamic processes: spawn, connect and accept; messages of eager and rendezvous size both ways.
#include <climits>
#include <string>
#include <unistd.h>

#include "mpi_test.h"
#include "sizes.h"

using Bytes = std::vector<unsigned char>;

namespace {

int as_int(std::size_t n) { return static_cast<int>(n); }

constexpr std::size_t kSizes[] = {0, 8, sizes::kEager, 50000, sizes::kRendezvous, (1u << 20) + 1};

// Sends messages of all sizes between each rank and each rank of the other group, both ways, and checks them. `side`: 0
// or 1, the group of the caller.
void exchange(MPI_Comm inter, int side) {
    int rank = 0, remote = 0;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &remote);
    for (std::size_t n : kSizes) {
        std::vector<Bytes> in(static_cast<std::size_t>(remote), Bytes(n)), out = in;
        std::vector<MPI_Request> requests(2 * in.size());
        for (std::size_t p = 0; p < in.size(); ++p) {
            pattern::fill(pattern::key({n, static_cast<std::uint64_t>(side), static_cast<std::uint64_t>(rank), p}), 0,
                          out[p].data(), n);
            MPI_Isend(out[p].data(), as_int(n), MPI_BYTE, as_int(p), 3, inter, &requests[2 * p]);
            MPI_Irecv(in[p].data(), as_int(n), MPI_BYTE, as_int(p), 3, inter, &requests[2 * p + 1]);
        }
        MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (std::size_t p = 0; p < in.size(); ++p)
            CHECK_PATTERN(pattern::key({n, static_cast<std::uint64_t>(1 - side), p, static_cast<std::uint64_t>(rank)}),
                          in[p].data(), n);
    }
}

void exchange_merged(MPI_Comm inter, int side) {
    MPI_Comm merged;
    int rank = 0, size = 0, sum = 0;
    MPI_Intercomm_merge(inter, side, &merged);
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK_EQ(sum, size * (size - 1) / 2);
    MPI_Comm_free(&merged);
}

std::string this_program() {
    char path[PATH_MAX] = "";
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, n > 0 ? static_cast<std::size_t>(n) : 0);
}

// The main function of a spawned process.
int child(MPI_Comm parent) {
    exchange(parent, 1);
    exchange_merged(parent, 1);
    exchange(parent, 1);
    MPI_Comm_disconnect(&parent);
    return 0;
}

const mpitest::Configure configure([](mpitest::Settings& s) { s.child_main = child; });

void meet_children(MPI_Comm children, const std::vector<int>& errors, int expected) {
    for (int e : errors) CHECK_EQ(e, MPI_SUCCESS);
    int remote = 0;
    MPI_Comm_remote_size(children, &remote);
    CHECK_EQ(remote, expected);
    exchange(children, 0);
    exchange_merged(children, 0);
    exchange(children, 0);
    MPI_Comm_disconnect(&children);
    CHECK(children == MPI_COMM_NULL);
}

}  // namespace

CASE(spawned_processes_exchange_with_their_parents) {
    std::vector<int> errors(2, -1);
    MPI_Comm children;
    MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, env.comm, &children, errors.data());
    meet_children(children, env.rank == 0 ? errors : std::vector<int>{}, 2);
}

CASE(spawned_by_one_rank_alone) {
    if (env.rank == 0) {
        std::vector<int> errors(1, -1);
        MPI_Comm children;
        MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       errors.data());
        meet_children(children, errors, 1);
    }
    MPI_Barrier(env.comm);
}

CASE(spawn_multiple_makes_one_world) {
    const std::string self = this_program();
    std::vector<char> a(self.begin(), self.end());
    a.push_back('\0');
    std::vector<char> b = a;
    char* commands[2] = {a.data(), b.data()};
    int counts[2] = {1, 1};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    std::vector<int> errors(2, -1);
    MPI_Comm children;
    MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, env.comm, &children, errors.data());
    meet_children(children, env.rank == 0 ? errors : std::vector<int>{}, 2);
}

CASE(connect_and_accept_join_two_groups) {
    MPI_Comm half, inter;
    char port[MPI_MAX_PORT_NAME] = "";
    const bool server = env.rank % 2 == 0;
    MPI_Comm_split(env.comm, env.rank % 2, env.rank, &half);
    for (int round = 0; round < 2; ++round) {
        if (env.rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
        if (env.rank == 0) MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 9, env.comm);
        if (env.rank == 1) MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 9, env.comm, MPI_STATUS_IGNORE);
        if (server) MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
        else MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
        exchange(inter, server ? 0 : 1);
        exchange_merged(inter, server ? 0 : 1);
        MPI_Comm_disconnect(&inter);
        if (env.rank == 0) MPI_Close_port(port);
    }
    MPI_Comm_free(&half);
}
