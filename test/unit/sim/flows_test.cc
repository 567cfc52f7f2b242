// SPDX-License-Identifier: BSD-3-Clause
#include "sim/flows.h"

#include <gtest/gtest.h>

#include "sim/network.h"
#include "sim/random.h"

namespace coop::sim {
namespace {

std::vector<LinkIndex> over(std::initializer_list<LinkIndex> links) { return links; }

TEST(SimFlows, one_flow_has_the_whole_of_its_slowest_link) {
    FairShare shares({10, 4, 7});
    const FlowIndex flow = shares.add(over({0, 1, 2}));
    shares.solve();
    EXPECT_DOUBLE_EQ(shares.rate(flow), 4);
}

// An example as in Bertsekas and Gallager, by hand: three flows share link 0, 1/3
// each; two share link 1, one of which has 1/3 already, so the other has 2/3.
TEST(SimFlows, unused_shares_go_to_other_flows) {
    FairShare shares({1, 1});
    const FlowIndex a = shares.add(over({0})), b = shares.add(over({0})), c = shares.add(over({0, 1})),
                    d = shares.add(over({1}));
    shares.solve();
    EXPECT_NEAR(shares.rate(a), 1.0 / 3, 1e-12);
    EXPECT_NEAR(shares.rate(b), 1.0 / 3, 1e-12);
    EXPECT_NEAR(shares.rate(c), 1.0 / 3, 1e-12);
    EXPECT_NEAR(shares.rate(d), 2.0 / 3, 1e-12);
}

TEST(SimFlows, a_flow_that_leaves_makes_room) {
    FairShare shares({6});
    const FlowIndex a = shares.add(over({0})), b = shares.add(over({0})), c = shares.add(over({0}));
    shares.solve();
    EXPECT_DOUBLE_EQ(shares.rate(a), 2);
    shares.remove(b);
    shares.solve();
    EXPECT_DOUBLE_EQ(shares.rate(a), 3);
    EXPECT_DOUBLE_EQ(shares.rate(c), 3);
    EXPECT_EQ(shares.flows_over(0), 2u);
}

// Two hosts (links 0 and 1) with two flows each: one over link 2, the other over link 3. The first host's flow over
// link 2 goes on over the slow link 4.
class SimBlocking : public testing::Test {
protected:
    std::vector<double> rates(Blocking blocking) {
        FairShare shares({10, 10, 10, 10, 1}, blocking);
        const FlowIndex flows[] = {shares.add(over({0, 2, 4})), shares.add(over({0, 3})), shares.add(over({1, 2})),
                                   shares.add(over({1, 3}))};
        shares.solve();
        std::vector<double> found;
        for (const FlowIndex flow : flows) found.push_back(shares.rate(flow));
        return found;
    }
};

TEST_F(SimBlocking, without_it_only_the_waiting_flow_is_slow) {
    EXPECT_EQ(rates(Blocking::kOff), (std::vector<double>{1, 5, 5, 5}));
}

TEST_F(SimBlocking, the_flows_of_a_host_have_the_rate_of_its_slowest) {
    EXPECT_EQ(rates(Blocking::kHosts), (std::vector<double>{1, 1, 5, 5}));
}

// The buffer at the end of link 2 is full, and so is the one at the end of host 1's link, whose other flow waits, too.
TEST_F(SimBlocking, waiting_packets_block_flows_through_the_same_buffers) {
    EXPECT_EQ(rates(Blocking::kCables), (std::vector<double>{1, 1, 1, 1}));
}

// Past its bottleneck a flow has few packets: nothing waits there.
TEST_F(SimBlocking, flows_past_the_bottleneck_are_not_blocked) {
    FairShare shares({10, 1, 10, 10}, Blocking::kCables);
    const FlowIndex slow = shares.add(over({0, 1, 2})), other = shares.add(over({3, 2}));
    shares.solve();
    EXPECT_DOUBLE_EQ(shares.rate(slow), 1);
    EXPECT_DOUBLE_EQ(shares.rate(other), 9);
}

// The definition of max-min: no link is overloaded, and each flow uses a full link
// on which no other flow has more.
TEST(SimFlows, random_flows_are_max_min_fair) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Random random(seed);
        std::vector<double> capacity;
        for (int i = 0; i < 12; ++i) capacity.push_back(1 + random.below(20));
        FairShare shares(capacity);
        for (int i = 0; i < 40; ++i) {
            std::vector<LinkIndex> links = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
            random.shuffle(links);
            links.resize(1 + random.below(5));
            shares.add(links);
        }
        shares.solve();
        std::vector<double> used(12, 0), most(12, 0);
        for (const FlowIndex flow : shares.active())
            for (const LinkIndex link : shares.links(flow)) {
                used[link] += shares.rate(flow);
                most[link] = std::max(most[link], shares.rate(flow));
            }
        for (int link = 0; link < 12; ++link) EXPECT_LE(used[link], capacity[link] * (1 + 1e-9)) << "seed " << seed;
        for (const FlowIndex flow : shares.active()) {
            bool held = false;
            for (const LinkIndex link : shares.links(flow))
                held |= used[link] > capacity[link] * (1 - 1e-9) && shares.rate(flow) >= most[link] * (1 - 1e-9);
            EXPECT_TRUE(held) << "flow " << flow << ", seed " << seed;
        }
    }
}

// --- flows in time -------------------------------------------------------------------------------------------------

class SimNetwork : public testing::Test {
protected:
    SimNetwork() : topology(make_fat_tree({{4}, {}}, {1e9, 1e9})), network(topology), routes(assign_lids(topology, 0)) {
        EXPECT_FALSE(compute(topology, Routing::kByDestination, 1, routes));
    }
    void begin(NodeIndex from, NodeIndex to, double bytes, std::uint32_t owner) {
        network.begin(trace(topology, routes, from, to, 0), bytes, owner);
    }

    // Exact slices, until nothing is in flight.
    std::vector<double> run() {
        std::vector<double> done(10, 0);
        double now_ns = 0;
        for (network.begin_slice(0); network.next_ns() < 1e18; network.begin_slice(now_ns)) {
            now_ns = network.next_ns();
            network.take_done(now_ns, [&](std::uint32_t owner, double at_ns) { done[owner] = at_ns; });
            network.end_slice(now_ns);
        }
        return done;
    }

    Topology topology;
    FlowNetwork network;
    Routes routes;
};

// Two flows to one host: half each until the short one ends, then the whole for the other.
TEST_F(SimNetwork, a_flow_speeds_up_when_the_other_is_done) {
    begin(0, 2, 1e6, 0);
    begin(1, 2, 3e6, 1);
    const std::vector<double> done = run();
    EXPECT_NEAR(done[0], 2e6, 1);
    EXPECT_NEAR(done[1], 4e6, 1);
}

TEST_F(SimNetwork, no_byte_is_lost_or_made) {
    for (std::uint32_t i = 0; i < 9; ++i) begin(i % 3, (i % 3 + 1 + i / 3 % 3) % 4, 1e5 * (i + 1), i);
    run();
    double sent = 0, received = 0;
    for (NodeIndex host = 0; host < 4; ++host) {
        sent += network.bytes_over(topology.host_link(host));
        received += network.bytes_over(reverse(topology.host_link(host)));
    }
    EXPECT_NEAR(sent, 45e5, 1e-3);
    EXPECT_NEAR(received, 45e5, 1e-3);
}

}  // namespace
}  // namespace coop::sim
