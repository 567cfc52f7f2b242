// SPDX-License-Identifier: BSD-3-Clause
//
// LIDs and linear forwarding tables: destination routing as in InfiniBand (IBTA 14.2).
// A host with LMC m has 2^m LIDs; path k to it uses base LID + k, and each switch
// forwards that LID with its own table. So a route depends on the destination and the
// path, not on the source.
//
//  kByDestination  uplink by number of the destination, path k shifted by k
//                 (d-mod-k): shift permutations of all hosts share no cable
//  kScattered      a random order of uplinks for each switch and destination:
//                 the 2^m paths of a pair are disjoint as long as there are enough
//                 uplinks, and the paths of different pairs are independent
//                 (dissertation 8.3.4: "a randomized relationship is currently
//                 observed among paths between different sets of ports")
//  from a subnet manager: forwarding_file.h
//
// Threading: plain values. Errors: a sentence.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/topology.h"

namespace coop::sim {

constexpr std::uint32_t kHighestLid = 0xbfff;  // IBTA 4.1.3
constexpr std::uint32_t kHighestLmc = 5;       // a channel has at most 32 rails
constexpr std::size_t kMostHops = 12;          // cables of a route
constexpr std::uint8_t kNoPort = 0xff;

enum class Routing : std::uint8_t { kByDestination, kScattered };

struct Route {
    std::array<LinkIndex, kMostHops> links;
    std::uint32_t hops = 0;  // 0: there is no route
    std::span<const LinkIndex> span() const noexcept { return {links.data(), hops}; }
};

struct Routes {
    std::uint32_t lmc = 0;
    std::uint32_t lids = 0;                // the highest LID of a host, + 1
    std::vector<std::uint32_t> base_lids;  // of each host
    std::vector<std::uint8_t> tables;      // [switch * lids + lid]: an index into Topology::ports, or kNoPort

    std::uint8_t& port(std::uint32_t switch_, std::uint32_t lid) noexcept {
        return tables[std::size_t{switch_} * lids + lid];
    }
    std::uint8_t port(std::uint32_t switch_, std::uint32_t lid) const noexcept {
        return tables[std::size_t{switch_} * lids + lid];
    }
};

// Checks that the LIDs fit into the LID space.
Defect lid_defect(const Topology& topology, std::uint32_t lmc);

// Assigns base LIDs in the order of the hosts, with empty tables. lid_defect() must have passed.
Routes assign_lids(const Topology& topology, std::uint32_t lmc);

// Fills the tables with shortest routes over cables that are up. It is a defect if
// a LID cannot be reached from everywhere.
Defect compute(const Topology& topology, Routing routing, std::uint64_t seed, Routes& routes);

// Checks that every LID of every host has a route without loops from every other host.
Defect defect(const Topology& topology, const Routes& routes);

// The route from one host to another by path k. No hops: there is none.
Route trace(const Topology& topology, const Routes& routes, NodeIndex from, NodeIndex to, std::uint32_t path) noexcept;

}  // namespace coop::sim
