// SPDX-License-Identifier: BSD-3-Clause
//
// The communicators that the storm sends on, described so that every rank
// knows all of them, its own or not: that is what lets each rank work out the
// whole schedule alone.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace storm {

struct Channel {
    std::string name;
    MPI_Comm comm = MPI_COMM_NULL;  // MPI_COMM_NULL where this rank is not a member
    bool inter = false;
    bool shared = false;        // by all threads of a process: tags tell them apart
    std::vector<int> left, right;  // world ranks by rank in the group; intra: the same list twice

    // World ranks that `from` may send to.
    const std::vector<int>& targets(int from) const;
    bool has(int world_rank) const;
    // Rank of `other` as `self` has to write it, and back.
    int rank_of(int self, int other) const;
    int world_rank(int self, int rank) const { return targets(self)[static_cast<std::size_t>(rank)]; }
};

// Collective over MPI_COMM_WORLD. One list per thread; those marked shared are
// the same communicator in each.
std::vector<std::vector<Channel>> make_channels(int threads);
void free_channels(std::vector<std::vector<Channel>>& channels);

}  // namespace storm
