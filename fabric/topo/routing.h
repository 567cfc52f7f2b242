// SPDX-License-Identifier: BSD-3-Clause
//
// Linear forwarding tables with shortest paths. Among equally short paths the
// destination port decides, as with a subnet manager (in a fat tree this is
// d-mod-k routing). Each LID of the port takes the path after that of the LID
// before it, so the 2^lmc LIDs of a port use different paths while there are
// enough of them.
//
// The tables are computed once; they do not change when a link goes down.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topo/topology.h"

namespace coop::fabric {

struct Forwarding {
    std::uint32_t lids = 0;           // highest LID + 1, and as many as the ports need to get other ones later
    std::vector<std::uint32_t> next;  // [switch * lids + dlid]: the link to take, plus 1; 0: unreachable
};

// It is a flaw if a route between two ports needs more than kMaxHops cables, or if there is no route at all, unless the
// topology permits islands.
Flaw find_shortest_paths(const Topology& topology, Forwarding& tables);

}  // namespace coop::fabric
