// SPDX-License-Identifier: BSD-3-Clause
//
// Generates topologies from a few numbers. Hosts are h0, h1, …, each with HCAs
// coop0, …; LIDs are assigned in port order.
//
//   star      every port is on one switch, sw0
//   fat tree  leaves leaf0, … with hosts_per_leaf hosts each; all ports of a host
//             are on its leaf, and each leaf has one cable to each spine, spine0, …
//   rail-optimised
//             as above, but with one leaf for each HCA of a host: HCA i of every
//             host is on leaf i
//
// Rates apply to the cables at the HCAs, in each direction; cables between the
// switches of a fat tree have the highest of these rates. The latency from port
// to port is divided among the cables of the longest path: two in a star, four
// across a spine.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topo/profiles.h"
#include "fabric/topo/topology.h"

namespace coop::fabric {

struct Sizes {
    std::uint32_t hosts = 2;
    std::uint32_t hcas = 1;   // per host
    std::uint32_t ports = 1;  // per HCA
    std::uint32_t lmc = 0;
    std::uint32_t mtu_bytes = kDefaultMtuBytes;
    std::vector<std::uint16_t> pkeys = PortPlan{}.pkeys;  // of each port
    bool grh_required = false;                            // by each port
    std::vector<std::uint64_t> rates = {0};  // bytes/s; one for all HCAs, or one for each HCA of a host; 0: unlimited
    std::int64_t latency_ns = 0;             // from port to port, over the longest path
    bool ethernet = false;
    RegisterCost register_cost{};  // of each HCA
    const Profile* profile = &profiles().front();
    std::uint32_t leaves = 0, spines = 0, hosts_per_leaf = 0;  // all 0: a star; with `leaves`, `hosts` is ignored
    bool rail_optimised = false;                               // requires `spines`; `leaves` is 0
};

Flaw generate(const Sizes& sizes, Topology& topology);

}  // namespace coop::fabric
