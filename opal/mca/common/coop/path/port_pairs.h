// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs the ports of two processes. The pairs depend only on the ports: their networks, planes and rates, and
// their position on the node. They do not depend on the order of the two processes, and on the order of the two lists
// only if a limit leaves out some pairs.
//
//     node a        node b          pairs, best kind first
//     250  ------\/----  100        1  ports of the same plane, if the parameter `pairing` assigns planes
//     100  ------/\----  250        2  the same rate and the same position on the node
//                 \----   50        3  the same rate
//                                   4  the highest rates first
//                                   5  remaining ports: each with the port that has the most spare rate
//
// Within a kind, ports are paired in the order of their position on the nodes. If HCA i of each node is on leaf
// i (a rail-optimised subnet), kind 2 keeps all traffic within the leaves.
//
// Threading: pure functions. Errors: ports that reach no port of the other process are in no pair.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/port.h"

namespace coop::path {

// Indices into the two lists.
struct PortPair {
    std::size_t local, remote;

    bool operator==(const PortPair&) const = default;
};

// Returns at most `most` pairs (0: all). Both processes compute the same pairs in the same order: by position
// on the node, pairs of kind 5 last. If `most` excludes pairs, each process uses only its first ports, the same
// for all peers: each list is in its owner's order of preference.
COOP_EXPORT std::vector<PortPair> pair_ports(std::span<const PortRecord> local, std::span<const PortRecord> remote,
                                             std::size_t most = 0);

}  // namespace coop::path
