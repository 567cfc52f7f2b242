// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs that no longer complete anything. The specification requires a completion for each request (IBTA 10.8.1), but
// Soft-RoCE loses its timer in some states, and firmware hangs. What remains are the transition to the error state, which
// flushes (IBTA 10.3.1.6), and destruction, which discards (10.2.4.4).
#include "end.h"

using namespace verbstest;

namespace {

std::string name_of(std::uint32_t qpn) {
    char text[32];
    snprintf(text, sizeof text, "qp:0x%x", qpn);
    return text;
}

constexpr int kMuteMs = 150;  // much longer than the retries take

void post_three(Pair& pair) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
        pair.a.memory.fill(id, id * 64, 64);
        pair.b->receive(id, id * 64, 64);
    }
    pair.a.qp.receive(9, pair.a.memory.sge(4096, 64));
    for (std::uint64_t id = 1; id <= 3; ++id) pair.a.qp.post(send(id, pair.a.memory.sge(id * 64, 64)));
}

}  // namespace

CASE(mute_queue_pair_completes_nothing_before_the_error_state_and_is_flushed_there) {
    Pair pair;
    tool({"fault", name_of(pair.at_a.qpn), "mute-qp"});
    post_three(pair);
    pair.a.scq.expect_none(kMuteMs);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_RTS);
    CHECK(!pair.a.context.next_event(1));
    pair.b->expect_receive(1);  // executed, although it will be flushed
    pair.b->check(1, 64, 64);
    pair.b->expect_no_receive();
    CHECK_OK(pair.a.qp.to(IBV_QPS_ERR));
    for (std::uint64_t id = 1; id <= 3; ++id) pair.a.scq.expect(id, IBV_WC_WR_FLUSH_ERR);
    pair.a.rcq.expect(9, IBV_WC_WR_FLUSH_ERR);
    pair.a.scq.expect_none(1);
}

CASE(rule_for_a_port_mutes_the_sender) {
    Pair pair;
    tool({"fault", pair.b->port_name(), "mute-qp", "--after", "1"});
    pair.exchange(7);
    post_three(pair);
    pair.a.scq.expect_none(kMuteMs);
    CHECK_OK(pair.a.qp.to(IBV_QPS_ERR));
    for (std::uint64_t id = 1; id <= 3; ++id) pair.a.scq.expect(id, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(pair.b->query().qp_state, IBV_QPS_RTS);
}

CASE(mute_receiver_gives_no_answer) {
    Pair pair;
    tool({"fault", name_of(pair.at_b.qpn), "mute-qp"});
    post_three(pair);
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_no_receive();
    pair.b->check_untouched(64, 64);
    CHECK_EQ(pair.b->query().qp_state, IBV_QPS_RTS);
    CHECK_OK(pair.b->to(IBV_QPS_ERR));
    for (std::uint64_t id = 1; id <= 3; ++id) pair.b->expect_receive(id, IBV_WC_WR_FLUSH_ERR);
}

CASE(reset_ends_muteness) {
    Two two;
    tool({"fault", name_of(two.a.qp.number()), "mute-qp"});
    two.a.qp.post(write(1, two.a.memory.sge(0, 8), two.b.memory.remote()));
    two.a.scq.expect_none(kMuteMs);
    for (Node* node : {&two.a, &two.b}) CHECK_OK(node->qp.to(IBV_QPS_RESET));
    two.a.connect(two.b.address());
    two.b.connect(two.a.address(), reversed({}));
    two.a.qp.post(write(2, two.a.memory.sge(0, 8), two.b.memory.remote()));
    two.a.scq.expect(2);
}

CASE(queue_pair_that_is_mute_for_good_can_only_be_destroyed) {
    {
        Pair pair;
        tool({"fault", name_of(pair.at_a.qpn), "mute-qp-for-good"});
        post_three(pair);
        pair.a.scq.expect_none(kMuteMs);
        CHECK_OK(pair.a.qp.to(IBV_QPS_ERR));
        CHECK_EQ(pair.a.qp.state(), IBV_QPS_ERR);
        pair.a.scq.expect_none(kMuteMs);
        pair.a.rcq.expect_none(1);
        pair.b->expect_receive(1);
    }
    Pair pair;
    pair.exchange(1);
}

CASE(mute_datagram_queue_pair_completes_nothing) {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    pair.b->receive(1, 0, 256);
    const Ah ah(pair.a.pd, way_to(pair.at_b, {}, 1));
    Wr wr = send(1, pair.a.memory.sge(0, 64));
    wr.ah = ah;
    wr.qpn = pair.at_b.qpn;
    wr.qkey = kQkey;
    tool({"fault", name_of(pair.at_a.qpn), "mute-qp"});
    pair.a.qp.post(wr);
    pair.a.scq.expect_none(kMuteMs);
    pair.b->expect_receive(1);
    CHECK_OK(pair.a.qp.to(IBV_QPS_ERR));
    pair.a.scq.expect(1, IBV_WC_WR_FLUSH_ERR);
}
