// SPDX-License-Identifier: BSD-3-Clause
//
// A subnet as a plain value, before it is one: hosts, HCAs, ports, switches,
// cables, pinned routes. Made by a generator (generate.h) or from a file
// (topology_file.h), put into shared memory by install.h.
//
// Indices are positions in the vectors. HCAs stand in the order of their hosts
// and ports in the order of their HCAs, so that those of one are a range. Cable
// c is the links 2c (from a to b) and 2c + 1 (from b to a).
//
// One link layer for all ports. LIDs with Ethernet (RoCE) are the subnet's
// business only, and are never shown: port i has LID i + 1 and an LMC of 0.
//
// Errors: a Flaw, which names the thing and says what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/shm/layout.h"

namespace coop::fabric {

inline constexpr std::uint32_t kHighestLid = 0xbfff;  // unicast; InfiniBand 4.1.3
inline constexpr std::uint32_t kHighestLmc = 7;
inline constexpr std::uint64_t kDefaultPrefix = 0xfe80000000000000;
inline constexpr std::uint32_t kDefaultMtuBytes = 4096;

struct HostPlan {
    std::string name;
};

struct HcaPlan {
    std::uint32_t host;
    std::string name;  // within the host
    const Profile* profile;
};

struct PortPlan {
    std::uint32_t hca;
    std::uint32_t number;   // 1..kMaxPortsPerHca
    std::uint32_t lid = 0;  // base LID; 0: assign_lids() gives one
    std::uint32_t lmc = 0;
    std::uint32_t mtu_bytes = kDefaultMtuBytes;
    std::vector<std::uint16_t> pkeys = {kDefaultPkey};  // at most kMaxPkeys; 0: an empty place
    bool grh_required = false;
    std::uint64_t prefix = 0;  // of its GID; 0: that of the topology
};

struct SwitchPlan {
    std::string name;
};

struct DirectionPlan {
    std::uint64_t rate = 0;  // bytes/s; 0: unlimited
    std::int64_t latency_ns = 0;
    std::uint32_t loss = 0;        // in 2^-32
    std::uint64_t background = 0;  // bytes/s
};

struct CablePlan {
    Node a, b;
    DirectionPlan there, back;  // a to b, b to a
};

struct RoutePlan {
    std::uint32_t slid, dlid;
    std::vector<std::uint32_t> links;  // none: packets from one to the other are lost
};

struct Topology {
    std::uint64_t prefix = kDefaultPrefix;  // of the ports that have none of their own
    bool ethernet = false;
    bool islands = false;  // ports that do not reach each other are no flaw
    std::vector<HostPlan> hosts;
    std::vector<HcaPlan> hcas;
    std::vector<PortPlan> ports;
    std::vector<SwitchPlan> switches;
    std::vector<CablePlan> cables;
    std::vector<RoutePlan> routes;

    std::string hca_name(std::uint32_t hca) const;    // h0/coop1
    std::string port_name(std::uint32_t port) const;  // h0/coop1/1
    std::string node_name(const Node& node) const;
    Node link_from(std::uint32_t link) const { return link & 1 ? cables[link / 2].b : cables[link / 2].a; }
    Node link_to(std::uint32_t link) const { return link & 1 ? cables[link / 2].a : cables[link / 2].b; }
};

inline bool operator==(const Node& x, const Node& y) { return x.kind == y.kind && x.index == y.index; }

struct Flaw {
    std::string text;            // empty: none
    std::uint32_t port = kNone;  // the port it is about, if it is about one
    explicit operator bool() const { return !text.empty(); }
};

// Whether a host, HCA or switch can be called that; `longest` in characters.
bool is_good_name(const std::string& name, std::size_t longest);
inline constexpr std::size_t kLongestHostName = sizeof(Host::name) - 1;
inline constexpr std::size_t kLongestHcaName = sizeof(Hca::name) - 1;

// Gives a base LID to each port that has none: the lowest free ones, in the order of the ports, multiples of 2^lmc.
Flaw assign_lids(Topology& topology);

// The port that has this LID, among its 2^lmc ones; kNone: nobody.
std::uint32_t port_of_lid(const Topology& topology, std::uint32_t lid);

// Which of the cables between the same two ends it is, from 1; 0: it is the only one.
std::uint32_t number_of_cable(const Topology& topology, std::uint32_t cable);

// Everything that install() relies on. LIDs are assigned.
Flaw check(const Topology& topology);

}  // namespace coop::fabric
