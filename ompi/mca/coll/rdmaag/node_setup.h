// SPDX-License-Identifier: BSD-3-Clause
//
// How the processes of a communicator find out which of them share a node, and make memory in common.
#pragma once

#include <optional>

#include "coop/coll/nodes.h"
#include "module.h"
#include "node_row.h"

namespace coop::ag {

// How many processes of the communicator are on the node of this one, itself included.
std::uint32_t count_neighbours(ompi_communicator_t& comm) noexcept;

struct NodeSetup {
    coll::Nodes nodes;
    std::unique_ptr<NodeRow> row;  // of the own node
};

// By all processes of the communicator, which come to the same result. Nothing: they differ in their views of who shares
// a node, or one of them has no memory.
std::optional<NodeSetup> set_up_nodes(State& state) noexcept;

}  // namespace coop::ag
