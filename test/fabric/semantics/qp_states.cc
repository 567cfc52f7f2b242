// SPDX-License-Identifier: BSD-3-Clause
// The state machine of a queue pair (IBTA 10.3.1 states and transitions, 11.2.5.2 Modify QP and its tables of
// attributes).
#include <map>
#include <set>

#include "end.h"

using namespace verbstest;

namespace {

const char* name(ibv_qp_state state) {
    constexpr const char* names[] = {"Reset", "Init", "RTR", "RTS", "SQD", "SQE", "Error"};
    return names[state];
}

// The attributes that a transition requires (IBTA 11.2.5.2, table of required attributes; Linux requires the same).
int required(ibv_qp_type type, ibv_qp_state to) {
    switch (to) {
    case IBV_QPS_INIT:
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
        if (type == IBV_QPT_UD) return 0;
        return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               (type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
        return IBV_QP_SQ_PSN |
               (type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                   : 0);
    default: return 0;
    }
}

struct Subject {
    Node node;

    static Shape shape_of(ibv_qp_type type) {
        Shape shape;
        shape.qp.type = type;
        return shape;
    }
    explicit Subject(ibv_qp_type type) : node(shape_of(type)) {}

    ibv_qp_type type() const { return node.qp->qp_type; }

    // Attributes for every transition: the queue pair is connected to itself.
    ibv_qp_attr attributes(ibv_qp_state to) const {
        const Address self = node.address();
        ibv_qp_attr attr{};
        attr.qp_state = to;
        attr.port_num = 1;
        attr.qp_access_flags = kAllAccess;
        attr.qkey = kQkey;
        attr.ah_attr = way_to(self, {}, 1);
        attr.path_mtu = self.mtu;
        attr.dest_qp_num = self.qpn;
        attr.max_dest_rd_atomic = 1;
        attr.max_rd_atomic = 1;
        attr.min_rnr_timer = 12;
        attr.timeout = 8;
        attr.retry_cnt = 2;
        attr.rnr_retry = 1;
        return attr;
    }
    int step(ibv_qp_state from, ibv_qp_state to) const {
        // Transitions to RTS from SQD, SQE or RTS require no attributes.
        const int more = to == IBV_QPS_RTS && from != IBV_QPS_RTR ? 0 : required(type(), to);
        return node.qp.modify(attributes(to), IBV_QP_STATE | more);
    }
    void bring_to(ibv_qp_state state) const {
        CHECK_OK(node.qp.to(IBV_QPS_RESET));
        if (state == IBV_QPS_RESET) return;
        CHECK_OK(step(IBV_QPS_RESET, IBV_QPS_INIT));
        if (state == IBV_QPS_INIT) return;
        if (state == IBV_QPS_ERR) {
            CHECK_OK(node.qp.to(IBV_QPS_ERR));
            return;
        }
        CHECK_OK(step(IBV_QPS_INIT, IBV_QPS_RTR));
        if (state == IBV_QPS_RTR) return;
        CHECK_OK(step(IBV_QPS_RTR, IBV_QPS_RTS));
        if (state == IBV_QPS_SQD) CHECK_OK(node.qp.to(IBV_QPS_SQD));
    }
};

const std::map<ibv_qp_state, std::set<ibv_qp_state>> kLegal = {
    {IBV_QPS_RESET, {IBV_QPS_RESET, IBV_QPS_INIT}},
    {IBV_QPS_INIT, {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_ERR}},
    {IBV_QPS_RTR, {IBV_QPS_RESET, IBV_QPS_RTS, IBV_QPS_ERR}},
    {IBV_QPS_RTS, {IBV_QPS_RESET, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}},
    {IBV_QPS_SQD, {IBV_QPS_RESET, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}},
    {IBV_QPS_ERR, {IBV_QPS_RESET, IBV_QPS_ERR}},
};

void follow_the_table(ibv_qp_type type) {
    const Subject subject(type);
    for (const auto& [from, legal] : kLegal) {
        for (const ibv_qp_state to :
             {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR}) {
            // Linux does not permit this one; the specification has "any state to Error".
            if (from == IBV_QPS_RESET && to == IBV_QPS_ERR) continue;
            subject.bring_to(from);
            CHECK_EQ(subject.node.qp.state(), from);
            const int result = subject.step(from, to), expected = legal.count(to) == 0 ? EINVAL : 0;
            if (result != expected)
                fail(__FILE__, __LINE__,
                     std::string(name(from)) + " to " + name(to) + " gave " + std::to_string(result) + ", expected " +
                         std::to_string(expected));
            CHECK_EQ(subject.node.qp.state(), expected == 0 ? to : from);
        }
    }
}

void insist_on_attributes(ibv_qp_type type) {
    const Subject subject(type);
    const std::pair<ibv_qp_state, ibv_qp_state> steps[] = {
        {IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR}, {IBV_QPS_RTR, IBV_QPS_RTS}};
    for (const auto& [from, to] : steps) {
        const int all = required(type, to);
        for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
            if ((all & bit) == 0) continue;
            subject.bring_to(from);
            const int result = subject.node.qp.modify(subject.attributes(to), IBV_QP_STATE | (all & ~bit));
            if (result != EINVAL)
                fail(__FILE__, __LINE__,
                     std::string(name(from)) + " to " + name(to) + " without attribute " + std::to_string(bit) +
                         " gave " + std::to_string(result));
            CHECK_EQ(subject.node.qp.state(), from);
        }
    }
}

}  // namespace

