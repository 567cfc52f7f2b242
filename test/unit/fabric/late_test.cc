// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that arrive when their sender has given up on them.
#include "fabric/engine/late.h"

#include <vector>

#include "test/unit/fabric/subnet.h"

namespace coop::fabric {
namespace {

std::unique_ptr<LateMessage> due_at(std::int64_t ns, std::uint64_t id) {
    auto message = std::make_unique<LateMessage>();
    message->due_ns = ns;
    message->work.wr_id = id;
    return message;
}

TEST(FabricLateMessages, are_taken_in_the_order_of_their_times_when_they_are_due) {
    LateMessages messages;
    messages.add(due_at(30, 1));
    messages.add(due_at(10, 2));
    messages.add(due_at(30, 3));
    messages.add(due_at(20, 4));
    EXPECT_EQ(messages.take(9), nullptr);
    std::vector<std::uint64_t> order;
    while (const auto message = messages.take(25)) order.push_back(message->work.wr_id);
    while (const auto message = messages.take(30)) order.push_back(message->work.wr_id);
    EXPECT_EQ(order, (std::vector<std::uint64_t>{2, 4, 1, 3}));
}

class FabricLate : public ::testing::Test {
protected:
    FabricLate() {
        clean_links(subnet);
        a.connect(b);
        b.connect(a);
        from.fill(1);
    }
    // A write of 1000 bytes, as it leaves a. Then a's memory changes.
    std::unique_ptr<LateMessage> captured_write() {
        SendWork work{};
        work.opcode = IBV_WR_RDMA_WRITE;
        work.bytes = 1000;
        work.packets = 1;
        work.first_psn = 100;
        work.remote_address = to.address();
        work.rkey = to.rkey();
        work.sges = 1;
        work.sge[0] = {from.address(), 1000, from.lkey()};
        auto message = capture(subnet, a.shared(), find_route(subnet, 0, a.shared().primary), work);
        from.fill(2);
        return message;
    }
    bool lands(const std::unique_ptr<LateMessage>& message) {
        deliver_late(subnet, test_client().process(), *message);
        TestMemory then(0, 1000);
        then.fill(1);
        return std::equal(then.bytes.begin(), then.bytes.end(), to.bytes.begin());
    }

    const Segment& subnet = test_client().subnet();
    TestQp a{0}, b{1};
    TestMemory from{0, 4096}, to{1, 4096};
    Completion done{};
};

TEST_F(FabricLate, message_has_the_data_that_it_left_with) {
    const auto message = captured_write();
    ASSERT_NE(message, nullptr);
    EXPECT_TRUE(lands(message));
    EXPECT_EQ(b.shared().expected_psn, 101u);
}

TEST_F(FabricLate, message_is_dropped_by_a_responder_that_cannot_receive) {
    for (const ibv_qp_state state : {IBV_QPS_ERR, IBV_QPS_RESET}) {
        b.to_state(state);
        EXPECT_FALSE(lands(captured_write()));
    }
}

TEST_F(FabricLate, message_is_dropped_by_a_responder_that_expects_another) {
    const auto message = captured_write();
    TestMemory other(0, 64);
    ASSERT_EQ(a.post(IBV_WR_RDMA_WRITE, 1, other, 8, &to), 0);
    ASSERT_EQ(a.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_FALSE(lands(message));
    EXPECT_EQ(b.shared().expected_psn, 101u);
}

TEST_F(FabricLate, message_is_dropped_at_a_port_that_is_down) {
    subnet.ports()[1].down = 1;
    EXPECT_FALSE(lands(captured_write()));
    clean_links(subnet);
}

TEST_F(FabricLate, rule_holds_the_message_back_until_its_sender_has_given_up) {
    Fault& fault = subnet.faults()[subnet.claim<Fault>(kFaults)];
    fault.kind = FaultKind::late;
    fault.scope = FaultScope::all;
    fault.after = 0;
    fault.until_ns = 0;
    fault.delay_ns = 20'000'000;
    fault.count = 1;
    subnet.header().faults.fetch_add(1);
    b.post_receive(7, to, 64);
    ASSERT_EQ(a.post(IBV_WR_SEND, 3, from, 64), 0);
    EXPECT_EQ(a.cq.wait(done), IBV_WC_RETRY_EXC_ERR);
    const std::int64_t given_up_ns = now_ns();
    EXPECT_TRUE(b.cq.is_empty());
    EXPECT_EQ(b.cq.wait(done), IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, 7u);
    EXPECT_GE(now_ns() - given_up_ns, 10'000'000);
}

}  // namespace
}  // namespace coop::fabric
