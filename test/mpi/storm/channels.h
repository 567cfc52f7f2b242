// SPDX-License-Identifier: BSD-3-Clause
//
// The communicators of the storm, described so that every rank knows all of them,
// including those that it does not belong to, and can compute the whole schedule.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace storm {

struct Channel {
    std::string name;
    MPI_Comm comm = MPI_COMM_NULL;  // MPI_COMM_NULL where this rank is not a member
    bool inter = false;
    bool shared = false;           // by all threads of a process: tags tell them apart
    std::vector<int> left, right;  // world ranks by rank in the group; intra: the same list twice

    // World ranks that `from` may send to.
    const std::vector<int>& targets(int from) const;
    bool has(int world_rank) const;
    // The rank of `other` as `self` has to give it to MPI.
    int rank_of(int self, int other) const;
    int world_rank(int self, int rank) const { return targets(self)[static_cast<std::size_t>(rank)]; }
};

// Collective over MPI_COMM_WORLD. One list per thread; shared channels use the same
// communicator in each.
std::vector<std::vector<Channel>> make_channels(int threads);
void free_channels(std::vector<std::vector<Channel>>& channels);

}  // namespace storm
