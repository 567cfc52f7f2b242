// SPDX-License-Identifier: BSD-3-Clause
//
// The simulated subnet: hosts with one port each, switches, cables.
//
//     nodes      0 .. hosts-1 are hosts, the rest switches
//     cable c    link 2c leads from its first end to its second, link 2c+1 back
//     ports      of a switch: the links that leave it, in the order of the cables
//
// Fat trees are extended generalized fat trees (XGFT): each level has a number of nodes
// below a switch (`down`) and of switches above a node (`up`). The 144-port switch of
// the dissertation that docs/simulation.rst names (figure 3.3) is 12,12:12 -- 12 hosts
// on a leaf, 12 leaves on a spine, 12 spines above a leaf.
//
// In a dragonfly, each switch has a cable to each other switch of its group, and one
// cable connects any two groups.
//
// The topology of the software subnet (fabric/topo) is not used: it describes HCAs,
// profiles and GIDs for programs that open them, needs the layout of its shared memory
// and so libibverbs, and has only fat trees of two levels. Both read the same
// statements `switch`, `host` and `link` (topology_file.h).
//
// Units: bytes per second. Threading: a plain value. Errors: a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace coop::sim {

using NodeIndex = std::uint32_t;
using LinkIndex = std::uint32_t;
constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::uint32_t kMostHosts = 40'000;
constexpr std::uint32_t kMostPorts = 254;  // of a switch; IBTA reserves port 255

using Defect = std::optional<std::string>;

constexpr LinkIndex reverse(LinkIndex link) noexcept { return link ^ 1; }

struct Link {
    NodeIndex from, to;
    double bytes_per_s;
    bool up = true;
};

struct Topology {
    std::string name;
    std::uint32_t hosts = 0;
    std::vector<std::string> node_names;  // hosts, then switches
    std::vector<std::uint32_t> levels;    // of each node: hosts 0, leaves 1, …; without levels all switches are 1
    std::vector<Link> links;
    std::vector<std::vector<LinkIndex>> ports;  // of each node

    std::uint32_t switches() const noexcept { return static_cast<std::uint32_t>(node_names.size()) - hosts; }
    bool is_host(NodeIndex node) const noexcept { return node < hosts; }
    LinkIndex host_link(NodeIndex host) const noexcept { return ports[host][0]; }  // from the host
    NodeIndex leaf_of(NodeIndex host) const noexcept { return links[host_link(host)].to; }
    NodeIndex find(std::string_view node) const noexcept;  // kNone if not found

    NodeIndex add_node(std::string node, std::uint32_t level);
    void add_cable(NodeIndex a, NodeIndex b, double bytes_per_s);
    void set_cable(LinkIndex link, bool up) noexcept { links[link].up = links[reverse(link)].up = up; }
    void set_node(NodeIndex node, bool up) noexcept;  // sets all of its cables
};

struct Rates {
    double host_bytes_per_s;    // rate of a host's cable, in each direction
    double switch_bytes_per_s;  // rate of a cable between switches
};

struct FatTreeShape {
    std::vector<std::uint32_t> down;  // nodes below a switch, from the leaves up
    std::vector<std::uint32_t> up;    // switches above a switch, from the leaves up; one entry less than `down`
};

struct DragonflyShape {
    std::uint32_t groups, switches, hosts;  // switches of a group, hosts of a switch
};

// "12,12:12"; "33x8x4". The string is an error message.
std::variant<FatTreeShape, std::string> parse_fat_tree(std::string_view text);
std::variant<DragonflyShape, std::string> parse_dragonfly(std::string_view text);

Topology make_fat_tree(const FatTreeShape& shape, const Rates& rates);
Topology make_dragonfly(const DragonflyShape& shape, const Rates& rates);

// Checks that every host has one cable and that all hosts are connected.
Defect defect(const Topology& topology);

}  // namespace coop::sim
