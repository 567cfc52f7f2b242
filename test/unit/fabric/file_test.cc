// SPDX-License-Identifier: BSD-3-Clause
//
// Topology files: their meaning, the errors and the line that these name, and round
// trips of a topology through text and through shared memory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/engine/route.h"
#include "fabric/topo/generate.h"
#include "fabric/topo/install.h"
#include "fabric/topo/topology_file.h"

namespace coop::fabric {
namespace {

constexpr const char* kTwoSpines = R"(
# two leaves, two spines
switch leaf0 leaf1 spine0 spine1
host h0 h1
hca h0/coop0 h1/coop0 lmc=1
link h0/coop0/1 leaf0 rate=250MB/s latency=400ns   # both directions
link h1/coop0/1 leaf1 rate=250MB/s,1GB/s
link leaf0 spine0 load=100MB/s,none
link leaf0 spine1 loss=1%
link leaf1 spine0
link leaf1 spine1
route h0/coop0/1+1 0x4 via leaf0 spine1 leaf1
)";

Topology parsed(const std::string& text) {
    Topology topology;
    EXPECT_EQ(parse_topology("test", text, topology).text, "");
    return topology;
}

std::string refused(const std::string& text) {
    Topology topology;
    return parse_topology("test", text, topology).text;
}

TEST(FabricFile, says_what_the_subnet_is) {
    const Topology t = parsed(kTwoSpines);
    ASSERT_EQ(t.ports.size(), 2u);
    EXPECT_EQ(t.ports[1].lid, 4u);
    EXPECT_EQ(t.ports[1].lmc, 1u);
    ASSERT_EQ(t.cables.size(), 6u);
    EXPECT_EQ(t.cables[0].there.rate, 250'000'000u);
    EXPECT_EQ(t.cables[0].back.latency_ns, 400);
    EXPECT_EQ(t.cables[1].back.rate, 1'000'000'000u);
    EXPECT_EQ(t.cables[2].there.background, 100'000'000u);
    EXPECT_EQ(t.cables[2].back.background, 0u);
    EXPECT_EQ(t.cables[3].there.loss, 42'949'673u);
    ASSERT_EQ(t.routes.size(), 1u);
    EXPECT_EQ(t.routes[0].slid, 3u);
    EXPECT_EQ(t.routes[0].dlid, 4u);
    EXPECT_EQ(t.routes[0].links, (std::vector<std::uint32_t>{0, 6, 11, 3}));
}

TEST(FabricFile, registration_costs_nothing_unless_it_is_said) {
    const Topology t = parsed(
        "switch s\nhost a b\nhca a/x register-cost=90us,0.3us\nhca b/x\nlink a/x/1 s\nlink b/x/1 s\n");
    EXPECT_EQ(t.hcas[0].register_cost, (RegisterCost{.base_ns = 90'000, .page_ns = 300}));
    EXPECT_EQ(t.hcas[1].register_cost, RegisterCost{});
    EXPECT_NE(to_text(t).find("hca a/x ports=1 profile=default register-cost=90us,300ns\n"), std::string::npos);
    EXPECT_NE(to_text(t).find("hca b/x ports=1 profile=default\n"), std::string::npos);
}

TEST(FabricFile, hcas_come_in_the_order_of_their_hosts) {
    const Topology t = parsed("switch s\nhca b/x a/x a/y\nhost a b\nlink b/x/1 s\nlink a/y/1 s\nlink a/x/1 s\n");
    EXPECT_EQ(t.hca_name(0), "a/x");
    EXPECT_EQ(t.hca_name(1), "a/y");
    EXPECT_EQ(t.hca_name(2), "b/x");
    EXPECT_EQ(t.port_name(t.cables[0].a.index), "b/x/1");
}

TEST(FabricFile, a_port_may_differ_from_its_hca) {
    const Topology t = parsed(
        "switch s\nhost a b\nhca a/x b/x ports=2 mtu=2048\nport a/x/2 lid=0x40 lmc=2 mtu=256\n"
        "link a/x/1 s\nlink a/x/2 s\nlink b/x/1 s\nlink b/x/2 s\n");
    EXPECT_EQ(t.ports[0].lid, 1u);
    EXPECT_EQ(t.ports[0].mtu_bytes, 2048u);
    EXPECT_EQ(t.ports[1].lid, 0x40u);
    EXPECT_EQ(t.ports[1].lmc, 2u);
    EXPECT_EQ(t.ports[1].mtu_bytes, 256u);
    EXPECT_EQ(t.ports[2].lid, 2u);
}

TEST(Site19Fabric, ports_have_tables_of_pkeys) {
    const char* const text =
        "switch s\nhost a b\nhca a/x b/x ports=2 pkeys=0x8001,0,0xffff\nport b/x/2 pkeys=1\n"
        "link a/x/1 s\nlink a/x/2 s\nlink b/x/1 s\nlink b/x/2 s\n";
    const Topology t = parsed(text);
    EXPECT_EQ(t.ports[1].pkeys, (std::vector<std::uint16_t>{0x8001, 0, 0xffff}));
    EXPECT_EQ(t.ports[3].pkeys, std::vector<std::uint16_t>{1});
    EXPECT_EQ(to_text(parsed(to_text(t))), to_text(t));
    EXPECT_NE(to_text(t).find("port b/x/2 lid=0x4 lmc=0 mtu=4096 pkeys=0x1\n"), std::string::npos);
    EXPECT_EQ(to_text(parsed(kTwoSpines)).find("pkeys"), std::string::npos);  // the default is not printed
}

TEST(Site19Fabric, ports_demand_a_global_routing_header_and_have_prefixes) {
    const char* const text =
        "subnet prefix=7\nswitch s\nhost a b\nhca a/x b/x grh=required\nport b/x/1 prefix=8 grh=optional\n"
        "link a/x/1 s\nlink b/x/1 s\n";
    const Topology t = parsed(text);
    EXPECT_TRUE(t.ports[0].grh_required);
    EXPECT_FALSE(t.ports[1].grh_required);
    EXPECT_EQ(t.ports[0].prefix, 0u);
    EXPECT_EQ(t.ports[1].prefix, 8u);
    EXPECT_EQ(to_text(parsed(to_text(t))), to_text(t));
}

struct Refusal {
    const char* text;
    const char* message;
};

constexpr Refusal kRefusals[] = {
    {"swich s", "test:1: 'swich' is not a statement (subnet, switch, host, hca, port, link, route)"},
    {"host", "test:1: host: 0 names instead of at least 1"},
    {"host a\n\nhost b a", "test:3: the name 'a' is already used in line 1"},
    {"host a\nswitch a", "test:1: the name 'a' is already used in line 2"},
    {"host 7", "test:1: host: '7' is not a name: 1..63 letters, digits, '_', '.', '-', a letter or '_' first"},
    {"host a/b", "test:1: host: 'a/b' is not a name: it has a '/'"},
    {"hca a/x", "test:1: hca: there is no host 'a'"},
    {"host a\nhca a", "test:2: hca: 'a' is not HOST/NAME"},
    {"host a\nhca a/x ports=5", "test:2: ports: '5' is not a whole number in 1..4"},
    {"host a\nhca a/x lmc=8", "test:2: lmc: '8' is not a whole number in 0..7"},
    {"host a\nhca a/x mtu=1500", "test:2: mtu: '1500' is not one of 256, 512, 1024, 2048, 4096"},
    {"host a\nhca a/x profile=new",
     "test:2: profile: 'new' is not one of default, nosrq, noapm, small, old, unordered, nolastwqe"},
    {"host a\nhca a/x speed=1",
     "test:2: 'speed' is not a setting of hca (ports, profile, lmc, mtu, pkeys, grh, prefix, register-cost)"},
    {"host a\nhca a/x register-cost=90us",
     "test:2: register-cost: '90us' is not BASE,PER_PAGE: two times such as 90us,0.3us, each at most 1s"},
    {"host a\nhca a/x register-cost=1us,2us,3us",
     "test:2: register-cost: '1us,2us,3us' is not BASE,PER_PAGE: two times such as 90us,0.3us, each at most 1s"},
    {"host a\nhca a/x register-cost=90us,1001ms",
     "test:2: register-cost: '90us,1001ms' is not BASE,PER_PAGE: two times such as 90us,0.3us, each at most 1s"},
    {"host a\nhca a/x pkeys=0x8000",
     "test:2: pkeys: '0x8000' is not P_Keys such as 0xffff,0x8001: 16 bits each, the upper bit set for full members, 0 "
     "for an empty entry"},
    {"host a\nhca a/x pkeys=",
     "test:2: pkeys: '' is not P_Keys such as 0xffff,0x8001: 16 bits each, the upper bit set for full members, 0 for "
     "an empty entry"},
    {"host a\nhca a/x pkeys=1,",
     "test:2: pkeys: '1,' is not P_Keys such as 0xffff,0x8001: 16 bits each, the upper bit set for full members, 0 for "
     "an empty entry"},
    {"host a\nhca a/x pkeys=0", "test:2: a/x/1 has no P_Key"},
    {"host a\nhca a/x pkeys=5,0,5", "test:2: a/x/1: P_Key 0x5 is given twice"},
    {"host a\nhca a/x pkeys=1,2,3,4,5,6,7,8,9", "test:2: a/x/1: 9 P_Keys are more than 8"},
    {"subnet link-layer=roce\nhost a\nhca a/x pkeys=0x8001",
     "test:3: a/x/1: RoCE has no partitions: its only P_Key is 0xffff"},
    {"host a\nhca a/x grh=yes", "test:2: grh: 'yes' is not 'required' or 'optional'"},
    {"host a\nhca a/x prefix=0", "test:2: prefix: '0' is not 64 bits such as 0xfe80000000000000"},
    {"subnet link-layer=roce\nhost a\nhca a/x grh=required",
     "test:3: grh: RoCE packets always have a global routing header"},
    {"subnet link-layer=roce\nhost a\nhca a/x prefix=1", "test:3: prefix: the GIDs of RoCE are made of addresses"},
    {"host a x=1", "test:1: 'x' is not a setting of host, which has none"},
    {"host a\nhca a/x lmc=1 lmc=2", "test:2: 'lmc=' is given twice"},
    {"host a\nhca a/x\nport a/x/2 lid=1", "test:3: port: there is no port 'a/x/2' (HOST/HCA/NUMBER)"},
    {"host a\nhca a/x\nlink a/x/1 s", "test:3: link: there is no port and no switch 's'"},
    {"host a\nhca a/x\nswitch s t\nlink a/x/1 s\nlink a/x/1 t", "test:5: link: a/x/1 has a cable already"},
    {"switch s\nlink s s", "test:2: link: a cable from 's' to itself"},
    {"switch s t\nlink s t rate=5",
     "test:2: rate: '5' is not a rate such as 250MB/s, 2GB/s or 10Gbit/s, or 'unlimited', or two of them with a comma"},
    {"switch s t\nlink s t u", "test:2: link: 'u' is unexpected"},
    {"host a b\nhca a/x b/x\nswitch s\nlink a/x/1 s", "test:2: b/x/1 has no cable"},
    {"host a b\nhca a/x\nhca b/x\nswitch s t\nlink a/x/1 s\nlink b/x/1 t",
     "test:2: a/x/1 cannot be reached from b/x/1"},
    {"host a b\nhca a/x b/x lmc=1\nport b/x/1 lid=3\nswitch s\nlink a/x/1 s\nlink b/x/1 s",
     "test:3: b/x/1: LID 0x3 is not a multiple of 2^LMC, 2"},
    {"host a b\nhca a/x b/x\nport a/x/1 b/x/1 lid=3\nswitch s\nlink a/x/1 s\nlink b/x/1 s",
     "test:3: b/x/1: LID 0x3 is a/x/1's"},
    {"subnet link-layer=eth", "test:1: link-layer: 'eth' is not 'ib' or 'roce'"},
    {"subnet islands=2", "test:1: islands: '2' is not 'yes' or 'no'"},
    {"subnet\nsubnet", "test:2: subnet: there is one already"},
    {"subnet link-layer=roce\nhost a\nhca a/x lmc=1", "test:3: lmc: RoCE has no LIDs, and so no LMC"},
    {"host a", "test: there is no port"},
    {"", "test: there is no host"},
};

TEST(FabricFile, names_the_line_and_what_is_wrong_with_it) {
    for (const Refusal& one : kRefusals) EXPECT_EQ(refused(one.text), one.message) << one.text;
}

TEST(FabricFile, names_what_is_wrong_with_a_route) {
    const std::string base(kTwoSpines);  // 12 lines
    const auto with = [&](const std::string& route) { return refused(base + "route " + route + "\n"); };
    EXPECT_EQ(with("0x2 0x4 over leaf0"),
              "test:13: route: 'over' instead of 'via SWITCH …' or 'nowhere' (route SLID DLID via SWITCH …)");
    EXPECT_EQ(with("0x2 0x4 via"),
              "test:13: route: 'via' instead of 'via SWITCH …' or 'nowhere' (route SLID DLID via SWITCH …)");
    EXPECT_EQ(with("0x2 0x4 nowhere leaf0"),
              "test:13: route: 'nowhere' instead of 'via SWITCH …' or 'nowhere' (route SLID DLID via SWITCH …)");
    EXPECT_EQ(with("0x2 0x3 nowhere"), "test: route 0x2 0x3: both LIDs are h0/coop0/1's");
    EXPECT_EQ(with("0x2 0x4 via leaf0 leaf1"), "test:13: route: there is no cable between 'leaf0' and 'leaf1'");
    EXPECT_EQ(with("0x2 0x4 via leaf0 spine0"), "test:13: route: there is no cable between 'spine0' and 'h1/coop0/1'");
    EXPECT_EQ(with("0x2 0x4 via leaf0 spine0:2 leaf1"),
              "test:13: route: there is no cable 2 between 'leaf0' and 'spine0', only 1");
    EXPECT_EQ(with("0x2 0x9 via leaf0"),
              "test:13: route: '0x9' is not the LID of a port: a number that a port has, or HOST/HCA/NUMBER or "
              "HOST/HCA/NUMBER+N");
    EXPECT_EQ(with("h0/coop0/1+2 0x4 via leaf0"), "test:13: h0/coop0/1+2: '2' is not a whole number in 0..1");
    EXPECT_EQ(with("0x3 0x4 via leaf0 spine0 leaf1"), "test: route 0x3 0x4 is given twice");
}

TEST(FabricFile, a_topology_comes_back_from_its_text) {
    for (const std::string& text : {std::string(kTwoSpines), to_text(parsed(kTwoSpines))}) {
        const std::string shown = to_text(parsed(text));
        EXPECT_EQ(to_text(parsed(shown)), shown);
    }
    Topology generated;
    const Sizes sizes{.hcas = 2,
                      .ports = 2,
                      .lmc = 3,
                      .mtu_bytes = 1024,
                      .pkeys = {3, 0xffff},
                      .rates = {0, 1'234'567},
                      .latency_ns = 777,
                      .register_cost = {.base_ns = 1, .page_ns = 0},
                      .profile = find_profile("small"),
                      .leaves = 2,
                      .spines = 3,
                      .hosts_per_leaf = 2};
    ASSERT_EQ(generate(sizes, generated).text, "");
    EXPECT_EQ(to_text(parsed(to_text(generated))), to_text(generated));
}

// Gives each test a subnet of its own and removes it at the end.
class InstalledSubnet : public testing::Test {
protected:
    void install_as_test(const Topology& topology) {
        const Error error = install(topology, {.seed = 7}, name(), false, subnet);
        ASSERT_EQ(error.text, "");
    }
    void TearDown() override { [[maybe_unused]] const Error none = Segment::remove(name()); }
    // The name is the same in the test's children.
    static const std::string& name() {
        static const std::string name = "unit-test-" + std::to_string(getpid());
        return name;
    }
    Segment subnet;
};

TEST_F(InstalledSubnet, comes_back_as_it_was) {
    Topology topology = parsed(kTwoSpines);
    topology.ports[0].pkeys = {0x8001, 0, 0xffff};
    topology.ports[0].grh_required = true;
    topology.ports[1].prefix = 0xfe80000000000001;
    topology.hcas[1].register_cost = {.base_ns = 90'000, .page_ns = 300};
    install_as_test(topology);
    EXPECT_EQ(to_text(read_topology(subnet)), to_text(topology));
}

TEST_F(InstalledSubnet, is_found_by_name) {
    install_as_test(parsed(kTwoSpines));
    Segment other;
    EXPECT_EQ(other.attach(name()).text, "");
    EXPECT_EQ(other.hosts().size(), 2u);
    EXPECT_FALSE(is_abandoned(other));
}

TEST_F(InstalledSubnet, routes_as_the_file_says) {
    install_as_test(parsed(kTwoSpines));
    const Route pinned = find_route(subnet, 0, 3, 4);
    ASSERT_EQ(pinned.hops, 4u);
    EXPECT_EQ(pinned.links[1], 6u);  // leaf0 to spine1
    const Route back = pinned.reversed(subnet);
    EXPECT_EQ(back.to, 0u);
    EXPECT_EQ(back.hops, 4u);
    const Route other = find_route(subnet, 0, 2, 5);
    const Route one_more = find_route(subnet, 0, 2, 4);
    EXPECT_NE(other.links[1], one_more.links[1]);
    EXPECT_FALSE(find_route(subnet, 0, 2, 6).leads_somewhere());
}

// Host a's second port and host b's second port are on switches that no cable connects; all have the same prefix.
constexpr const char* kIslands =
    "subnet islands=yes\nswitch s t u\nhost a b\nhca a/x b/x ports=2\n"
    "link a/x/1 s\nlink b/x/1 s\nlink a/x/2 t\nlink b/x/2 u\n";

TEST_F(InstalledSubnet, site_16_may_have_islands) {
    EXPECT_EQ(to_text(parsed(to_text(parsed(kIslands)))), to_text(parsed(kIslands)));
    install_as_test(parsed(kIslands));
    EXPECT_EQ(to_text(read_topology(subnet)), to_text(parsed(kIslands)));
    for (std::uint16_t from = 1; from <= 4; ++from)
        for (std::uint16_t to = 1; to <= 4; ++to)
            EXPECT_EQ(find_route(subnet, from - 1u, from, to).leads_somewhere(),
                      from == to || (from % 2 == 1 && to % 2 == 1))
                << from << " to " << to;
}

TEST_F(InstalledSubnet, site_16_may_have_a_route_that_leads_nowhere_one_way) {
    const std::string text = std::string(kTwoSpines) + "route 0x2 0x5 nowhere\n";
    EXPECT_EQ(to_text(parsed(to_text(parsed(text)))), to_text(parsed(text)));
    install_as_test(parsed(text));
    EXPECT_EQ(to_text(read_topology(subnet)), to_text(parsed(text)));
    EXPECT_FALSE(find_route(subnet, 0, 2, 5).leads_somewhere());
    EXPECT_TRUE(find_route(subnet, 1, 5, 2).leads_somewhere());
    EXPECT_TRUE(find_route(subnet, 0, 2, 4).leads_somewhere());
}

TEST_F(InstalledSubnet, site_23_hosts_may_have_more_than_eight_hcas) {
    Topology t;
    ASSERT_EQ(generate({.hosts = 2, .hcas = 12}, t).text, "");
    install_as_test(t);
    EXPECT_EQ(subnet.hosts()[1].hcas, 12u);
    for (std::uint16_t rail = 0; rail < 12; ++rail) {
        EXPECT_EQ(subnet.hcas()[12u + rail].name, "coop" + std::to_string(rail));
        EXPECT_EQ(
            find_route(subnet, rail, static_cast<std::uint16_t>(rail + 1), static_cast<std::uint16_t>(rail + 13)).to,
            rail + 12u);
    }
}

TEST_F(InstalledSubnet, has_distinct_addresses) {
    Topology t;
    ASSERT_EQ(generate({.hosts = 2, .hcas = 2, .ports = 2}, t).text, "");
    install_as_test(t);
    EXPECT_EQ(subnet.hcas()[0].guid, 0x0002c90300000010u);
    for (std::uint32_t i = 0; i < subnet.ports().size(); ++i) {
        EXPECT_EQ(subnet.ports()[i].gids[0][0], 0xfe);
        EXPECT_EQ(find_port_by_gid(subnet, subnet.ports()[i].gids[0]), i);
    }
}

TEST_F(InstalledSubnet, has_gids_and_no_lids_with_roce) {
    Topology t;
    ASSERT_EQ(generate({.hosts = 2, .hcas = 2, .ethernet = true}, t).text, "");
    install_as_test(t);
    for (std::uint32_t i = 0; i < subnet.ports().size(); ++i) {
        const Port& port = subnet.ports()[i];
        EXPECT_EQ(port.lid, 0u);
        EXPECT_EQ(port.gid_count, 2u);
        for (std::uint32_t k = 0; k < port.gid_count; ++k) EXPECT_EQ(find_port_by_gid(subnet, port.gids[k]), i);
        EXPECT_EQ(subnet.hcas()[port.hca].profile.apm, 0);
    }
    const std::uint8_t ipv4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 2};
    EXPECT_EQ(find_port_by_gid(subnet, ipv4), 3u);  // h1, its second rail
    EXPECT_EQ(find_route(subnet, 0, 1, 4).to, 3u);
}

TEST_F(InstalledSubnet, of_a_thread_that_has_ended_is_abandoned) {
    const std::string& keeper_name = name();
    const pid_t child = fork();
    if (child == 0) {
        Segment mine;
        _exit(install(parsed(kTwoSpines), {}, keeper_name, true, mine) ? 1 : 0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(subnet.attach(name()).text, "");
    EXPECT_TRUE(is_abandoned(subnet));
}

}  // namespace
}  // namespace coop::fabric
