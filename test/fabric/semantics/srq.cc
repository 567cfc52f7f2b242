// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues (IBTA 10.2.9 shared receive queue, 11.2.3 verbs, 11.6.3 limit and last-WQE events).
#include "end.h"

using namespace verbstest;

namespace {

void need_srq() {
    if (!has_srq(Context())) skip("the device has no shared receive queues");
}

Pair::Options shared(std::uint32_t wrs = 32) {
    need_srq();
    Pair::Options options;
    options.b.srq_wrs = wrs;
    return options;
}

// Two connections with one shared receive queue; both sides are in this process.
struct Shared {
    Two two{shared()};
    Qp other_a{two.a.pd, two.a.scq, two.a.rcq}, other_b{two.b.pd, two.b.scq, two.b.rcq, {}, *two.b.srq};
    Srq& srq = *two.b.srq;

    Shared() {
        connect(two.b.context, other_b, address_of(two.a.context, other_a), reversed({}));
        connect(two.a.context, other_a, address_of(two.b.context, other_b));
    }
    void receive(std::uint64_t id) { srq.receive(id, two.b.memory.sge(id * 64, 64)); }
    void send_by(const Qp& qp, std::uint64_t id) {
        two.a.memory.fill(id, 0, 64);
        qp.post(send(id, two.a.memory.sge(0, 64)));
        two.a.scq.expect(id);
    }
};

}  // namespace

CASE(device_without_srq_refuses_to_make_one) {
    const Context context;
    if (has_srq(context)) skip("the device has shared receive queues");
    const Pd pd(context);
    ibv_srq_init_attr init{};
    init.attr = {16, 1, 0};
    errno = 0;
    CHECK(ibv_create_srq(pd, &init) == nullptr);
    CHECK(errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL);
    CHECK_EQ(context.device().max_srq_wr, 0);
}

CASE(srq_grants_and_reports_its_attributes) {
    need_srq();
    const Context context;
    const Pd pd(context);
    const Srq srq(pd, 20, 2);
    const ibv_srq_attr now = srq.query();
    CHECK_EQ(now.max_wr, srq.granted().max_wr);
    CHECK(now.max_sge >= 2);
    CHECK_EQ(now.srq_limit, 0);
    ibv_srq_init_attr init{};
    init.attr = {static_cast<std::uint32_t>(context.device().max_srq_wr) + 1, 1, 0};
    CHECK_NULL(ibv_create_srq(pd, &init), EINVAL);
    init.attr = {16, static_cast<std::uint32_t>(context.device().max_srq_sge) + 1, 0};
    CHECK_NULL(ibv_create_srq(pd, &init), EINVAL);
}

CASE(receives_are_shared_by_queue_pairs_in_order) {
    Shared s;
    for (std::uint64_t id = 0; id < 10; ++id) s.receive(id);
    for (std::uint64_t id = 0; id < 10; ++id) {
        const bool first = id % 3 == 0;
        s.send_by(first ? s.two.a.qp : s.other_a, id);
        const ibv_wc wc = s.two.b.rcq.expect(id);
        CHECK_EQ(wc.qp_num, first ? s.two.b.qp.number() : s.other_b.number());
        s.two.b.memory.check(id, id * 64, 64);
    }
}

CASE(empty_srq_is_a_receiver_not_ready) {
    Pair::Options options = shared();
    options.from_a.rnr_retry = 1;
    Pair pair(options);
    pair.exchange(1);
    pair.a.qp.post(send(2, pair.a.memory.sge(0, 8)));
    pair.a.scq.expect(2, IBV_WC_RNR_RETRY_EXC_ERR);
}

CASE(full_srq_refuses_with_enomem) {
    need_srq();
    Node node(shared(8).b);
    const std::uint32_t room = node.srq->granted().max_wr;
    for (std::uint32_t i = 0; i < room; ++i) node.srq->receive(i, node.memory.sge(0, 8));
    CHECK_ERROR(node.srq->try_receive(room, {node.memory.sge(0, 8)}), ENOMEM);
}

CASE(list_longer_than_granted_is_refused_by_srq) {
    need_srq();
    Node node(shared(8).b);
    CHECK_ERROR(node.srq->try_receive(1, std::vector<ibv_sge>(node.srq->granted().max_sge + 1, node.memory.sge(0, 8))),
                EINVAL);
}

// IBTA 11.4.1.2: an immediate error.
CASE(receive_on_a_queue_pair_with_srq_is_refused) {
    need_srq();
    Node node(shared().b);
    CHECK_OK(node.to_init());
    CHECK_ERROR(node.qp.try_receive(1, {node.memory.sge(0, 8)}), EINVAL);
}

CASE(queried_init_attributes_name_the_srq) {
    need_srq();
    Node node(shared().b);
    ibv_qp_init_attr init{};
    node.qp.query(&init);
    CHECK(init.srq == static_cast<ibv_srq*>(*node.srq));
    CHECK(node.qp->srq == init.srq);
}

CASE(srq_in_use_cannot_be_destroyed) {
    need_srq();
    Node node(shared().b);
    CHECK_ERROR(ibv_destroy_srq(*node.srq), EBUSY);
}

