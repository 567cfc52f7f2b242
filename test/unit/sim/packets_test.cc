// SPDX-License-Identifier: BSD-3-Clause
#include "sim/packets.h"

#include <gtest/gtest.h>

namespace coop::sim {
namespace {

// One switch, 1 GB/s on each cable: a byte takes 1 ns, a packet 2048 ns.
class Wires {
public:
    explicit Wires(const PacketRules& rules)
        : topology(make_fat_tree({{5}, {}}, {1e9, 1e9})), network(topology, rules), routes(assign_lids(topology, 0)) {
        EXPECT_FALSE(compute(topology, Routing::kByDestination, 1, routes));
        network.begin_slice(0);
    }
    FlowIndex begin(NodeIndex from, NodeIndex to, double bytes, std::uint32_t owner) {
        return network.begin(trace(topology, routes, from, to, 0), bytes, owner);
    }
    // The times of completion, until nothing is in flight; 0: never.
    std::vector<double> run(double until_ns = 1e18) {
        while (network.next_ns() < until_ns) {
            const double now_ns = network.next_ns();
            network.begin_slice(now_ns);
            network.take_done(now_ns, [&](std::uint32_t owner, double at_ns) { done[owner] = at_ns; });
            network.end_slice(now_ns);
        }
        return done;
    }

    Topology topology;
    PacketNetwork network;
    Routes routes;
    std::vector<double> done = std::vector<double>(10, 0);
};

TEST(SimPackets, one_message_takes_its_bytes_and_one_packet_more_for_the_switch) {
    Wires wires({2048, 16384, Queues::kInput});
    wires.begin(0, 1, 100 * 2048, 0);
    EXPECT_NEAR(wires.run()[0], 101 * 2048, 1e-6);
}

TEST(SimPackets, the_last_packet_may_be_short) {
    Wires wires({2048, 16384, Queues::kInput});
    wires.begin(0, 1, 2048 + 10, 0);
    EXPECT_NEAR(wires.run()[0], 2048 + 2048 + 10, 1e-6);
}

TEST(SimPackets, two_into_one_host_have_half_of_it_each) {
    for (const Queues queues : {Queues::kInput, Queues::kOutput}) {
        Wires wires({2048, 16384, queues});
        wires.begin(0, 2, 1e6, 0);
        wires.begin(1, 2, 3e6, 1);
        wires.run();
        EXPECT_NEAR(wires.done[0], 2e6, 4 * 2048);
        EXPECT_NEAR(wires.done[1], 4e6, 4 * 2048);
    }
}

// Three hosts send to host 2, one of them also to host 3. With one queue, its flow to
// host 3 waits for the one to host 2 and is no faster; otherwise it has the remaining
// half of its host's cable.
TEST(SimPackets, a_waiting_packet_blocks_those_after_it_in_one_queue) {
    const auto third_flow = [](const PacketRules& rules) {
        Wires wires(rules);
        for (const NodeIndex from : {0u, 1u, 4u}) wires.begin(from, 2, 6e5, from);
        wires.begin(0, 3, 3e5, 5);
        return wires.run()[5];
    };
    EXPECT_NEAR(third_flow({2048, 16384, Queues::kInput}), 9e5, 1.5e4);
    EXPECT_NEAR(third_flow({2048, 1'000'000, Queues::kOutput}), 6e5, 1e4);
    // When waiting packets have filled the space, the rate is as with one queue, except for packets that passed before.
    EXPECT_NEAR(third_flow({2048, 16384, Queues::kOutput}), 9e5, 6e4);
}

TEST(SimPackets, no_byte_is_lost_or_made) {
    Wires wires({1024, 4096, Queues::kInput});
    for (std::uint32_t i = 0; i < 9; ++i) wires.begin(i % 3, (i % 3 + 1 + i / 3 % 3) % 4, 1e5 * (i + 1), i);
    wires.run();
    double sent = 0, received = 0;
    for (NodeIndex host = 0; host < 5; ++host) {
        sent += wires.network.bytes_over(wires.topology.host_link(host));
        received += wires.network.bytes_over(reverse(wires.topology.host_link(host)));
    }
    EXPECT_EQ(sent, 45e5);
    EXPECT_EQ(received, 45e5);
    for (std::uint32_t i = 0; i < 9; ++i) EXPECT_GT(wires.done[i], 0) << i;
}

TEST(SimPackets, cut_flows_never_complete_and_others_do) {
    Wires wires({2048, 16384, Queues::kInput});
    const FlowIndex flow = wires.begin(0, 2, 1e6, 0);
    wires.begin(0, 3, 1e6, 1);
    wires.run(3e5);
    const LinkIndex cable = wires.topology.host_link(0);
    EXPECT_EQ(wires.network.flows_over(cable).size(), 2u);
    wires.network.cut(flow);
    EXPECT_EQ(wires.network.flows_over(cable).size(), 1u);
    wires.run();
    EXPECT_EQ(wires.done[0], 0);
    EXPECT_NEAR(wires.done[1], 1.15e6, 1e4);  // half of the cable for 0.3 ms, then all of it
    EXPECT_LT(std::max(wires.begin(0, 2, 1e4, 2), wires.begin(0, 3, 1e4, 3)), 2u);  // their numbers are reused
    wires.run();
    EXPECT_GT(wires.done[2], 0);
    EXPECT_GT(wires.done[3], 0);
}

}  // namespace
}  // namespace coop::sim
