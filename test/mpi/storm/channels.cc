// SPDX-License-Identifier: BSD-3-Clause
#include "channels.h"

#include <algorithm>

namespace storm {
namespace {

bool contains(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

Channel intra(const char* name, MPI_Comm comm, std::vector<int> members) {
    Channel c;
    c.name = name;
    c.comm = comm;
    c.left = c.right = std::move(members);
    return c;
}

std::vector<Channel> make_own(int rank, int size) {
    std::vector<int> all, reversed, even, odd;
    for (int r = 0; r < size; ++r) {
        all.push_back(r);
        reversed.insert(reversed.begin(), r);
        (r % 2 == 0 ? even : odd).push_back(r);
    }
    MPI_Comm dup, back, back_dup, half, inter = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &back);
    MPI_Comm_dup(back, &back_dup);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (size > 1) MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 99, &inter);

    std::vector<Channel> own;
    own.push_back(intra("dup", dup, all));
    own.push_back(intra("reversed", back, reversed));
    own.push_back(intra("reversed-dup", back_dup, reversed));
    own.push_back(intra("even", rank % 2 == 0 ? half : MPI_COMM_NULL, even));
    if (size > 1) {
        own.push_back(intra("odd", rank % 2 == 1 ? half : MPI_COMM_NULL, odd));
        Channel c = intra("inter", inter, even);
        c.inter = true;
        c.right = odd;
        own.push_back(c);
    }
    return own;
}

}  // namespace

const std::vector<int>& Channel::targets(int from) const { return !inter || contains(left, from) ? right : left; }

bool Channel::has(int world_rank) const { return contains(left, world_rank) || contains(right, world_rank); }

int Channel::rank_of(int self, int other) const {
    const std::vector<int>& t = targets(self);
    return static_cast<int>(std::find(t.begin(), t.end(), other) - t.begin());
}

std::vector<std::vector<Channel>> make_channels(int threads) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<std::vector<Channel>> result;
    for (int t = 0; t < threads; ++t) result.push_back(make_own(rank, size));
    if (threads > 1) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        Channel shared = intra("shared", comm, result[0][0].left);
        shared.shared = true;
        for (auto& own : result) own.push_back(shared);
    }
    return result;
}

void free_channels(std::vector<std::vector<Channel>>& channels) {
    for (std::size_t t = 0; t < channels.size(); ++t)
        for (Channel& c : channels[t])
            if (c.comm != MPI_COMM_NULL && (!c.shared || t == 0)) MPI_Comm_free(&c.comm);
}

}  // namespace storm
