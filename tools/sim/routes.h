// SPDX-License-Identifier: BSD-3-Clause
//
// LIDs and linear forwarding tables: destination routing as InfiniBand has it
// (IBTA 14.2). A host with LMC m has 2^m LIDs; path k to it is its base LID + k,
// and each switch forwards that by its own table. So a route depends on the
// destination and the path, and not on where it comes from.
//
//   kByDestination  way up by the number of the destination, path k one further
//                   (d-mod-k): shifts of all hosts meet on no cable
//   kScattered      for each switch and destination another order of the ways:
//                   the 2^m paths of a pair are disjoint as long as there are as
//                   many ways, and those of different pairs have nothing to do
//                   with each other (dissertation 8.3.4: "a randomized relationship
//                   is currently observed among paths between different sets of
//                   ports")
//   read from a subnet manager: forwarding_file.h
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
    std::uint32_t hops = 0;  // 0: there is none
    std::span<const LinkIndex> span() const noexcept { return {links.data(), hops}; }
};

struct Routes {
    std::uint32_t lmc = 0;
    std::uint32_t lids = 0;                 // the highest of a host, + 1
    std::vector<std::uint32_t> base_lids;   // of each host
    std::vector<std::uint8_t> tables;       // [switch * lids + lid]: a port of it (Topology::ports), or kNoPort

    std::uint8_t& port(std::uint32_t switch_, std::uint32_t lid) noexcept { return tables[std::size_t{switch_} * lids + lid]; }
    std::uint8_t port(std::uint32_t switch_, std::uint32_t lid) const noexcept { return tables[std::size_t{switch_} * lids + lid]; }
};

// Whether so many LIDs fit.
Defect lid_defect(const Topology& topology, std::uint32_t lmc);

// Base LIDs in the order of the hosts, and empty tables. lid_defect() has found nothing.
Routes assign_lids(const Topology& topology, std::uint32_t lmc);

// Fills the tables with shortest ways over cables that are up. A host that one of
// its LIDs does not lead to from everywhere is a defect.
Defect compute(const Topology& topology, Routing routing, std::uint64_t seed, Routes& routes);

// Every LID of every host from every other host: there is a way without a loop.
Defect defect(const Topology& topology, const Routes& routes);

// From one host to another by path k. No hops: the tables lead nowhere.
Route trace(const Topology& topology, const Routes& routes, NodeIndex from, NodeIndex to, std::uint32_t path) noexcept;

}  // namespace coop::sim
