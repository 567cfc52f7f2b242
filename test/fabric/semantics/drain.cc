// SPDX-License-Identifier: BSD-3-Clause
// Draining the send queue (IBTA 10.3.1.5 SQD, 11.6.3.1 'send queue drained'), and its error state (10.3.1.6 SQE).
#include "end.h"

using namespace verbstest;

namespace {

int drain(const Qp& qp, bool notify) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = notify;
    return qp.modify(attr, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

}  // namespace

CASE(drained_queue_holds_what_is_posted_until_rts) {
    Pair pair;
    CHECK_OK(drain(pair.a.qp, true));
    CHECK(pair.a.context.wait_event(IBV_EVENT_SQ_DRAINED).element == static_cast<ibv_qp*>(pair.a.qp));
    const ibv_qp_attr attr = pair.a.qp.query();
    CHECK_EQ(attr.qp_state, IBV_QPS_SQD);
    CHECK_EQ(attr.sq_draining, 0);
    pair.a.memory.fill(1, 0, 64);
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.a.scq.expect_none();
    pair.b->check_untouched(0, 64);
    CHECK_OK(pair.a.qp.to(IBV_QPS_RTS));
    pair.a.scq.expect(1);
    pair.b->check(1, 0, 64);
}

CASE(draining_completes_what_has_begun) {
    Pair::Options options;
    options.a.bytes = options.b.bytes = 2 << 20;
    Pair pair(options);
    pair.a.memory.fill(1);
    for (std::uint64_t id = 1; id <= 4; ++id) pair.a.qp.post(write(id, pair.a.memory.sge(), pair.at_b.remote()));
    CHECK_OK(drain(pair.a.qp, true));
    pair.a.context.wait_event(IBV_EVENT_SQ_DRAINED);
    // Requests that had not begun may wait for RTS; those that had begun have completed, in order.
    std::uint64_t done = 0;
    while (const auto wc = pair.a.scq.poll(kQuietMs)) {
        CHECK_EQ(wc->status, IBV_WC_SUCCESS);
        CHECK_EQ(wc->wr_id, ++done);
    }
    CHECK_OK(pair.a.qp.to(IBV_QPS_RTS));
    while (done < 4) pair.a.scq.expect(++done);
    pair.b->check(1, 0, 2 << 20);
}

CASE(draining_waits_for_an_answer_that_is_late) {
    Pair pair;
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 8)));  // there is no receive, so it is retried
    CHECK_OK(drain(pair.a.qp, true));
    CHECK(!pair.a.context.has_event(IBV_EVENT_SQ_DRAINED));
    CHECK_EQ(pair.a.qp.query().sq_draining, 1);
    pair.b->receive(1, 0, 8);
    pair.a.context.wait_event(IBV_EVENT_SQ_DRAINED);
    pair.a.scq.expect(1);
    CHECK_EQ(pair.a.qp.query().sq_draining, 0);
    CHECK_OK(pair.a.qp.to(IBV_QPS_RTS));
}

CASE(draining_without_notification_raises_no_event) {
    Pair pair;
    CHECK_OK(drain(pair.a.qp, false));
    CHECK(!pair.a.context.has_event(IBV_EVENT_SQ_DRAINED));
    CHECK_OK(pair.a.qp.to(IBV_QPS_RTS));
}

CASE(receive_queue_goes_on_while_the_send_queue_is_drained) {
    Pair pair;
    CHECK_OK(drain(pair.a.qp, true));
    pair.a.context.wait_event(IBV_EVENT_SQ_DRAINED);
    pair.a.qp.receive(1, pair.a.memory.sge(0, 64));
    pair.b->fill(1, 0, 64);
    pair.b->post_send(1, 0, 64);
    pair.a.rcq.expect(1);
    pair.b->expect_send(1);
    pair.a.memory.check(1, 0, 64);
}

// IBTA 11.2.5.2: SQD permits changes of attributes that RTS does not, such as the retry counters.
CASE(attributes_change_while_drained) {
    Pair pair;
    CHECK_OK(drain(pair.a.qp, true));
    pair.a.context.wait_event(IBV_EVENT_SQ_DRAINED);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.retry_cnt = 7;
    attr.timeout = 9;
    attr.rnr_retry = 3;
    CHECK_OK(pair.a.qp.modify(attr, IBV_QP_STATE | IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT | IBV_QP_RNR_RETRY));
    CHECK_OK(pair.a.qp.to(IBV_QPS_RTS));
    const ibv_qp_attr now = pair.a.qp.query();
    CHECK_EQ(now.retry_cnt, 7);
    CHECK_EQ(now.timeout, 9);
    CHECK_EQ(now.rnr_retry, 3);
    pair.exchange(5);
}
