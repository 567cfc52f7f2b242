// SPDX-License-Identifier: BSD-3-Clause
//
// Linear forwarding tables: shortest paths, spread over equally short ones by
// destination, as a subnet manager does (in a fat tree this is d-mod-k routing).
// The destination's port counts, and each of its LIDs goes one further: the
// 2^lmc LIDs of a port take different ways as long as there are so many.
//
// The tables are made once. No manager changes them when a cable is pulled.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topo/topology.h"

namespace coop::fabric {

struct Forwarding {
    std::uint32_t lids = 0;           // highest LID + 1
    std::vector<std::uint32_t> next;  // [switch * lids + dlid]: the link to take, plus 1; 0: no way
};

// A port that another one reaches only over more than kMaxHops cables is a flaw; so is one that it does not reach, unless the
// topology may have islands.
Flaw find_shortest_paths(const Topology& topology, Forwarding& tables);

}  // namespace coop::fabric