CASE(rc_transitions_follow_the_table) { follow_the_table(IBV_QPT_RC); }
CASE(uc_transitions_follow_the_table) { follow_the_table(IBV_QPT_UC); }
CASE(ud_transitions_follow_the_table) { follow_the_table(IBV_QPT_UD); }
CASE(rc_required_attributes_are_insisted_on) { insist_on_attributes(IBV_QPT_RC); }
CASE(uc_required_attributes_are_insisted_on) { insist_on_attributes(IBV_QPT_UC); }
CASE(ud_required_attributes_are_insisted_on) { insist_on_attributes(IBV_QPT_UD); }

CASE(attributes_out_of_place_are_refused) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_INIT);
    ibv_qp_attr attr = subject.attributes(IBV_QPS_RTR);
    const int rtr = IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_RTR);
    CHECK_ERROR(subject.node.qp.modify(attr, rtr | IBV_QP_TIMEOUT), EINVAL);
    CHECK_ERROR(subject.node.qp.modify(attr, rtr | IBV_QP_SQ_PSN), EINVAL);
    CHECK_ERROR(subject.node.qp.modify(attr, rtr | IBV_QP_QKEY), EINVAL);
    CHECK_OK(subject.node.qp.modify(attr, rtr));
    attr = subject.attributes(IBV_QPS_RTS);
    const int rts = IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_RTS);
    CHECK_ERROR(subject.node.qp.modify(attr, rts | IBV_QP_RQ_PSN), EINVAL);
    CHECK_ERROR(subject.node.qp.modify(attr, rts | IBV_QP_DEST_QPN), EINVAL);
    CHECK_OK(subject.node.qp.modify(attr, rts));
    CHECK_ERROR(subject.node.qp.modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
    CHECK_ERROR(subject.node.qp.modify(attr, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL);
}

CASE(attributes_out_of_range_are_refused) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_RESET);
    const int init = IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_INIT);
    ibv_qp_attr attr = subject.attributes(IBV_QPS_INIT);
    attr.port_num = static_cast<std::uint8_t>(subject.node.context.device().phys_port_cnt + 1);
    CHECK_ERROR(subject.node.qp.modify(attr, init), EINVAL);
    attr.port_num = 0;
    CHECK_ERROR(subject.node.qp.modify(attr, init), EINVAL);
    attr = subject.attributes(IBV_QPS_INIT);
    attr.pkey_index = subject.node.context.port().pkey_tbl_len;
    CHECK_ERROR(subject.node.qp.modify(attr, init), EINVAL);
    subject.bring_to(IBV_QPS_INIT);
    const int rtr = IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_RTR);
    attr = subject.attributes(IBV_QPS_RTR);
    attr.path_mtu = static_cast<ibv_mtu>(6);
    CHECK_ERROR(subject.node.qp.modify(attr, rtr), EINVAL);
    attr = subject.attributes(IBV_QPS_RTR);
    const int most = subject.node.context.device().max_qp_rd_atom;
    if (most < 255) {
        attr.max_dest_rd_atomic = static_cast<std::uint8_t>(most + 1);
        CHECK_ERROR(subject.node.qp.modify(attr, rtr), EINVAL);
    }
    subject.bring_to(IBV_QPS_RTR);
    attr = subject.attributes(IBV_QPS_RTS);
    const int initiated = subject.node.context.device().max_qp_init_rd_atom;
    if (initiated < 255) {
        attr.max_rd_atomic = static_cast<std::uint8_t>(initiated + 1);
        CHECK_ERROR(subject.node.qp.modify(attr, IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_RTS)), EINVAL);
    }
    CHECK_EQ(subject.node.qp.state(), IBV_QPS_RTR);
}