// IBTA 10.2.9.1: the event comes once, when fewer receives than the limit are left; then it must be armed again.
CASE(limit_event_comes_once_when_fewer_are_left) {
    Shared s;
    for (std::uint64_t id = 0; id < 10; ++id) s.receive(id);
    ibv_srq_attr attr{};
    attr.srq_limit = 7;
    CHECK_OK(s.srq.modify(attr, IBV_SRQ_LIMIT));
    CHECK_EQ(s.srq.query().srq_limit, 7);
    for (std::uint64_t id = 0; id < 3; ++id) s.send_by(s.other_a, id);  // 7 are left
    CHECK(!s.two.b.context.has_event(IBV_EVENT_SRQ_LIMIT_REACHED));
    s.send_by(s.two.a.qp, 3);
    CHECK(s.two.b.context.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED).element == static_cast<ibv_srq*>(s.srq));
    s.send_by(s.two.a.qp, 4);
    CHECK(!s.two.b.context.has_event(IBV_EVENT_SRQ_LIMIT_REACHED));
    CHECK_EQ(s.srq.query().srq_limit, 0);
    attr.srq_limit = 5;
    CHECK_OK(s.srq.modify(attr, IBV_SRQ_LIMIT));
    s.send_by(s.two.a.qp, 5);
    s.two.b.context.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED);
}

// If fewer are left already, the event comes at once (ConnectX), or with the next message (Soft-RoCE).
CASE(limit_armed_too_late_raises_the_event_all_the_same) {
    Shared s;
    for (std::uint64_t id = 0; id < 4; ++id) s.receive(id);
    ibv_srq_attr attr{};
    attr.srq_limit = 8;
    CHECK_OK(s.srq.modify(attr, IBV_SRQ_LIMIT));
    s.send_by(s.two.a.qp, 0);
    s.two.b.context.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED);
}

CASE(limit_beyond_the_size_is_refused) {
    Shared s;
    ibv_srq_attr attr{};
    attr.srq_limit = s.srq.granted().max_wr + 1;
    CHECK_ERROR(s.srq.modify(attr, IBV_SRQ_LIMIT), EINVAL);
}

CASE(srq_grows_if_the_device_can) {
    Shared s;
    s.receive(0);
    ibv_srq_attr attr{};
    attr.max_wr = s.srq.granted().max_wr * 2;
    const int result = s.srq.modify(attr, IBV_SRQ_MAX_WR);
    if ((s.two.b.context.device().device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0) {
        CHECK(result != 0);
    } else {
        CHECK_OK(result);
        CHECK(s.srq.query().max_wr >= attr.max_wr);
    }
    s.send_by(s.two.a.qp, 0);
    s.two.b.rcq.expect(0);
}

// IBTA 10.3.1.7, 11.6.3.1: a queue pair in Error takes no more receives from its shared receive queue, and an event
// reports that the last one it took has completed. The queue pairs that are not in Error continue.
CASE(queue_pair_in_error_says_when_its_last_receive_is_done) {
    Shared s;
    for (std::uint64_t id = 0; id < 4; ++id) s.receive(id);
    s.send_by(s.two.a.qp, 0);
    s.two.b.rcq.expect(0);
    CHECK_OK(s.two.b.qp.to(IBV_QPS_ERR));
    if (ground() == "nolastwqe") CHECK(!s.two.b.context.has_event(IBV_EVENT_QP_LAST_WQE_REACHED));
    else CHECK(s.two.b.context.wait_event(IBV_EVENT_QP_LAST_WQE_REACHED).element == static_cast<ibv_qp*>(s.two.b.qp));
    s.two.b.rcq.expect_none();  // no receive is flushed
    s.send_by(s.other_a, 1);
    s.two.b.rcq.expect(1);
    s.two.b.memory.check(1, 64, 64);
}

CASE(destroyed_queue_pair_leaves_the_receives_to_the_others) {
    need_srq();
    Two two(shared());
    {
        const Qp brief(two.b.pd, two.b.scq, two.b.rcq, {}, *two.b.srq);
        CHECK_OK(to_init(brief));
        two.b.srq->receive(1, two.b.memory.sge(0, 64));
    }
    two.a.memory.fill(1, 0, 64);
    two.a.qp.post(send(1, two.a.memory.sge(0, 64)));
    two.a.scq.expect(1);
    two.b.rcq.expect(1);
    two.b.memory.check(1, 0, 64);
}

CASE(message_longer_than_a_shared_receive_fails_one_queue_pair) {
    Shared s;
    s.receive(0);
    s.receive(1);
    s.two.a.qp.post(send(9, s.two.a.memory.sge(0, 65)));
    s.two.a.scq.expect(9, IBV_WC_REM_INV_REQ_ERR);
    const ibv_wc wc = s.two.b.rcq.expect(0, IBV_WC_LOC_LEN_ERR);
    CHECK_EQ(wc.qp_num, s.two.b.qp.number());
    s.send_by(s.other_a, 1);
    s.two.b.rcq.expect(1);
    s.two.b.memory.check(1, 64, 64);
}

CASE(datagrams_take_shared_receives) {
    Pair::Options options = shared();
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    const Ah ah(pair.a.pd, way_to(pair.at_b, {}, 1));
    pair.b->receive(1, 0, 1024);
    pair.a.memory.fill(1, 0, 64);
    Wr wr = send(1, pair.a.memory.sge(0, 64));
    wr.ah = ah;
    wr.qpn = pair.at_b.qpn;
    wr.qkey = kQkey;
    pair.a.qp.post(wr);
    pair.a.scq.expect(1);
    CHECK_EQ(pair.b->expect_receive(1).src_qp, pair.at_a.qpn);
    pair.b->check(1, sizeof(ibv_grh), 64);
}
