// SPDX-License-Identifier: BSD-3-Clause
//
// fabric/topo: LIDs, shortest paths, the distribution of a port's LIDs over paths,
// and errors.
#include <gtest/gtest.h>

#include <set>

#include "fabric/topo/generate.h"
#include "fabric/topo/routing.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

Topology made(const Sizes& sizes) {
    Topology topology;
    const Flaw flaw = generate(sizes, topology);
    EXPECT_EQ(flaw.text, "");
    return topology;
}

std::string refused(const Sizes& sizes) {
    Topology topology;
    return generate(sizes, topology).text;
}

Forwarding routed(const Topology& topology) {
    Forwarding tables;
    EXPECT_EQ(find_shortest_paths(topology, tables).text, "");
    return tables;
}

// The names of the nodes on the way from a port to a LID, without the port itself.
std::vector<std::string> way(const Topology& t, const Forwarding& tables, std::uint32_t port, std::uint32_t dlid) {
    std::vector<std::string> names;
    for (std::uint32_t link = 0; link < 2 * t.cables.size(); ++link) {
        if (!(t.link_from(link) == Node{NodeKind::port, port})) continue;
        Node at = t.link_to(link);
        names.push_back(t.node_name(at));
        while (at.kind == NodeKind::switch_ && names.size() <= kMaxHops) {
            at = t.link_to(tables.next[at.index * tables.lids + dlid] - 1);
            names.push_back(t.node_name(at));
        }
        return names;
    }
    return names;
}

using Names = std::vector<std::string>;

std::vector<std::uint32_t> base_lids(const Topology& t) {
    std::vector<std::uint32_t> lids;
    for (const PortPlan& port : t.ports) lids.push_back(port.lid);
    return lids;
}

using Lids = std::vector<std::uint32_t>;

