// SPDX-License-Identifier: BSD-3-Clause
//
// Which ranks of a communicator share a node, and the blocks of an allgather in the order of nodes: node by node, within
// a node by rank. The first rank of a node is its leader. Nodes are in the order of their leaders.
//
// Units: ranks, nodes, positions in the order of nodes. Pure. Errors: leaders() of processes may contradict each other;
// then is_valid() is false.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coop/base/export.h"
#include "coop/coll/steps.h"

namespace coop::coll {

class Nodes {
public:
    Nodes() = default;
    // leaders[i]: the leader that rank i has named.
    COOP_EXPORT explicit Nodes(std::span<const std::uint32_t> leaders);

    // Each leader has named itself and is the first rank of its node.
    bool is_valid() const noexcept { return valid_; }
    std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(begins_.size()) - 1; }
    std::uint32_t processes() const noexcept { return static_cast<std::uint32_t>(order_.size()); }

    std::uint32_t node_of(std::uint32_t rank) const noexcept { return node_of_[rank]; }
    std::span<const std::uint32_t> members(std::uint32_t node) const noexcept {
        return std::span(order_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
    }
    std::uint32_t leader(std::uint32_t node) const noexcept { return order_[begins_[node]]; }
    std::uint32_t begin_of(std::uint32_t node) const noexcept { return begins_[node]; }  // position; also for count()
    std::uint32_t rank_at(std::uint32_t position) const noexcept { return order_[position]; }
    // A ring that goes node by node, for this rank.
    RingOrder ring_order(std::uint32_t rank) const noexcept {
        const auto found = std::find(order_.begin(), order_.end(), rank);
        return {order_, static_cast<std::uint32_t>(found - order_.begin())};
    }
    // The order of nodes is that of the ranks.
    bool is_in_order() const noexcept { return in_order_; }

private:
    std::vector<std::uint32_t> order_;         // ranks by position
    std::vector<std::uint32_t> begins_ = {0};  // of the nodes, and the end
    std::vector<std::uint32_t> node_of_;       // by rank
    bool valid_ = false, in_order_ = true;
};

}  // namespace coop::coll
