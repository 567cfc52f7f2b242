// SPDX-License-Identifier: BSD-3-Clause
#include "sim/topology.h"

#include <gtest/gtest.h>

#include "sim/topology_file.h"

namespace coop::sim {
namespace {

constexpr Rates kRates{1e9, 2e9};

Topology fat_tree(const char* shape) {
    const auto parsed = parse_fat_tree(shape);
    EXPECT_TRUE(std::holds_alternative<FatTreeShape>(parsed)) << shape;
    return make_fat_tree(std::get<FatTreeShape>(parsed), kRates);
}

std::string flaw_of_fat_tree(const char* shape) {
    const auto parsed = parse_fat_tree(shape);
    const auto* bad = std::get_if<std::string>(&parsed);
    return bad != nullptr ? *bad : "";
}

TEST(SimTopology, the_144_port_switch_has_12_leaves_of_24_ports_and_12_spines) {
    const Topology t = fat_tree("12,12:12");
    EXPECT_EQ(t.hosts, 144u);
    EXPECT_EQ(t.switches(), 24u);
    for (NodeIndex leaf = t.hosts; leaf < t.hosts + 12; ++leaf) EXPECT_EQ(t.ports[leaf].size(), 24u);
    for (NodeIndex spine = t.hosts + 12; spine < t.hosts + 24; ++spine)
        EXPECT_EQ(t.ports[spine].size(), 12u);  // one cable to each leaf, and none to a host
    EXPECT_EQ(t.node_names[t.leaf_of(13)], "leaf1");
    EXPECT_FALSE(defect(t));
}

TEST(SimTopology, each_leaf_has_one_cable_to_each_spine) {
    const Topology t = fat_tree("4,3:5");
    for (NodeIndex leaf = t.hosts; leaf < t.hosts + 3; ++leaf) {
        std::vector<int> to(t.node_names.size(), 0);
        for (const LinkIndex link : t.ports[leaf]) ++to[t.links[link].to];
        for (NodeIndex spine = t.hosts + 3; spine < t.node_names.size(); ++spine) EXPECT_EQ(to[spine], 1);
    }
}

TEST(SimTopology, three_levels_have_full_bandwidth_and_are_connected) {
    const Topology t = fat_tree("4,4,4:4,4");
    EXPECT_EQ(t.hosts, 64u);
    EXPECT_EQ(t.switches(), 16u + 16u + 16u);
    for (NodeIndex node = t.hosts; node < t.node_names.size(); ++node)
        EXPECT_EQ(t.ports[node].size(), t.levels[node] == 3 ? 4u : 8u) << t.node_names[node];
    EXPECT_FALSE(defect(t));
}

TEST(SimTopology, a_dragonfly_has_a_cable_between_any_two_groups) {
    const Topology t = make_dragonfly({9, 4, 2}, kRates);
    EXPECT_EQ(t.hosts, 72u);
    std::vector<std::vector<int>> cables(9, std::vector<int>(9, 0));
    for (const Link& link : t.links)
        if (!t.is_host(link.from) && !t.is_host(link.to)) ++cables[(link.from - t.hosts) / 4][(link.to - t.hosts) / 4];
    for (int a = 0; a < 9; ++a)
        for (int b = 0; b < 9; ++b) EXPECT_EQ(cables[a][b], a == b ? 4 * 3 : 1);
    EXPECT_FALSE(defect(t));
}

TEST(SimTopology, an_impossible_shape_gives_the_reason) {
    EXPECT_NE(flaw_of_fat_tree("12,x:12").find("'12,x:12' is not a fat tree"), std::string::npos);
    EXPECT_NE(flaw_of_fat_tree("12,12").find("there must be 1 numbers after ':'"), std::string::npos);
    EXPECT_NE(flaw_of_fat_tree("200,4:100").find("300 ports of a switch"), std::string::npos);
    EXPECT_NE(flaw_of_fat_tree("200,250:4").find("hosts"), std::string::npos);
    EXPECT_NE(std::get<std::string>(parse_dragonfly("9x4")).find("is not a dragonfly"), std::string::npos);
}

TEST(SimTopology, what_is_not_connected_is_named) {
    Topology t = fat_tree("2,2:2");
    t.set_node(t.find("leaf1"), false);
    ASSERT_TRUE(defect(t));
    EXPECT_EQ(*defect(t), "the topology is not connected: h2 cannot be reached from h0");
}

TEST(SimTopologyFile, reads_what_the_software_subnet_prints) {
    const auto read = parse_topology(
        "f",
        "subnet link-layer=ib\nswitch sw0 sw1 # two\nhost h0 h1\nhca h0/coop0 h1/coop0 lmc=1\n"
        "link h0/coop0/1 sw0 rate=250MB/s latency=400ns\nlink h1/coop0/1 sw1\nlink sw0 sw1\n",
        kRates);
    ASSERT_TRUE(std::holds_alternative<Topology>(read)) << std::get<std::string>(read);
    const Topology& t = std::get<Topology>(read);
    EXPECT_FALSE(defect(t));
    EXPECT_EQ(t.links[0].bytes_per_s, 250e6);
    EXPECT_EQ(t.links[2].bytes_per_s, 1e9);
    EXPECT_EQ(t.links[4].bytes_per_s, 2e9);
}

TEST(SimTopologyFile, names_the_line_that_is_wrong) {
    const auto flaw = [](const char* text) { return std::get<std::string>(parse_topology("f", text, kRates)); };
    EXPECT_EQ(flaw("host a\nswitch a\n"), "f:2: 'a' is defined twice");
    EXPECT_EQ(flaw("host a\n\nlink a b\n"), "f:3: there is no host or switch 'b'");
    EXPECT_EQ(flaw("wire a b\n"), "f:1: there is no statement 'wire' (switch, host, link)");
    EXPECT_EQ(flaw("link a b rate=fast\n"), "f:1: 'rate=fast' is not a rate such as 1.4GB/s or 20Gbit/s");
}

}  // namespace
}  // namespace coop::sim