CASE(optional_attributes_change_without_a_transition) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_RTS);
    ibv_qp_attr attr = subject.attributes(IBV_QPS_RTS);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    attr.min_rnr_timer = 20;
    CHECK_OK(subject.node.qp.modify(attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER));
    CHECK_EQ(subject.node.qp.query().min_rnr_timer, 20);
    CHECK_EQ(subject.node.qp.query().qp_access_flags & kAllAccess & ~IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ);
}

// IBTA 11.2.5.2: the consumer may pass the state in which it believes the queue pair to be.
CASE(wrong_current_state_is_refused) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_RTS);
    ibv_qp_attr attr = subject.attributes(IBV_QPS_RTS);
    attr.cur_qp_state = IBV_QPS_INIT;
    CHECK_ERROR(subject.node.qp.modify(attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
    attr.cur_qp_state = IBV_QPS_RTS;
    CHECK_OK(subject.node.qp.modify(attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
}

CASE(query_returns_what_was_set) {
    const Subject subject(IBV_QPT_RC);
    const Qp& qp = subject.node.qp;
    const Address self = subject.node.address();
    const ibv_device_attr device = subject.node.context.device();
    CHECK_EQ(qp.query().qp_state, IBV_QPS_RESET);
    ibv_qp_attr attr = subject.attributes(IBV_QPS_INIT);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    CHECK_OK(qp.modify(attr, IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_INIT)));
    CHECK_EQ(qp.query().qp_state, IBV_QPS_INIT);
    CHECK_EQ(qp.query().port_num, 1);
    CHECK_EQ(qp.query().pkey_index, 0);
    attr = subject.attributes(IBV_QPS_RTR);
    attr.ah_attr.sl = 3;
    attr.path_mtu = IBV_MTU_512;
    attr.dest_qp_num = self.qpn;
    attr.rq_psn = 0xabcdef;
    attr.min_rnr_timer = 17;
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(device.max_qp_rd_atom);
    CHECK_OK(qp.modify(attr, IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_RTR)));
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0x123456;
    attr.timeout = 14;
    attr.retry_cnt = 5;
    attr.rnr_retry = 6;
    attr.max_rd_atomic = 1;
    CHECK_OK(qp.modify(attr, IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_RTS)));
    const ibv_qp_attr now = qp.query();
    CHECK_EQ(now.qp_state, IBV_QPS_RTS);
    CHECK_EQ(now.cur_qp_state, IBV_QPS_RTS);
    CHECK_EQ(now.path_mtu, IBV_MTU_512);
    CHECK_EQ(now.dest_qp_num, self.qpn);
    CHECK_EQ(now.rq_psn, 0xabcdef);
    CHECK_EQ(now.sq_psn, 0x123456);
    CHECK_EQ(now.min_rnr_timer, 17);
    CHECK_EQ(now.timeout, 14);
    CHECK_EQ(now.retry_cnt, 5);
    CHECK_EQ(now.rnr_retry, 6);
    CHECK_EQ(now.max_rd_atomic, 1);
    CHECK_EQ(now.max_dest_rd_atomic, device.max_qp_rd_atom);
    CHECK_EQ(now.ah_attr.sl, 3);
    CHECK_EQ(now.ah_attr.dlid, attr.ah_attr.dlid);
    CHECK_EQ(now.ah_attr.port_num, 1);
    CHECK_EQ(now.ah_attr.is_global, attr.ah_attr.is_global);
    CHECK_EQ(now.path_mig_state, IBV_MIG_MIGRATED);  // the initial state (IBTA 17.2.8.1)
    CHECK_EQ(now.sq_draining, 0);
    CHECK_EQ(now.qp_access_flags & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

// --- creation -------------------------------------------------------------------------------------------------------

CASE(capabilities_granted_are_at_least_those_asked_for_and_queried) {
    const Context context;
    const Pd pd(context);
    const Cq cq(context, 64);
    const QpShape shape{IBV_QPT_RC, 33, 17, 1, 0, 1};
    int marker = 0;
    ibv_qp_init_attr init{};
    init.qp_context = &marker;
    init.send_cq = init.recv_cq = cq;
    init.cap = {shape.send_wrs, shape.recv_wrs, shape.sges, shape.sges, 8};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    ibv_qp* raw = ibv_create_qp(pd, &init);
    CHECK(raw != nullptr);
    const Qp qp(raw);
    CHECK(init.cap.max_send_wr >= 33);
    CHECK(init.cap.max_recv_wr >= 17);
    CHECK(init.cap.max_send_sge >= 1);
    CHECK(init.cap.max_recv_sge >= 1);
    CHECK(init.cap.max_inline_data >= 8);
    CHECK(qp->qp_context == &marker);
    CHECK(qp->send_cq == cq && qp->recv_cq == cq && qp->pd == pd && qp->context == context);
    CHECK_EQ(qp->srq == nullptr, true);
    CHECK(qp.number() > 1 && qp.number() < 1u << 24);  // 0 and 1 are the management queue pairs (IBTA 3.5.10)
    ibv_qp_init_attr queried{};
    const ibv_qp_attr attr = qp.query(&queried);
    CHECK_EQ(queried.cap.max_send_wr, init.cap.max_send_wr);
    CHECK_EQ(queried.cap.max_recv_wr, init.cap.max_recv_wr);
    CHECK_EQ(queried.cap.max_inline_data, init.cap.max_inline_data);
    CHECK_EQ(attr.cap.max_send_wr, init.cap.max_send_wr);
    CHECK_EQ(queried.sq_sig_all, 1);
    CHECK_EQ(queried.qp_type, IBV_QPT_RC);
    CHECK(queried.send_cq == cq && queried.recv_cq == cq && queried.qp_context == &marker);
}

CASE(capabilities_beyond_the_device_are_refused) {
    const Context context;
    const Pd pd(context);
    const Cq cq(context, 64);
    const ibv_device_attr device = context.device();
    const auto refused = [&](ibv_qp_cap cap) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = cap;
        init.qp_type = IBV_QPT_RC;
        errno = 0;
        CHECK(ibv_create_qp(pd, &init) == nullptr);
        CHECK(errno == EINVAL || errno == ENOMEM);
    };
    refused({static_cast<std::uint32_t>(device.max_qp_wr) + 1, 1, 1, 1, 0});
    refused({1, static_cast<std::uint32_t>(device.max_qp_wr) + 1, 1, 1, 0});
    refused({1, 1, static_cast<std::uint32_t>(device.max_sge) + 1, 1, 0});
    refused({1, 1, 1, static_cast<std::uint32_t>(device.max_sge) + 1, 0});
    refused({1, 1, 1, 1, 1u << 30});
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {1, 1, 1, 1, 0};
    init.qp_type = static_cast<ibv_qp_type>(77);
    errno = 0;
    CHECK(ibv_create_qp(pd, &init) == nullptr);
    CHECK(errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS);
}

// --- posting by state -----------------------------------------------------------------------------------------------

// IBTA 10.3.1.1-10.3.1.3: immediate errors. Some providers (mlx5) do not check the state when posting a receive in
// Reset.
CASE(posting_before_its_time_is_refused) {
    const Subject subject(IBV_QPT_RC);
    const Memory& memory = subject.node.memory;
    const Qp& qp = subject.node.qp;
    CHECK_ERROR(qp.try_receive(1, {memory.sge(0, 8)}), EINVAL);
    CHECK_ERROR(qp.try_post(send(1, memory.sge(0, 8))), EINVAL);
    subject.bring_to(IBV_QPS_INIT);
    CHECK_OK(qp.try_receive(1, {memory.sge(0, 8)}));
    CHECK_ERROR(qp.try_post(send(1, memory.sge(0, 8))), EINVAL);
    subject.bring_to(IBV_QPS_RTR);
    CHECK_OK(qp.try_receive(1, {memory.sge(0, 8)}));
    CHECK_ERROR(qp.try_post(send(1, memory.sge(0, 8))), EINVAL);
}

// IBTA 10.3.1.7: in Error, all posted requests complete as flushed.
CASE(posting_in_error_completes_flushed) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_RTS);
    CHECK_OK(subject.node.qp.to(IBV_QPS_ERR));
    subject.node.qp.receive(1, subject.node.memory.sge(0, 8));
    subject.node.qp.post(send(2, subject.node.memory.sge(0, 8)).unsignaled());
    subject.node.rcq.expect(1, IBV_WC_WR_FLUSH_ERR);
    subject.node.scq.expect(2, IBV_WC_WR_FLUSH_ERR);  // signaled or not (IBTA 10.7.3.1)
}

