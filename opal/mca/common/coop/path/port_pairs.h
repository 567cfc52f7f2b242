// SPDX-License-Identifier: BSD-3-Clause
//
// Which ports of two processes are paired. It depends on the ports alone: what they reach, their planes and rates, and their place on the
// node. It does not depend on the processes, so the order of the two lists does not matter.
//
//     node a        node b          pairs, best kind first
//     250  ------\/----  100        1  ports of one plane, where the parameter `pairing` has put them into planes
//     100  ------/\----  250        2  the same rate, and the same place on the node
//                 \----   50        3  the same rate
//                                   4  the highest rates first
//                                   5  ports that are left: each with the port that has most of its rate to spare
//
// Of pairs of one kind, ports that come first on their nodes are paired first. Where HCA i of each node is on leaf i (a rail-optimised
// subnet), kind 2 keeps all traffic inside the leaves.
//
// Threading: pure functions. Errors: ports that reach no port of the other process are in no pair.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/port.h"

namespace coop::path {

// Indices of the two lists.
struct PortPair {
    std::size_t local, remote;

    bool operator==(const PortPair&) const = default;
};

// At most `most` pairs; 0: all that there are. Seen from the other process, the pairs are the same, in the same order: by place on the
// node, the pairs of kind 5 last. Where `most` leaves some out, each process brings in its first ports only, the same ones for all peers:
// the lists are in the order in which their owners would use them.
COOP_EXPORT std::vector<PortPair> pair_ports(std::span<const PortRecord> local, std::span<const PortRecord> remote, std::size_t most = 0);

}  // namespace coop::path
