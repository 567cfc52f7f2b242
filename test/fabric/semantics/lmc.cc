// SPDX-License-Identifier: BSD-3-Clause
// Several LIDs of one port (IBTA 4.1.3 LID mask control, 7.11.1, 10.2.2.2 source path bits): base LID + k for k <
// 2^LMC.
#include "end.h"

using namespace verbstest;

namespace {

void need_lmc() {
    if (Context().port().lmc == 0) skip("LMC is 0");
}

int paths(const Address& address) { return 1 << address.lmc; }

}  // namespace

CASE(every_pair_of_lids_is_a_connection) {
    need_lmc();
    const Context context;
    for (int k = 0; k < 1 << context.port().lmc; ++k) {
        Pair::Options options;
        options.from_a.src_path_bits = options.from_b.src_path_bits = static_cast<std::uint8_t>(k);
        options.from_a.dlid_offset = options.from_b.dlid_offset = static_cast<std::uint16_t>(k);
        Pair pair(options);
        pair.exchange(static_cast<std::uint64_t>(k + 1));
        CHECK_EQ(pair.a.qp.query().ah_attr.src_path_bits, k);
        CHECK_EQ(pair.a.qp.query().ah_attr.dlid, pair.at_b.lid + k);
    }
}

// IBTA 11.6.3.3: the event concerns only the base LID. The loss of another LID of the port raises none.
CASE(only_the_base_lid_raises_an_event_when_it_changes) {
    need_lmc();
    const Context context;
    const int base = context.port().lid;
    {
        const Meanwhile down({"lid", std::to_string(base + 1), "down"}, {"lid", std::to_string(base + 1), "up"});
        CHECK(!context.has_event(IBV_EVENT_LID_CHANGE));
    }
    CHECK(!context.has_event(IBV_EVENT_LID_CHANGE));
    const Meanwhile down({"lid", std::to_string(base), "down"}, {"lid", std::to_string(base), "up"});
    CHECK_EQ(context.wait_event(IBV_EVENT_LID_CHANGE).port, 1);
}

CASE(datagram_tells_by_which_lids_it_came) {
    need_lmc();
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    std::uint64_t id = 1;
    for (int from = 0; from < paths(pair.at_a); ++from) {
        for (int to = 0; to < paths(pair.at_b); ++to) {
            Path path;
            path.src_path_bits = static_cast<std::uint8_t>(from);
            path.dlid_offset = static_cast<std::uint16_t>(to);
            const Ah ah(pair.a.pd, way_to(pair.at_b, path, 1));
            Wr wr = send(id, pair.a.memory.sge(0, 64));
            wr.ah = ah;
            wr.qpn = pair.at_b.qpn;
            wr.qkey = kQkey;
            pair.a.memory.fill(id, 0, 64);
            pair.b->receive(id, 0, 1024);
            pair.a.qp.post(wr);
            pair.a.scq.expect(id);
            const ibv_wc wc = pair.b->expect_receive(id);
            CHECK_EQ(wc.slid, pair.at_a.lid + from);
            CHECK_EQ(wc.dlid_path_bits, to);
            pair.b->check(id++, sizeof(ibv_grh), 64);
        }
    }
}

CASE(answer_by_the_completion_takes_the_same_lids_back) {
    need_lmc();
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Two two(options);
    Path path;
    path.src_path_bits = path.dlid_offset = 1;
    const Ah ah(two.a.pd, way_to(two.b.address(), path, 1));
    two.b.qp.receive(1, two.b.memory.sge(0, 256));
    Wr wr = send(1, two.a.memory.sge(0, 64));
    wr.ah = ah;
    wr.qpn = two.b.qp.number();
    wr.qkey = kQkey;
    two.a.qp.post(wr);
    two.a.scq.expect(1);
    ibv_wc wc = two.b.rcq.expect(1);
    ibv_ah_attr way{};
    CHECK_OK(ibv_init_ah_from_wc(two.b.context, 1, &wc, nullptr, &way));
    CHECK_EQ(way.dlid, two.a.address().lid + 1);
    CHECK_EQ(way.src_path_bits, 1);
}

CASE(lid_beyond_those_of_the_port_is_not_answered) {
    need_lmc();
    Pair::Options options;
    options.from_a.dlid_offset = static_cast<std::uint16_t>(1 << Context().port().lmc);
    Pair pair(options);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_no_receive(1);
}

CASE(lid_switched_off_leaves_the_other_alone) {
    need_lmc();
    Pair::Options options;
    options.from_a.dlid_offset = options.from_b.dlid_offset = 1;
    options.from_a.src_path_bits = options.from_b.src_path_bits = 1;
    Pair second(options), first;
    const std::string lid = std::to_string(second.at_b.lid + 1);
    const Meanwhile down({"lid", lid, "down"}, {"lid", lid, "up"});
    first.exchange(1);
    second.a.qp.post(write(1, second.a.memory.sge(0, 8), second.at_b.remote()));
    second.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    first.exchange(2);
}

// IBTA 9.6.1: the LIDs in the header of a packet must be those of the connection. The responder would answer on the right
// path, but it does not take the request.
CASE(request_from_another_lid_of_the_right_port_is_dropped) {
    Pair::Options options;
    options.from_a.src_path_bits = 1;  // b is connected to the base LID of a
    Pair pair(options);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_no_receive();
}

CASE(request_to_another_lid_of_the_right_port_is_dropped) {
    Pair::Options options;
    options.from_a.dlid_offset = 1;  // b sends from its base LID
    Pair pair(options);
    pair.b->receive(1, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    pair.b->expect_no_receive();
}
