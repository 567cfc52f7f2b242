// SPDX-License-Identifier: BSD-3-Clause
#include "sim/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/forwarding_file.h"

namespace coop::sim {
namespace {

constexpr Rates kRates{1e9, 2e9};

Topology fat_tree(const char* shape) { return make_fat_tree(std::get<FatTreeShape>(parse_fat_tree(shape)), kRates); }

Routes routes_of(const Topology& t, std::uint32_t lmc, Routing routing, std::uint64_t seed = 1) {
    Routes routes = assign_lids(t, lmc);
    EXPECT_FALSE(compute(t, routing, seed, routes));
    return routes;
}

// The largest number of messages on a cable when host i sends to host i + shift.
int worst_of_shift(const Topology& t, const Routes& routes, std::uint32_t shift) {
    std::vector<int> load(t.links.size(), 0);
    for (NodeIndex host = 0; host < t.hosts; ++host) {
        const Route way = trace(t, routes, host, (host + shift) % t.hosts, 0);
        for (const LinkIndex link : way.span()) ++load[link];
    }
    return *std::max_element(load.begin(), load.end());
}

TEST(SimRoutes, every_lid_is_reached_over_the_shortest_way) {
    for (const char* shape : {"12,12:12", "4,4,4:4,4", "4,3:2"})
        for (const Routing routing : {Routing::kByDestination, Routing::kScattered}) {
            const Topology t = fat_tree(shape);
            const Routes routes = routes_of(t, 2, routing);
            EXPECT_FALSE(defect(t, routes));
            for (std::uint32_t k = 0; k < 4; ++k) {
                EXPECT_EQ(trace(t, routes, 0, 1, k).hops, 2u);
                EXPECT_EQ(trace(t, routes, 0, t.hosts - 1, k).hops, shape == std::string("4,4,4:4,4") ? 6u : 4u);
            }
        }
}

TEST(SimRoutes, the_paths_of_a_pair_take_different_spines) {
    const Topology t = fat_tree("12,12:12");
    const Routes routes = routes_of(t, 4, Routing::kScattered);
    for (NodeIndex from = 0; from < 12; ++from)
        for (NodeIndex to = 12; to < 144; to += 7) {
            std::set<NodeIndex> spines;
            for (std::uint32_t k = 0; k < 12; ++k) spines.insert(t.links[trace(t, routes, from, to, k).links[1]].to);
            EXPECT_EQ(spines.size(), 12u);
        }
}

TEST(SimRoutes, shifts_do_not_collide_by_destination_and_do_when_scattered) {
    for (const char* shape : {"12,12:12", "4,4,4:4,4"}) {
        const Topology t = fat_tree(shape);
        const Routes by_destination = routes_of(t, 0, Routing::kByDestination),
                     scattered = routes_of(t, 0, Routing::kScattered);
        int worst = 0;
        for (std::uint32_t shift = 1; shift < t.hosts; ++shift) {
            EXPECT_EQ(worst_of_shift(t, by_destination, shift), 1) << shape << " shift " << shift;
            worst = std::max(worst, worst_of_shift(t, scattered, shift));
        }
        EXPECT_GE(worst, 3);
    }
}

TEST(SimRoutes, the_same_seed_gives_the_same_routes) {
    const Topology t = fat_tree("12,12:12");
    EXPECT_EQ(routes_of(t, 3, Routing::kScattered, 7).tables, routes_of(t, 3, Routing::kScattered, 7).tables);
    EXPECT_NE(routes_of(t, 3, Routing::kScattered, 7).tables, routes_of(t, 3, Routing::kScattered, 8).tables);
}

TEST(SimRoutes, without_a_spine_there_are_other_ways) {
    Topology t = fat_tree("4,3:2");
    t.set_node(t.find("spine1"), false);
    const Routes routes = routes_of(t, 1, Routing::kScattered);
    EXPECT_FALSE(defect(t, routes));
    for (std::uint32_t k = 0; k < 2; ++k) {
        const Route way = trace(t, routes, 0, 11, k);
        for (const LinkIndex link : way.span()) EXPECT_TRUE(t.links[link].up);
    }
    t.set_node(t.find("spine0"), false);
    Routes none = assign_lids(t, 0);
    const Defect bad = compute(t, Routing::kScattered, 1, none);
    ASSERT_TRUE(bad);
    EXPECT_NE(bad->find("the topology is not connected"), std::string::npos);
}

TEST(SimRoutes, a_lid_space_that_is_too_small_is_named) {
    const Topology t = fat_tree("16,16,16:16,16");
    EXPECT_FALSE(lid_defect(t, 3));
    ASSERT_TRUE(lid_defect(t, 4));
    EXPECT_NE(lid_defect(t, 4)->find("LMC 4 does not fit: 4096 hosts with 16 LIDs each and 768 switches need LIDs up "
                                     "to 66319, the highest is 49151"),
              std::string::npos)
        << *lid_defect(t, 4);
    EXPECT_TRUE(lid_defect(t, 6));
}

TEST(SimForwardingFile, gives_back_the_routes_that_were_written) {
    const Topology t = fat_tree("4,3:2");
    const Routes routes = routes_of(t, 1, Routing::kScattered);
    std::string text = "# a comment\n";
    for (NodeIndex host = 0; host < t.hosts; ++host)
        text += "host " + t.node_names[host] + " " + std::to_string(routes.base_lids[host]) + "\n";
    for (std::uint32_t at = 0; at < t.switches(); ++at)
        for (std::uint32_t lid = routes.base_lids[0]; lid < routes.lids; ++lid)
            text += t.node_names[t.hosts + at] + " " + std::to_string(lid) + " " +
                    std::to_string(routes.port(at, lid) + 1) + "\n";
    const auto read = parse_forwarding("f", text, t, 1);
    ASSERT_TRUE(std::holds_alternative<Routes>(read)) << std::get<std::string>(read);
    EXPECT_EQ(std::get<Routes>(read).tables, routes.tables);
}

TEST(SimForwardingFile, what_does_not_fit_is_reported) {
    const Topology t = fat_tree("2,2:1");
    const auto flaw = [&](const char* text) { return std::get<std::string>(parse_forwarding("f", text, t, 1)); };
    EXPECT_EQ(flaw("host h9 2\n"), "f:1: there is no host 'h9'");
    EXPECT_EQ(flaw("host h0 3\n"), "f:1: base LID 3 of h0 does not fit LMC 1");
    EXPECT_EQ(flaw("leaf0 2 9\n"), "f:1: leaf0 has no port 9");
    EXPECT_EQ(flaw("leaf0 70000 1\n"), "f:1: LID 70000 is not in 1..49151");
    EXPECT_EQ(flaw("host h0 2\nhost h1 4\nhost h2 6\n"), "f: h3 has no LID");
}

}  // namespace
}  // namespace coop::sim
