// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of the subnet that go down while packets are under way: what arrives, and
// what the requester hears of it.
#include <thread>

#include "fabric/engine/faults.h"
#include "fabric/engine/outage.h"
#include "test/unit/fabric/subnet.h"

namespace coop::fabric {
namespace {

constexpr std::int64_t kStart = 1'000'000, kLatency = 1000, kOnLink = 500;  // ns

// A chunk from port 0 over the switch to port 1: it is on the first link from kStart until kStart + 1500, on the second
// from kStart + 1000 until kStart + 2500, its last byte arrives then.
class FabricOutage : public ::testing::Test {
protected:
    FabricOutage() {
        clean_links(subnet);
        for (Link& link : subnet.links()) link.latency_ns = kLatency;
        route = find_route(subnet, 0, lid_of(0), lid_of(1));
    }
    ~FabricOutage() override { clean_links(subnet); }

    std::uint16_t lid_of(std::uint32_t port) const { return static_cast<std::uint16_t>(subnet.ports()[port].lid); }
    Link& link(std::uint32_t hop) { return subnet.links()[route.links[hop]]; }
    // Whether the chunk arrives if the element is down from `cut_ns` until `back_ns` (after kStart); 0: for good.
    template <class Element>
    bool passes(Element& element, std::int64_t cut_ns, std::int64_t back_ns = 0) {
        element.outage.cut_ns = kStart + cut_ns;
        subnet.header().last_change_ns = kStart + (back_ns == 0 ? cut_ns : back_ns);
        element.outage.back_ns = back_ns == 0 ? 0 : kStart + back_ns;
        element.down = back_ns == 0 ? 1 : 0;
        const bool passed = survives(subnet, route, kStart, kOnLink, kStart + kOnLink + 2 * kLatency);
        element.down = 0;
        element.outage.cut_ns = element.outage.back_ns = 0;
        return passed;
    }

    const Segment& subnet = test_client().subnet();
    Route route;
};

TEST_F(FabricOutage, chunk_that_has_passed_the_cable_before_it_is_pulled_arrives) {
    ASSERT_EQ(route.hops, 2u);
    EXPECT_FALSE(passes(link(0), 10));
    EXPECT_FALSE(passes(link(0), 1400));
    EXPECT_TRUE(passes(link(0), 1600));
    EXPECT_FALSE(passes(link(1), 10));
    EXPECT_FALSE(passes(link(1), 2400));
    EXPECT_TRUE(passes(link(1), 2600));
}

TEST_F(FabricOutage, port_and_hca_take_their_cable_with_them) {
    Port &from = subnet.ports()[0], &to = subnet.ports()[1];
    EXPECT_FALSE(passes(from, 1400));
    EXPECT_TRUE(passes(from, 1600));
    EXPECT_FALSE(passes(to, 600));
    EXPECT_FALSE(passes(to, 2400));
    EXPECT_TRUE(passes(to, 2600));
    EXPECT_TRUE(passes(to, 100, 900));  // back before the chunk is on its cable
    EXPECT_FALSE(passes(subnet.hcas()[0], 1400));
    EXPECT_TRUE(passes(subnet.hcas()[0], 1600));
    EXPECT_FALSE(passes(subnet.hcas()[1], 2400));
}

TEST_F(FabricOutage, lids_matter_while_the_chunk_leaves_and_while_it_arrives) {
    EXPECT_FALSE(passes(subnet.lids()[lid_of(0)], 400));
    EXPECT_TRUE(passes(subnet.lids()[lid_of(0)], 600));
    EXPECT_FALSE(passes(subnet.lids()[lid_of(1)], 600));
}

TEST_F(FabricOutage, short_outage_loses_what_passes_meanwhile) {
    EXPECT_FALSE(passes(link(1), 1200, 1300));
    EXPECT_TRUE(passes(link(1), 100, 900));     // over before the chunk comes
    EXPECT_TRUE(passes(link(1), 2600, 2700));   // begins after the chunk has passed
    EXPECT_FALSE(passes(link(1), -500, 1100));  // from before the chunk began until it is there
}

TEST_F(FabricOutage, present_state_decides_if_nothing_changed_since_the_chunk_began) {
    EXPECT_TRUE(survives(subnet, route, kStart, kOnLink, kStart + 2500));
    EXPECT_FALSE(passes(link(0), -10));
    EXPECT_TRUE(passes(link(0), -10, -5));
}

// Between two queue pairs of this process.
class FabricCut : public ::testing::Test {
protected:
    FabricCut() {
        clean_links(subnet);
        from.fill(1);
    }
    ~FabricCut() override { clean_links(subnet); }
    void connect(std::uint8_t timeout, std::uint8_t retries) {
        a.connect(b, timeout, retries);
        b.connect(a, timeout, retries);
    }
    void set_rule(FaultKind kind, std::int64_t count) {
        Fault& fault = subnet.faults()[subnet.claim<Fault>(kFaults)];
        fault.kind = kind;
        fault.scope = FaultScope::qp;
        fault.target = a.shared().number;
        fault.after = 0;
        fault.until_ns = 0;
        fault.count = count;
        subnet.header().faults.fetch_add(1);
    }