TEST(FabricTopology, lids_go_from_1_on_in_the_order_of_the_ports) {
    const Topology t = made({.hosts = 2, .hcas = 2, .ports = 2});
    EXPECT_EQ(base_lids(t), (Lids{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(t.port_name(0), "h0/coop0/1");
    EXPECT_EQ(t.port_name(1), "h0/coop0/2");
    EXPECT_EQ(t.port_name(2), "h0/coop1/1");
    EXPECT_EQ(t.port_name(4), "h1/coop0/1");
}

TEST(FabricTopology, base_lids_are_multiples_of_the_lids_per_port) {
    EXPECT_EQ(base_lids(made({.hosts = 3, .lmc = 1})), (Lids{2, 4, 6}));
    EXPECT_EQ(base_lids(made({.hosts = 3, .lmc = 7})), (Lids{128, 256, 384}));
}

TEST(FabricTopology, ports_with_different_lmc_share_no_lid) {
    Topology t = made({.hosts = 3});
    for (PortPlan& port : t.ports) port.lid = 0;
    t.ports[0].lmc = 0;
    t.ports[1].lmc = 2;
    t.ports[2].lid = 4;
    EXPECT_EQ(assign_lids(t).text, "");
    EXPECT_EQ(base_lids(t), (Lids{1, 8, 4}));
    EXPECT_EQ(check(t).text, "");
    EXPECT_EQ(port_of_lid(t, 11), 1u);
    EXPECT_EQ(port_of_lid(t, 12), kNone);
    EXPECT_EQ(port_of_lid(t, 0), kNone);
}

TEST(FabricTopology, an_lmc_that_does_not_fit_names_the_port) {
    EXPECT_EQ(base_lids(made({.hosts = 383, .lmc = 7})).back(), 383u * 128);
    const std::string text = refused({.hosts = 384, .lmc = 7});
    EXPECT_EQ(text,
              "h383/coop0/1: no LID is left: 384 ports, this one with LMC 7 (128 LIDs), do not fit into 0x1..0xbfff");
}

TEST(FabricTopology, in_a_star_every_way_is_over_the_switch) {
    const Topology t = made({.hosts = 3, .hcas = 2});
    const Forwarding tables = routed(t);
    EXPECT_EQ(way(t, tables, 0, 6), (Names{"sw0", "h2/coop1/1"}));
    EXPECT_EQ(way(t, tables, 5, 1), (Names{"sw0", "h0/coop0/1"}));
}

TEST(FabricTopology, a_star_splits_the_latency_over_its_two_links) {
    const Topology t = made({.rates = {1000}, .latency_ns = 1501});
    EXPECT_EQ(t.cables[0].there.latency_ns + t.cables[1].back.latency_ns, 1501);
    EXPECT_EQ(t.cables[0].there.latency_ns, 751);
    EXPECT_EQ(t.cables[0].there.rate, 1000u);
    EXPECT_EQ(t.cables[0].back.rate, 1000u);
}

TEST(FabricTopology, each_hca_of_a_host_has_its_rate) {
    const Topology t = made({.hosts = 2, .hcas = 2, .rates = {100, 200}});
    EXPECT_EQ(t.cables[2].there.rate, 100u);
    EXPECT_EQ(t.cables[3].back.rate, 200u);
    EXPECT_EQ(refused({.hcas = 3, .rates = {1, 2}}), "2 rates for 3 HCAs per host: give one for all, or one for each");
}

TEST(FabricTopology, the_lids_of_a_port_go_over_distinct_spines) {
    const Topology t = made({.lmc = 2, .leaves = 2, .spines = 4, .hosts_per_leaf = 2});
    const Forwarding tables = routed(t);
    for (const PortPlan& to : t.ports) {
        std::set<std::string> spines;
        const std::uint32_t from = to.hca < 2 ? 3 : 0;  // on the other leaf
        for (std::uint32_t bits = 0; bits < 4; ++bits) {
            const Names names = way(t, tables, from, to.lid + bits);
            ASSERT_EQ(names.size(), 4u);
            spines.insert(names[1]);
        }
        EXPECT_EQ(spines.size(), 4u);
    }
}

TEST(FabricTopology, base_lids_are_spread_over_the_spines) {
    const Topology t = made({.lmc = 1, .leaves = 2, .spines = 2, .hosts_per_leaf = 2});
    const Forwarding tables = routed(t);
    EXPECT_EQ(way(t, tables, 0, t.ports[2].lid), (Names{"leaf0", "spine0", "leaf1", "h2/coop0/1"}));
    EXPECT_EQ(way(t, tables, 0, t.ports[3].lid), (Names{"leaf0", "spine1", "leaf1", "h3/coop0/1"}));
    EXPECT_EQ(way(t, tables, 0, t.ports[3].lid + 1), (Names{"leaf0", "spine0", "leaf1", "h3/coop0/1"}));
}

TEST(FabricTopology, below_one_leaf_no_spine_is_crossed) {
    const Topology t = made({.leaves = 2, .spines = 2, .hosts_per_leaf = 2});
    EXPECT_EQ(way(t, routed(t), 0, t.ports[1].lid), (Names{"leaf0", "h1/coop0/1"}));
}

TEST(Site03Fabric, on_a_rail_optimised_subnet_hca_i_of_each_host_is_on_leaf_i) {
    const Topology t = made({.hosts = 3, .hcas = 2, .spines = 2, .rail_optimised = true});
    EXPECT_EQ(t.switches.size(), 4u);
    EXPECT_EQ(t.cables.size(), 6u + 4u);
    const Forwarding tables = routed(t);
    EXPECT_EQ(way(t, tables, 0, t.ports[4].lid), (Names{"leaf0", "h2/coop0/1"}));
    EXPECT_EQ(way(t, tables, 1, t.ports[5].lid), (Names{"leaf1", "h2/coop1/1"}));
    const Names crossed = way(t, tables, 0, t.ports[5].lid);
    ASSERT_EQ(crossed.size(), 4u);
    EXPECT_EQ(crossed[1].substr(0, 5), "spine");
}

TEST(FabricTopology, in_a_fat_tree_the_latency_is_that_across_a_spine) {
    const Topology t = made({.rates = {500}, .latency_ns = 1002, .leaves = 2, .spines = 1, .hosts_per_leaf = 1});
    ASSERT_EQ(t.cables.size(), 4u);
    EXPECT_EQ(t.cables[0].there.latency_ns + t.cables[2].there.latency_ns + t.cables[3].back.latency_ns +
                  t.cables[1].back.latency_ns,
              1002);
    EXPECT_EQ(t.cables[2].there.rate, 500u);
}

TEST(FabricTopology, parallel_cables_are_shared_and_numbered) {
    Topology t = made({.leaves = 2, .spines = 1, .hosts_per_leaf = 2});
    t.cables.push_back(t.cables[4]);
    EXPECT_EQ(number_of_cable(t, 4), 1u);
    EXPECT_EQ(number_of_cable(t, 5), 0u);
    EXPECT_EQ(number_of_cable(t, 6), 2u);
    const Forwarding tables = routed(t);
    std::set<std::uint32_t> links;
    for (const std::uint32_t port : {2, 3}) links.insert(tables.next[t.ports[port].lid] - 1);
    EXPECT_EQ(links, (std::set<std::uint32_t>{8, 12}));
}

TEST(FabricTopology, a_port_that_is_not_reached_is_named) {
    Topology t = made({});
    t.switches.push_back({"sw1"});
    t.cables[1].b.index = 1;
    EXPECT_EQ(check(t).text, "h0/coop0/1 cannot be reached from h1/coop0/1");
    t.cables.pop_back();
    EXPECT_EQ(check(t).text, "h1/coop0/1 has no cable");
}

TEST(FabricTopology, two_ports_can_be_cabled_to_each_other) {
    Topology t = made({});
    t.cables = {{{NodeKind::port, 0}, {NodeKind::port, 1}, {}, {}}};
    EXPECT_EQ(check(t).text, "");
}

// A chain of `switches` switches with a host at each end.
Topology chain(std::uint32_t switches) {
    Topology t = made({});
    t.switches.clear();
    t.cables.clear();
    for (std::uint32_t i = 0; i < switches; ++i) t.switches.push_back({"s" + std::to_string(i)});
    t.cables.push_back({{NodeKind::port, 0}, {NodeKind::switch_, 0}, {}, {}});
    for (std::uint32_t i = 1; i < switches; ++i)
        t.cables.push_back({{NodeKind::switch_, i - 1}, {NodeKind::switch_, i}, {}, {}});
    t.cables.push_back({{NodeKind::switch_, switches - 1}, {NodeKind::port, 1}, {}, {}});
    return t;
}

TEST(FabricTopology, a_way_that_is_too_long_is_refused) {
    EXPECT_EQ(check(chain(7)).text, "");
    EXPECT_EQ(check(chain(8)).text, "from h1/coop0/1 to h0/coop0/1 the shortest route has 9 cables, more than 8");
}

TEST(FabricTopology, names_are_unique_and_plain) {
    Topology t = made({});
    t.switches[0].name = "h1";
    EXPECT_EQ(check(t).text, "the name 'h1' is given twice");
    for (const char* good : {"a", "rack-7.node_3", "_x"}) EXPECT_TRUE(is_good_name(good, 63)) << good;
    for (const char* bad : {"", "7up", "a b", "-a", ".a", "a/b", "a:b"}) EXPECT_FALSE(is_good_name(bad, 63)) << bad;
    EXPECT_FALSE(is_good_name("abcd", 3));
}

TEST(FabricTopology, roce_has_no_lmc) {
    EXPECT_EQ(refused({.lmc = 1, .ethernet = true}), "RoCE has no LIDs, and so no LMC: 1 is not 0");
}

TEST(FabricTopology, a_subnet_of_128_ports_is_routed) {
    const Topology t = made({.hcas = 2, .lmc = 3, .leaves = 8, .spines = 8, .hosts_per_leaf = 8});
    EXPECT_EQ(t.ports.size(), 128u);
}

TEST(FabricUnits, rates_are_read_and_shown) {
    EXPECT_EQ(parse_rate("250MB/s"), 250'000'000u);
    EXPECT_EQ(parse_rate("1.5GB/s"), 1'500'000'000u);
    EXPECT_EQ(parse_rate("10Gbit/s"), 1'250'000'000u);
    EXPECT_EQ(parse_rate("1MiB/s"), 1'048'576u);
    EXPECT_EQ(parse_rate("unlimited"), 0u);
    for (const char* bad :
         {"", "0", "0MB/s", "250", "250MB", "-1MB/s", "1e3MB/s", "MB/s", "1.2.3MB/s", "inf", "99999999999999GB/s"})
        EXPECT_FALSE(parse_rate(bad).has_value()) << bad;
    for (const std::uint64_t rate :
         {0ull, 1ull, 999ull, 1500ull, 250'000'000ull, 1'048'576ull, 1'250'000'000ull, 123'456'789'012ull})
        EXPECT_EQ(parse_rate(rate_text(rate)), rate) << rate_text(rate);
    EXPECT_EQ(rate_text(1'250'000'000), "1.25GB/s");
}

TEST(FabricUnits, times_are_read_and_shown) {
    EXPECT_EQ(parse_time_ns("1.5us"), 1500);
    EXPECT_EQ(parse_time_ns("800ns"), 800);
    EXPECT_EQ(parse_time_ns("1.2s"), 1'200'000'000);
    EXPECT_EQ(parse_time_ns("0"), 0);
    for (const char* bad : {"", "5", "-1us", "1 us", "1min"}) EXPECT_FALSE(parse_time_ns(bad).has_value()) << bad;
    for (const std::int64_t ns : {0ll, 1ll, 750ll, 1501ll, 1'234'567ll, 3'000'000'000ll})
        EXPECT_EQ(parse_time_ns(time_text(ns)), ns) << time_text(ns);
}

TEST(FabricUnits, losses_are_read_and_shown) {
    EXPECT_EQ(parse_loss("0.5"), 1u << 31);
    EXPECT_EQ(parse_loss("50%"), 1u << 31);
    EXPECT_EQ(parse_loss("1"), 0xffffffffu);
    EXPECT_FALSE(parse_loss("1.01").has_value());
    EXPECT_FALSE(parse_loss("-0.1").has_value());
    for (const std::uint32_t loss : {0u, 1u, 7u, 42'949'673u, 1u << 31, 0xfffffffeu, 0xffffffffu})
        EXPECT_EQ(parse_loss(loss_text(loss)), loss) << loss_text(loss);
}

TEST(FabricUnits, a_refusal_names_the_option_the_value_and_the_range) {
    std::uint64_t value = 0;
    EXPECT_EQ(parse_in_range("--lmc", "9", 0, 7, value).text, "--lmc: '9' is not a whole number in 0..7");
    std::uint32_t mtu = 0;
    EXPECT_EQ(parse_mtu("--mtu", "1500", mtu).text, "--mtu: '1500' is not one of 256, 512, 1024, 2048, 4096");
}

}  // namespace
}  // namespace coop::fabric
