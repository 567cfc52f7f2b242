// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/nodes.h"

namespace coop::coll {

Nodes::Nodes(std::span<const std::uint32_t> leaders) {
    const auto processes = static_cast<std::uint32_t>(leaders.size());
    node_of_.resize(processes);
    for (std::uint32_t rank = 0; rank < processes; ++rank)
        if (leaders[rank] > rank || leaders[leaders[rank]] != leaders[rank]) return;
    std::vector<std::uint32_t> sizes;
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
        if (leaders[rank] == rank) {
            node_of_[rank] = static_cast<std::uint32_t>(sizes.size());
            sizes.push_back(0);
        } else {
            node_of_[rank] = node_of_[leaders[rank]];
        }
        ++sizes[node_of_[rank]];
    }
    for (const std::uint32_t size : sizes) begins_.push_back(begins_.back() + size);

    order_.resize(processes);
    std::vector<std::uint32_t> next(begins_);
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
        const std::uint32_t position = next[node_of_[rank]]++;
        order_[position] = rank;
        in_order_ &= position == rank;
    }
    valid_ = true;
}

}  // namespace coop::coll
