// SPDX-License-Identifier: BSD-3-Clause
//
// A subnet as a plain value: hosts, HCAs, ports, switches, cables, pinned routes.
// A generator (generate.h) or a file (topology_file.h) makes it; install.h puts it
// into shared memory.
//
// Indices are positions in the vectors. HCAs are in the order of their hosts and
// ports in the order of their HCAs, so that each host's HCAs and each HCA's ports
// are consecutive. Cable c consists of links 2c (from a to b) and 2c + 1 (from b
// to a).
//
// All ports have the same link layer. With Ethernet (RoCE) LIDs are internal and
// never shown: port i has LID i + 1 and an LMC of 0.
//
// Errors: a Flaw, which names the object and what is wrong with it.
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
    RegisterCost register_cost{};
};

struct PortPlan {
    std::uint32_t hca;
    std::uint32_t number;   // 1..kMaxPortsPerHca
    std::uint32_t lid = 0;  // base LID; 0: assign_lids() gives one
    std::uint32_t lmc = 0;
    std::uint32_t mtu_bytes = kDefaultMtuBytes;
    std::vector<std::uint16_t> pkeys = {kDefaultPkey};  // at most kMaxPkeys; 0: an empty entry
    bool grh_required = false;
    std::uint64_t prefix = 0;  // of its GIDs; 0: the topology's prefix
};

struct SwitchPlan {
    std::string name;
};

struct DirectionPlan {
    std::uint64_t rate = 0;  // bytes/s; 0: unlimited
    std::int64_t latency_ns = 0;
    std::uint32_t loss = 0;        // probability in units of 2^-32
    std::uint64_t background = 0;  // bytes/s
};

struct CablePlan {
    Node a, b;
    DirectionPlan there, back;  // a to b, b to a
};

struct RoutePlan {
    std::uint32_t slid, dlid;
    std::vector<std::uint32_t> links;  // empty: packets from one to the other are lost
};

struct Topology {
    std::uint64_t prefix = kDefaultPrefix;  // for ports without a prefix of their own
    bool ethernet = false;
    bool islands = false;  // permit ports that cannot reach each other
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
    std::uint32_t port = kNone;  // the port that the flaw concerns, if any
    explicit operator bool() const { return !text.empty(); }
};

// Whether a host, HCA or switch may have this name; `longest` in characters.
bool is_good_name(const std::string& name, std::size_t longest);
inline constexpr std::size_t kLongestHostName = sizeof(Host::name) - 1;
inline constexpr std::size_t kLongestHcaName = sizeof(Hca::name) - 1;

// Gives a base LID to each port without one: the lowest free multiple of 2^lmc, in port order.
Flaw assign_lids(Topology& topology);

// The port that owns this LID, as base LID or through its LMC; kNone: no port.
std::uint32_t port_of_lid(const Topology& topology, std::uint32_t lid);

// The number of this cable among the cables between the same two ends, from 1; 0: there is only one.
std::uint32_t number_of_cable(const Topology& topology, std::uint32_t cable);

// Checks everything that install() relies on. LIDs must have been assigned.
Flaw check(const Topology& topology);

}  // namespace coop::fabric
