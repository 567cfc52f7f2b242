// SPDX-License-Identifier: BSD-3-Clause
//
// Actions and scenarios as words: their effect on a subnet, and the errors that are
// found before any action.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <thread>

#include "fabric/engine/route.h"
#include "fabric/shm/trace.h"
#include "fabric/tool/action.h"
#include "fabric/tool/scenario.h"
#include "fabric/topo/generate.h"
#include "fabric/topo/install.h"

namespace coop::fabric {
namespace {

class ActionsOnASubnet : public testing::Test {
protected:
    void SetUp() override {
        Topology t;
        ASSERT_EQ(generate({.hcas = 2, .lmc = 1, .leaves = 2, .spines = 2, .hosts_per_leaf = 1}, t).text, "");
        t.cables.push_back(t.cables.back());  // a second one between leaf1 and spine1
        const Error error = install(t, {}, name(), false, subnet);
        ASSERT_EQ(error.text, "");
    }
    void TearDown() override { [[maybe_unused]] const Error none = Segment::remove(name()); }
    static std::string name() { return "unit-test-" + std::to_string(getpid()); }

    std::string act(const std::string& line) {
        std::istringstream stream(line);
        Words words;
        for (std::string word; stream >> word;) words.push_back(word);
        Action action;
        if (Error error = parse_action(subnet, words, action)) return error.text;
        return action(subnet).text;
    }
    std::string parse(const std::string& text, Scenario& scenario) { return scenario.parse(subnet, "test", text).text; }
    std::string refused(const std::string& text) {
        Scenario scenario;
        return parse(text, scenario);
    }
    Port& port(std::uint32_t i) { return subnet.ports()[i]; }
    Link& link(std::uint32_t i) { return subnet.links()[i]; }