CASE(error_flushes_receives_in_order) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_RTS);
    for (std::uint64_t id = 0; id < 20; ++id) subject.node.qp.receive(id, subject.node.memory.sge(0, 8));
    CHECK_OK(subject.node.qp.to(IBV_QPS_ERR));
    for (std::uint64_t id = 0; id < 20; ++id) {
        const ibv_wc wc = subject.node.rcq.expect(id, IBV_WC_WR_FLUSH_ERR);
        CHECK_EQ(wc.qp_num, subject.node.qp.number());
    }
    subject.node.rcq.expect_none();
}

// IBTA 10.3.1.1: the queues are emptied without completions.
CASE(reset_forgets_what_was_posted) {
    const Subject subject(IBV_QPT_RC);
    subject.bring_to(IBV_QPS_RTS);
    const std::uint32_t room = subject.node.qp.cap().max_recv_wr;
    for (int round = 0; round < 2; ++round) {
        for (std::uint32_t i = 0; i < room; ++i) subject.node.qp.receive(i, subject.node.memory.sge(0, 8));
        subject.bring_to(IBV_QPS_RTS);
        subject.node.rcq.expect_none();
    }
}

CASE(queue_pair_is_as_new_after_reset) {
    Two two;
    for (std::uint64_t round = 1; round <= 3; ++round) {
        two.a.memory.fill(round, 0, 500);
        two.b.qp.receive(round, two.b.memory.sge(0, 500));
        two.a.qp.post(send(round, two.a.memory.sge(0, 500)));
        two.a.scq.expect(round);
        two.b.rcq.expect(round);
        two.b.memory.check(round, 0, 500);
        if (round == 2) {  // once via Error
            CHECK_OK(two.a.qp.to(IBV_QPS_ERR));
            CHECK_OK(two.b.qp.to(IBV_QPS_ERR));
        }
        CHECK_OK(two.a.qp.to(IBV_QPS_RESET));
        CHECK_OK(two.b.qp.to(IBV_QPS_RESET));
        two.b.connect(two.a.address(), reversed({}));
        two.a.connect(two.b.address());
    }
}

