// SPDX-License-Identifier: BSD-3-Clause
//
// Topologies from a few numbers. Hosts are h0, h1, …, each with HCAs coop0, …;
// LIDs are assigned in the order of the ports.
//
//   star      every port on one switch, sw0
//   fat tree  leaves leaf0, … with hosts_per_leaf hosts each, all of whose ports
//             are on it; each leaf has one cable to each spine, spine0, …
//   rail-optimised
//             the same, but a leaf for each HCA of a host: HCA i of every host is
//             on leaf i
//
// Rates and latencies are those of the cables at the HCAs, in either direction.
// Between the switches of a fat tree a cable has the highest of the rates. The
// latency from port to port is shared by the cables of the longest way: two in
// a star, four across a spine.
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
    bool grh_required = false;                             // by each port
    std::vector<std::uint64_t> rates = {0};  // bytes/s; one for all HCAs, or one for each HCA of a host; 0: unlimited
    std::int64_t latency_ns = 0;             // from port to port
    bool ethernet = false;
    const Profile* profile = &profiles().front();
    std::uint32_t leaves = 0, spines = 0, hosts_per_leaf = 0;  // all 0: a star; else `hosts` does not count
    bool rail_optimised = false;  // with `spines`, and without `leaves`
};

Flaw generate(const Sizes& sizes, Topology& topology);

}  // namespace coop::fabric