    Segment subnet;
};

TEST_F(ActionsOnASubnet, take_a_port_down_and_up) {
    EXPECT_EQ(act("port h0/coop1/1 down"), "");
    EXPECT_EQ(port(0).down, 0u);
    EXPECT_EQ(port(1).down, 1u);
    EXPECT_EQ(port(1).counters.link_downed, 1u);
    EXPECT_EQ(act("port h0/coop1 up"), "");
    EXPECT_EQ(port(1).down, 0u);
}

TEST_F(ActionsOnASubnet, set_the_cable_of_a_port_in_both_directions) {
    EXPECT_EQ(act("port h0/coop1 rate 100MB/s"), "");
    EXPECT_EQ(link(port(1).link_out).rate, 100'000'000u);
    EXPECT_EQ(link(port(1).link_in).rate, 100'000'000u);
    EXPECT_EQ(link(port(0).link_out).rate, 0u);
    EXPECT_EQ(act("port h0/coop1 latency 2us"), "");
    EXPECT_EQ(link(port(1).link_in).latency_ns, 2000);
}

TEST_F(ActionsOnASubnet, pull_one_cable_or_all_between_two_switches) {
    EXPECT_EQ(act("link leaf1-spine1:2 down"), "");
    EXPECT_EQ(link(14).down, 0u);
    EXPECT_EQ(link(16).down, 1u);
    EXPECT_EQ(link(17).down, 1u);
    EXPECT_EQ(act("link spine1-leaf1 down"), "");
    EXPECT_EQ(link(14).down, 1u);
    EXPECT_EQ(link(15).down, 1u);
}

TEST_F(ActionsOnASubnet, load_one_direction) {
    EXPECT_EQ(act("link leaf0-spine1 load 400MB/s --one-way"), "");
    EXPECT_EQ(link(10).background, 400'000'000u);
    EXPECT_EQ(link(11).background, 0u);
}

TEST_F(ActionsOnASubnet, count_a_pulled_cable_at_its_port) {
    EXPECT_EQ(act("link h0/coop0/1-leaf0 down"), "");
    EXPECT_EQ(port(0).counters.link_downed, 1u);
    EXPECT_EQ(port(0).down, 0u);
}

TEST_F(ActionsOnASubnet, give_a_port_other_lids_on_the_same_routes) {
    const Route before = find_route(subnet, 3, 0x8, 0x2);
    ASSERT_EQ(before.to, 0u);
    EXPECT_EQ(act("port h0/coop0/1 down"), "");
    EXPECT_EQ(act("lid 0x3 down"), "");
    EXPECT_EQ(act("port h0/coop0/1 up --lid 0xc"), "");
    EXPECT_EQ(port(0).lid, 0xcu);
    EXPECT_EQ(port(0).down, 0u);
    EXPECT_FALSE(find_route(subnet, 3, 0x8, 0x2).leads_somewhere());
    const Route after = find_route(subnet, 3, 0x8, 0xc);
    EXPECT_EQ(after.to, 0u);
    ASSERT_EQ(after.hops, before.hops);
    EXPECT_TRUE(std::equal(after.links, after.links + after.hops, before.links));
    EXPECT_EQ(subnet.lids()[0xd].port, 0u);
    EXPECT_EQ(subnet.lids()[3].port, kNone);
    EXPECT_EQ(subnet.lids()[3].down, 0u);
    EXPECT_EQ(act("port h1/coop1/1 up --lid new"), "");
    EXPECT_EQ(port(3).lid, 0x2u);
    EXPECT_EQ(subnet.header().addresses, 2u);
    EXPECT_EQ(act("port h1/coop1/1 up --lid 2"), "");  // as before: no change
    EXPECT_EQ(subnet.header().addresses, 2u);
}

TEST_F(ActionsOnASubnet, give_a_port_another_gid) {
    std::uint8_t before[16];
    std::memcpy(before, port(0).gids[0], 16);
    EXPECT_EQ(act("port h0/coop0 up --gid new"), "");
    EXPECT_NE(std::memcmp(before, port(0).gids[0], 16), 0);
    EXPECT_EQ(find_port_by_gid(subnet, before), kNone);
    EXPECT_EQ(find_port_by_gid(subnet, port(0).gids[0]), 0u);
    EXPECT_EQ(act("port h0/coop0 up --gid fe80::1:2:3:4"), "");
    EXPECT_EQ(port(0).gids[0][15], 4);
}

TEST_F(ActionsOnASubnet, refuse_addresses_that_a_port_cannot_have) {
    EXPECT_EQ(act("port h0/coop0 up --lid four"), "--lid: 'four' is not a number such as 0x10 or 16, or 'new'");
    EXPECT_EQ(act("port h0/coop0 up --lid 5"), "port: --lid: 5 is not a multiple of 2^LMC, 2");
    EXPECT_EQ(act("port h0/coop0 up --lid 4"), "port: --lid: 4 belongs to h0/coop1/1");
    EXPECT_EQ(act("port h0/coop0 up --lid 0x1000"),
              "port: --lid: 0x1000 is not in 0x1..0x11, where the forwarding tables of this subnet end");
    EXPECT_EQ(act("port h0/coop0 down --lid 6"), "port: --lid and --gid go with 'up'");
    EXPECT_EQ(act("port h0/coop0 up --gid 5"),
              "--gid: '5' is not a GID such as fe80::2:c903:0:99 or ::ffff:10.0.0.9, or 'new'");
    EXPECT_EQ(act("port h0/coop0 up --gid 2001::1"), "port: --gid: 2001::1 does not have the prefix of h0/coop0/1");
    EXPECT_EQ(act("port h0/coop0 up --gid fe80::1:2:3:4"), "");
    EXPECT_EQ(act("port h0/coop1 up --gid fe80::1:2:3:4"), "port: --gid: fe80::1:2:3:4 belongs to h0/coop0/1");
}

TEST_F(ActionsOnASubnet, take_lids_and_hcas_down) {
    EXPECT_EQ(act("lid 0x3 down"), "");
    EXPECT_EQ(subnet.lids()[3].down, 1u);
    EXPECT_EQ(act("hca h1/coop0 down"), "");
    EXPECT_EQ(subnet.hcas()[2].down, 1u);
    EXPECT_EQ(act("hca h1/coop0 up"), "");
    EXPECT_EQ(subnet.hcas()[2].down, 0u);
    EXPECT_EQ(act("sm change"), "");
}

TEST_F(ActionsOnASubnet, set_faults) {
    EXPECT_EQ(act("fault h0/coop0/1 drop --after 5 --count 3"), "");
    EXPECT_EQ(act("fault link leaf0-spine0 corrupt --for 1s"), "");
    EXPECT_EQ(act("fault qp:0x12 kill-qp"), "");
    EXPECT_EQ(subnet.header().faults, 3u);
    const Fault& first = subnet.faults()[0];
    EXPECT_EQ(first.kind, FaultKind::drop);
    EXPECT_EQ(first.scope, FaultScope::port);
    EXPECT_EQ(first.after, 5);
    EXPECT_EQ(first.count, 3);
    EXPECT_EQ(subnet.faults()[1].target, 8u);
    EXPECT_NE(subnet.faults()[1].until_ns, 0);
    EXPECT_EQ(subnet.faults()[2].count, 1);
    EXPECT_EQ(target_name(subnet, subnet.faults()[2].scope, subnet.faults()[2].target), "QP 0x12");
    EXPECT_EQ(act("fault all late 20ms --count 2"), "");
    EXPECT_EQ(subnet.faults()[3].delay_ns, 20'000'000);
    EXPECT_EQ(subnet.faults()[3].count, 2);
    EXPECT_EQ(act("fault clear"), "");
    EXPECT_EQ(subnet.header().faults, 0u);
}

TEST_F(ActionsOnASubnet, are_refused_by_name_value_and_range) {
    EXPECT_EQ(act("prot h0 down"), "'prot' is not an action (port, link, lid, hca, sm, fault, kill)");
    EXPECT_EQ(act("port h9/coop0 down"),
              "there is no port 'h9/coop0' (h0/coop0/1, h0/coop1/1, h1/coop0/1, h1/coop1/1)");
    EXPECT_EQ(act("port h0/coop0 sideways"), "port: 'sideways' is not up, down, rate, latency or loss");
    EXPECT_EQ(act("port h0/coop0 rate 5"),
              "rate: '5' is not a rate such as 250MB/s, 2GB/s or 10Gbit/s, or 'unlimited'");
    EXPECT_EQ(act("port h0/coop0 down now"),
              "port: 'now' is unexpected (port HOST/HCA[/PORT] up|down|rate R|latency T|loss P)");
    EXPECT_EQ(act("link leaf0-leaf1 down"),
              "there is no cable 'leaf0-leaf1' (give A-B or A-B:K; the first cable: h0/coop0/1 -> leaf0)");
    EXPECT_EQ(act("link leaf1-spine1:3 down"), "leaf1-spine1:3, cable: '3' is not a whole number in 1..2");
    EXPECT_EQ(act("lid 0x99 down"), "no port has LID 0x99 (LIDs go up to 0x9)");
    EXPECT_EQ(act("lid 0x2 off"), "lid: 'off' is not 'up' or 'down'");
    EXPECT_EQ(act("hca h0 down"), "there is no HCA 'h0' (h0/coop0, h0/coop1, h1/coop0, h1/coop1)");
    EXPECT_EQ(act("fault h0/coop0 explode"),
              "fault, kind: 'explode' is not one of drop, corrupt, lose-ack, rnr, reorder, cut, mute-qp, "
              "mute-qp-for-good, late, ack-and-die, double, kill-qp, kill-process");
    EXPECT_EQ(act("fault link leaf1-spine1 drop"),
              "fault: there are 2 cables 'leaf1-spine1': say which, leaf1-spine1:1 to :2");
    EXPECT_EQ(act("fault all drop --count 0"), "fault: --count: '0' is not a whole number in 1..9223372036854775807");
    EXPECT_EQ(act("fault all cut --for 1s"),
              "fault: cut takes effect with the last of --count messages: give --count, too");
    EXPECT_EQ(act("fault all ack-and-die --for 1s"),
              "fault: ack-and-die takes effect with the last of --count messages: give --count, too");
    EXPECT_EQ(act("fault all late"), "fault, late: '' is not a time such as 800ns, 1.5us, 20ms or 2s");
    EXPECT_EQ(act("fault all late soon"), "fault, late: 'soon' is not a time such as 800ns, 1.5us, 20ms or 2s");
    EXPECT_EQ(act("fault all drop 20ms"),
              "fault: '20ms' is unexpected (fault TARGET KIND [--after N] [--count M] [--for T], fault TARGET late T "
              "…, or 'fault clear')");
    EXPECT_EQ(act("fault all drop --often"), "fault: there is no option '--often'");
    EXPECT_EQ(act("kill h7"), "there is no host 'h7' (h0, h1)");
    EXPECT_EQ(act("kill h1"), "kill: no process of host h1 is on the subnet");
}

TEST_F(ActionsOnASubnet, of_a_scenario_are_sorted_by_time_and_count) {
    Scenario scenario;
    ASSERT_EQ(
        parse(
            "# comment\nafter 900 messages lid 2 down\n\nat 2s port h0/coop0 up  # later\nat 1.5s port h0/coop0 down\n"
            "after 500 messages fault all rnr --count 20\n",
            scenario),
        "");
    ASSERT_EQ(scenario.events().size(), 4u);
    EXPECT_EQ(scenario.events()[0].line, 5);
    EXPECT_EQ(scenario.events()[0].at_ns, 1'500'000'000);
    EXPECT_EQ(scenario.events()[1].line, 4);
    EXPECT_EQ(scenario.events()[2].after_count, 500u);
    EXPECT_EQ(scenario.events()[3].line, 2);
}

TEST_F(ActionsOnASubnet, of_a_scenario_are_refused_with_their_line) {
    EXPECT_EQ(refused("at 1s port h0/coop0 down\nin 2s port h0/coop0 up"),
              "test:2: 'in' is neither 'at' nor 'after': a line is 'at TIME ACTION' or 'after N messages ACTION'");
    EXPECT_EQ(refused("at noon port h0/coop0 down"),
              "test:1: at: 'noon' is not a time such as 800ns, 1.5us, 20ms or 2s");
    EXPECT_EQ(refused("after 5 port h0/coop0 down"),
              "test:1: 'after' goes with a number and 'messages': after 500 messages …");
    EXPECT_EQ(refused("after five messages sm change"),
              "test:1: after: 'five' is not a whole number in 0..9223372036854775807");
    EXPECT_EQ(refused("\nat 1s"), "test:2: an action is missing (port, link, lid, hca, sm, fault, kill)");
    EXPECT_EQ(refused("at 1s cut everything"),
              "test:1: 'cut' is not an action (port, link, lid, hca, sm, fault, kill)");
    EXPECT_EQ(port(0).down, 0u);
}

TEST_F(ActionsOnASubnet, of_a_scenario_happen_at_their_time_and_count) {
    Scenario scenario;
    ASSERT_EQ(parse("at 0 lid 2 down\nat 20ms lid 2 up\nafter 3 messages lid 4 down\n", scenario), "");
    std::jthread runs([&](const std::stop_token& stop) { scenario.run(subnet, stop); });
    while (subnet.lids()[2].down == 0) std::this_thread::yield();
    EXPECT_EQ(subnet.lids()[4].down, 0u);
    port(0).counters.sent_messages.fetch_add(3);
    runs.join();
    EXPECT_EQ(subnet.lids()[2].down, 0u);
    EXPECT_EQ(subnet.lids()[4].down, 1u);
}

TEST_F(ActionsOnASubnet, of_a_scenario_end_when_told_to) {
    Scenario scenario;
    ASSERT_EQ(parse("at 1000s lid 2 down\n", scenario), "");
    {
        const std::jthread runs([&](const std::stop_token& stop) { scenario.run(subnet, stop); });
    }
    EXPECT_EQ(subnet.lids()[2].down, 0u);
}

}  // namespace
}  // namespace coop::fabric