// IBTA 10.3.1.2: in Init, incoming messages are dropped without an answer.
CASE(message_to_a_queue_pair_in_init_is_dropped) {
    Two two;
    CHECK_OK(two.b.qp.to(IBV_QPS_RESET));
    CHECK_OK(two.b.to_init());
    two.b.qp.receive(1, two.b.memory.sge(0, 64));
    two.a.qp.post(send(1, two.a.memory.sge(0, 64)));
    two.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
    two.b.rcq.expect_none();
    two.b.memory.check_untouched();
}

// IBTA 10.3.1.3: in RTR the receive queue already works.
CASE(message_to_a_queue_pair_in_rtr_is_received) {
    Node a, b(on_last_device());
    const Path back = reversed({});
    CHECK_OK(b.to_init(back));
    CHECK_OK(b.to_rtr(a.address(), back));
    a.connect(b.address());
    b.qp.receive(1, b.memory.sge(0, 64));
    a.memory.fill(1, 0, 64);
    a.qp.post(send(1, a.memory.sge(0, 64)));
    a.scq.expect(1);
    b.rcq.expect(1);
    b.memory.check(1, 0, 64);
    a.qp.post(write(2, a.memory.sge(0, 64), b.memory.remote(64)));
    a.scq.expect(2);
    CHECK_EQ(b.qp.state(), IBV_QPS_RTR);
    CHECK_OK(b.to_rts(back));
    a.qp.receive(3, a.memory.sge(1024, 64));
    b.qp.post(send(3, b.memory.sge(0, 64)));
    b.scq.expect(3);
    a.rcq.expect(3);
    a.memory.check(1, 1024, 64);
}

CASE(local_error_puts_rc_into_error_and_flushes_receives) {
    Pair pair;
    pair.a.qp.receive(1, pair.a.memory.sge(0, 8));
    ibv_sge wrong = pair.a.memory.sge(0, 8);
    wrong.lkey ^= 0x5a5a5a;
    pair.a.qp.post(write(2, wrong, pair.at_b.remote()));
    pair.a.scq.expect(2, IBV_WC_LOC_PROT_ERR);
    pair.a.rcq.expect(1, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(pair.a.qp.state(), IBV_QPS_ERR);
}
