// SPDX-License-Identifier: BSD-3-Clause
// Checks that the ground is as described. Arguments: the expected number of hosts, and of ranks on each.
#include <cstdlib>
#include <map>

#include "mpi_test.h"

CASE(ranks_are_on_the_expected_number_of_hosts) {
    const auto& arguments = mpitest::settings().arguments;
    CHECK_EQ(arguments.size(), 2);
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    std::vector<char> all(static_cast<std::size_t>(env.size) * MPI_MAX_PROCESSOR_NAME);
    MPI_Allgather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, env.comm);
    std::map<std::string, int> ranks_of;
    for (int r = 0; r < env.size; ++r) ++ranks_of[all.data() + static_cast<std::size_t>(r) * MPI_MAX_PROCESSOR_NAME];
    CHECK_EQ(ranks_of.size(), atoi(arguments[0].c_str()));
    for (const auto& host : ranks_of) CHECK_EQ(host.second, atoi(arguments[1].c_str()));
}

CASE(shared_memory_communicators_are_those_of_a_host) {
    MPI_Comm node;
    int size = 0;
    MPI_Comm_split_type(env.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    CHECK_EQ(size, atoi(mpitest::settings().arguments[1].c_str()));
    MPI_Comm_free(&node);
}

CASE(everyone_talks_to_everyone) {
    // Connects the transport to each peer, so that the log names it.
    std::vector<int> in(static_cast<std::size_t>(env.size)), out(in.size(), env.rank);
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, env.comm);
    for (int r = 0; r < env.size; ++r) CHECK_EQ(in[static_cast<std::size_t>(r)], r);
}
