// SPDX-License-Identifier: BSD-3-Clause
// Unreliable connections (IBTA 9.8.2): lost messages are lost silently, and the sender's completion does not show it.
#include "end.h"

using namespace verbstest;

namespace {

Pair::Options unreliable() {
    {
        const Context context;
        const Pd pd(context);
        const Cq cq(context, 4);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = {1, 1, 1, 1, 0};
        init.qp_type = IBV_QPT_UC;
        ibv_qp* qp = ibv_create_qp(pd, &init);
        if (qp == nullptr) skip("no unreliable connections");
        ibv_destroy_qp(qp);
    }
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UC;
    return options;
}

}  // namespace

CASE(send_and_write_arrive) {
    Pair pair(unreliable());
    std::uint64_t id = 1;
    for (std::size_t bytes : {0, 1, 256, 4097, 30000}) {
        pair.exchange(id, bytes, 16);
        pair.a.qp.post(write(100 + id, pair.a.memory.sge(16, bytes), pair.at_b.remote(32000)));
        pair.a.scq.expect(100 + id);
        pair.b->receive(200 + id, 0, 8);
        pair.a.qp.post(write_imm(200 + id, pair.a.memory.sge(16, bytes), pair.at_b.remote(32001), 5));
        pair.a.scq.expect(200 + id);
        CHECK_EQ(pair.b->expect_receive(200 + id).imm_data, __builtin_bswap32(5));
        pair.b->check(id++, 32001, bytes);
    }
}

CASE(message_without_a_receive_is_lost) {
    Pair pair(unreliable());
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1);
    pair.b->receive(5, 0, 64);
    pair.b->expect_no_receive();
    pair.a.memory.fill(2, 0, 64);
    pair.a.qp.post(send(2, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(2);
    pair.b->expect_receive(5);
    pair.b->check(2, 0, 64);
}

CASE(write_without_right_is_lost) {
    Pair pair(unreliable());
    Remote wrong = pair.at_b.remote();
    wrong.rkey ^= 0x5a5a5a;
    pair.a.qp.post({write(1, pair.a.memory.sge(0, 64), wrong),
                    write(2, pair.a.memory.sge(0, 64), pair.at_b.remote(pair.at_b.bytes - 63))});
    pair.a.scq.expect(1);
    pair.a.scq.expect(2);
    pair.b->check_untouched(0, pair.at_b.bytes);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_RTS);
}

CASE(message_to_a_port_that_is_down_is_lost) {
    Pair pair(unreliable());
    pair.b->receive(1, 0, 64);
    {
        const Meanwhile down({"port", pair.b->port_name(), "down"}, {"port", pair.b->port_name(), "up"});
        pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
        pair.a.scq.expect(1);
    }
    pair.b->expect_no_receive();
    pair.a.memory.fill(2, 0, 64);
    pair.a.qp.post(send(2, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(2);
    pair.b->expect_receive(1);
    pair.b->check(2, 0, 64);
}

// IBTA 10.2.2.3, table of operations per service: no READ, no atomics.
CASE(read_and_atomics_are_not_possible) {
    for (const bool reads : {true, false}) {
        Pair pair(unreliable());
        const ibv_sge here = pair.a.memory.sge(0, 8);
        const int result = pair.a.qp.try_post(reads ? read(1, here, pair.at_b.remote())
                                                    : fetch_add(1, here, pair.at_b.remote(), 1));
        if (result == 0) pair.a.scq.expect(1, IBV_WC_LOC_QP_OP_ERR);
        else CHECK_EQ(result, EINVAL);
    }
}

// IBTA 10.3.1.6: as with datagrams, a local error stops only the send queue.
CASE(local_error_stops_the_send_queue_alone) {
    Pair pair(unreliable());
    ibv_sge wrong = pair.a.memory.sge(0, 64);
    wrong.lkey ^= 0x5a5a5a;
    pair.a.qp.receive(9, pair.a.memory.sge(1024, 64));
    pair.a.qp.post({write(1, wrong, pair.at_b.remote()), write(2, pair.a.memory.sge(0, 64), pair.at_b.remote())});
    pair.a.scq.expect(1, IBV_WC_LOC_PROT_ERR);
    pair.a.scq.expect(2, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_SQE);
    pair.b->post_send(3, 0, 64);
    pair.b->expect_send(3);
    pair.a.rcq.expect(9);
    CHECK_OK(pair.a.qp.to(IBV_QPS_RTS));
    pair.exchange(4);
}