    const Segment& subnet = test_client().subnet();
    TestQp a{0}, b{1};
    TestMemory from{0, 4096}, to{1, 4096};
    Completion done{};
};

TEST_F(FabricCut, acknowledgement_that_is_under_way_when_the_cable_is_pulled_is_lost) {
    connect(1, 2);
    subnet.links()[subnet.ports()[0].link_in].latency_ns = 100'000'000;  // of the acknowledgement
    b.post_receive(7, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    set_port(subnet, 0, false);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(b.cq.is_empty());
    set_port(subnet, 0, true);
}

TEST_F(FabricCut, acknowledgement_lost_in_a_short_outage_is_asked_for_again) {
    connect(12, 7);
    subnet.links()[subnet.ports()[0].link_in].latency_ns = 50'000'000;
    b.post_receive(7, to, 64);
    b.post_receive(8, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    ASSERT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    set_port(subnet, 0, false);
    set_port(subnet, 0, true);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_TRUE(b.cq.is_empty());
    EXPECT_EQ(b.shared().duplicates, 1u);
}

TEST_F(FabricCut, rule_executes_its_messages_and_takes_the_port_down) {
    connect(8, 1);
    set_rule(FaultKind::cut, 2);
    for (std::uint64_t i = 0; i < 3; ++i) b.post_receive(i, to, 64);
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(a.post(IBV_WR_SEND, 10 + i, from, 64), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(done.wr_id, 10u);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_TRUE(b.cq.is_empty());
    EXPECT_EQ(subnet.ports()[1].down, 1u);
    EXPECT_EQ(subnet.header().faults, 0u);
}

TEST_F(FabricCut, later_acknowledgement_includes_the_lost_one) {
    connect(18, 7);  // the timer takes a second
    set_rule(FaultKind::cut, 2);
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, from, 64, &to), 0);
    EXPECT_TRUE(a.cq.is_empty());
    for (Fault& fault : subnet.faults()) fault.count = 0;
    clear_spent_faults(subnet);
    const std::int64_t start = now_ns();
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 2, from, 64, &to), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, 1u);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_LT(now_ns() - start, 1'000'000'000);
    EXPECT_EQ(b.shared().duplicates, 0u);
}

TEST_F(FabricCut, acknowledged_messages_are_lost_with_the_hca) {
    connect(8, 1);
    for (Link& link : subnet.links())
        link.latency_ns = 5'000'000;  // the HCA is down before the acknowledgement arrives
    set_rule(FaultKind::ack_and_die, 2);
    b.post_receive(7, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 1, from, 64), 0);
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 2, from, 64, &to), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(b.cq.wait(done), IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(done.wr_id, 7u);
    EXPECT_EQ(subnet.hcas()[1].down, 1u);
    EXPECT_EQ(to.bytes[0], 0);
}

}  // namespace
}  // namespace coop::fabric
