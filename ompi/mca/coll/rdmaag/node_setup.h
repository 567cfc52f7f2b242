// SPDX-License-Identifier: BSD-3-Clause
//
// How the processes of a communicator find out which of them share a node, and make memory in common.
#pragma once

#include <memory>

#include "hierarchy.h"
#include "module.h"

namespace coop::ag {

// How many processes of the communicator are on the node of this one, itself included.
std::uint32_t count_neighbours(ompi_communicator_t& comm) noexcept;

struct SharedNodes {
    std::unique_ptr<Hierarchy> hierarchy;
    std::uint64_t packet_bytes = 0;  // the longest step that leaders send in a packet
};
// By all processes of the communicator, which come to the same result. Null: they differ in their views of who shares a
// node, one of them has no memory or cannot map that of its node, or one of them cannot reach another leader or its
// neighbour in a ring that goes node by node. The next step is Hierarchy::begin().
SharedNodes set_up_nodes(State& state) noexcept;

}  // namespace coop::ag
