// SPDX-License-Identifier: BSD-3-Clause
// Completion queues and their events (IBTA 10.8.5-10.8.6 work completions, 11.2.8 CQ verbs, 11.4.2 completion
// handling).
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "end.h"

using namespace verbstest;

namespace {

// Two sides in this process; all requests of b complete on one queue with a channel. (The host's own queue pair is
// idle.)
struct Notified {
    Node a, host{on_last_device()};
    ChannelOfCompletions channel{host.context};
    Cq cq{host.context, 64, channel, this};
    Qp b{host.pd, cq, cq};

    Notified() {
        connect(host.context, b, a.address(), reversed({}));
        a.connect(address_of(host.context, b));
    }
    void send_one(std::uint64_t id, unsigned flags = 0) {
        host_receive(id);
        a.qp.post(send(id, a.memory.sge(0, 64)).with(flags));
        a.scq.expect(id);
    }
    void host_receive(std::uint64_t id) { b.receive(id, host.memory.sge(0, 64)); }
    void expect_event() { CHECK(channel.next(kPatienceMs) == cq); }
    void expect_no_event() { CHECK(!channel.readable(kQuietMs)); }
};

}  // namespace

// --- creation -------------------------------------------------------------------------------------------------------

CASE(cq_has_at_least_the_entries_asked_for) {
    const Context context;
    for (int cqe : {1, 2, 3, 100, 511}) {
        const Cq cq(context, cqe, nullptr, &cqe);
        CHECK(cq->cqe >= cqe);
        CHECK(cq->cq_context == &cqe);
        CHECK(cq->context == context);
        CHECK_EQ(cq.poll().has_value(), false);
    }
}

CASE(cq_of_impossible_size_is_refused) {
    const Context context;
    CHECK_NULL(ibv_create_cq(context, 0, nullptr, nullptr, 0), EINVAL);
    CHECK_NULL(ibv_create_cq(context, -1, nullptr, nullptr, 0), EINVAL);
    CHECK_NULL(ibv_create_cq(context, context.device().max_cqe + 1, nullptr, nullptr, 0), EINVAL);
}

CASE(completion_vector_out_of_range_is_refused) {
    const Context context;
    CHECK_NULL(ibv_create_cq(context, 16, nullptr, nullptr, context->num_comp_vectors), EINVAL);
    CHECK_NULL(ibv_create_cq(context, 16, nullptr, nullptr, -1), EINVAL);
}

CASE(objects_in_use_cannot_be_destroyed) {
    Node node;
    CHECK_ERROR(ibv_destroy_cq(node.scq), EBUSY);
    CHECK_ERROR(ibv_destroy_cq(node.rcq), EBUSY);
    CHECK_ERROR(ibv_dealloc_pd(node.pd), EBUSY);
    const ChannelOfCompletions channel(node.context);
    const Cq cq(node.context, 4, channel);
    CHECK_ERROR(ibv_destroy_comp_channel(channel), EBUSY);
}

// --- completions ----------------------------------------------------------------------------------------------------

// IBTA 10.8.3.1: completions of one work queue come in the order of posting, however long the operations take.
CASE(completions_of_a_queue_come_in_posted_order) {
    Pair::Options options;
    options.a.bytes = options.b.bytes = 1 << 20;
    Pair pair(options);
    constexpr std::uint64_t kCount = 48;
    for (std::uint64_t id = 0; id < kCount; ++id) {
        const std::size_t bytes = id % 3 == 0 ? 200000 : 8;
        const std::size_t at = 8 * id;
        if (id % 4 == 1) pair.b->receive(id, 0, 64);
        switch (id % 4) {
        case 0: pair.a.qp.post(write(id, pair.a.memory.sge(0, bytes), pair.at_b.remote(4096))); break;
        case 1: pair.a.qp.post(send(id, pair.a.memory.sge(0, 64))); break;
        case 2: pair.a.qp.post(read(id, pair.a.memory.sge(500000, bytes), pair.at_b.remote(4096))); break;
        default: pair.a.qp.post(write(id, pair.a.memory.sge(at, 8), pair.at_b.remote(at))); break;
        }
    }
    for (std::uint64_t id = 0; id < kCount; ++id) pair.a.scq.expect(id);
    pair.a.scq.expect_none(1);
    for (std::uint64_t id = 1; id < kCount; id += 4) pair.b->expect_receive(id);
}

CASE(work_completion_carries_what_the_operation_was) {
    Pair pair;
    const auto opcode = [&](const Wr& wr) {
        pair.a.qp.post(wr);
        const ibv_wc wc = pair.a.scq.expect(wr.id);
        CHECK_EQ(wc.qp_num, pair.a.qp.number());
        return wc.opcode;
    };
    pair.b->receive(1, 0, 64);
    CHECK_EQ(opcode(send(1, pair.a.memory.sge(0, 64))), IBV_WC_SEND);
    ibv_wc wc = pair.b->expect_receive(1);
    CHECK_EQ(wc.opcode, IBV_WC_RECV);
    CHECK_EQ(wc.byte_len, 64);
    CHECK_EQ(wc.qp_num, pair.at_b.qpn);
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0);
    pair.b->receive(2, 0, 64);
    CHECK_EQ(opcode(send_imm(2, pair.a.memory.sge(0, 10), 0x01020304)), IBV_WC_SEND);
    wc = pair.b->expect_receive(2);
    CHECK_EQ(wc.opcode, IBV_WC_RECV);
    CHECK_EQ(wc.byte_len, 10);
    CHECK_EQ(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
    CHECK_EQ(wc.imm_data, __builtin_bswap32(0x01020304));
    pair.b->receive(3, 0, 64);
    CHECK_EQ(opcode(write_imm(3, pair.a.memory.sge(0, 33), pair.at_b.remote(128), 77)), IBV_WC_RDMA_WRITE);
    wc = pair.b->expect_receive(3);
    CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(wc.byte_len, 33);  // bytes written, not bytes of the receive (IBTA 11.4.2.1)
    CHECK_EQ(wc.imm_data, __builtin_bswap32(77));
    CHECK_EQ(opcode(write(4, pair.a.memory.sge(0, 33), pair.at_b.remote())), IBV_WC_RDMA_WRITE);
    pair.a.qp.post(read(5, pair.a.memory.sge(0, 40), pair.at_b.remote()));
    wc = pair.a.scq.expect(5);
    CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
    CHECK_EQ(wc.byte_len, 40);
    if (!has_atomics(pair.a.context)) return;
    CHECK_EQ(opcode(fetch_add(6, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1)), IBV_WC_FETCH_ADD);
    CHECK_EQ(opcode(compare_swap(7, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1, 2)), IBV_WC_COMP_SWAP);
}

CASE(poll_returns_at_most_what_is_asked_for) {
    Pair pair;
    for (std::uint64_t id = 0; id < 8; ++id) pair.a.qp.post(write(id, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    std::vector<std::uint64_t> seen;
    CHECK(wait_until([&] {
        ibv_wc wc[4]{};
        wc[3].wr_id = 999;
        CHECK_EQ(ibv_poll_cq(pair.a.scq, 0, wc), 0);
        const int n = ibv_poll_cq(pair.a.scq, 3, wc);
        CHECK(n >= 0 && n <= 3);
        CHECK_EQ(wc[3].wr_id, 999);
        for (int i = 0; i < n; ++i) seen.push_back(wc[i].wr_id);
        return seen.size() == 8;
    }));
    for (std::uint64_t id = 0; id < 8; ++id) CHECK_EQ(seen[id], id);
}

CASE(one_cq_serves_send_and_receive_queues_of_several_qps) {
    const Context context;
    const Pd pd(context);
    const Cq cq(context, 64);
    Memory memory(pd, 4096);
    const Qp one(pd, cq, cq), two(pd, cq, cq);
    // Both on one device: through the port and back.
    connect(context, one, address_of(context, two));
    connect(context, two, address_of(context, one), reversed({}));
    memory.fill(6, 0, 64);
    two.receive(2, memory.sge(1024, 64));
    one.post(send(1, memory.sge(0, 64)));
    bool sent = false, received = false;
    for (int i = 0; i < 2; ++i) {
        const ibv_wc wc = cq.wait();
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        if (wc.wr_id == 1) sent = wc.qp_num == one.number();
        else received = wc.qp_num == two.number();
    }
    CHECK(sent && received);
    memory.check(6, 1024, 64);
}

// IBTA 10.8.2.4 (CQ overrun), 11.6.3.1: an affiliated asynchronous error on the CQ; completions are lost.
CASE(overflow_raises_cq_error) {
    Shape shape;
    shape.qp.send_wrs = 512;
    shape.cqe = 4;
    Two two([&] {
        Pair::Options options;
        options.a = shape;
        return options;
    }());
    const int capacity = two.a.scq->cqe;
    const int count = capacity + 8;
    if (static_cast<int>(two.a.qp.cap().max_send_wr) < count) skip("the send queue is shorter than the CQ");
    for (int i = 0; i < count; ++i)
        if (two.a.qp.try_post(write(static_cast<std::uint64_t>(i), two.a.memory.sge(0, 8), two.b.memory.remote())) != 0)
            break;  // the queue pair may be in the Error state already
    const Event event = two.a.context.wait_event(IBV_EVENT_CQ_ERR);
    CHECK(event.element == static_cast<ibv_cq*>(two.a.scq));
}

CASE(full_cq_without_overflow_keeps_everything) {
    Pair::Options options;
    options.a.cqe = 16;
    options.a.qp.send_wrs = 16;
    Pair pair(options);
    for (std::uint64_t id = 0; id < 16; ++id) pair.a.qp.post(write(id, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    CHECK(!pair.a.context.has_event(IBV_EVENT_CQ_ERR));
    for (std::uint64_t id = 0; id < 16; ++id) pair.a.scq.expect(id);
}

CASE(resize_keeps_completions_and_their_order) {
    Pair::Options options;
    options.a.cqe = 16;
    options.a.qp.send_wrs = 128;
    Pair pair(options);
    std::uint64_t next = 0;
    const auto post = [&](int count) {
        for (int i = 0; i < count; ++i) pair.a.qp.post(write(next++, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    };
    post(10);
    pair.a.scq.expect(0);
    const int result = ibv_resize_cq(pair.a.scq, 100);
    if (result == ENOSYS || result == EOPNOTSUPP) skip("CQs cannot be resized");
    CHECK_OK(result);
    CHECK(pair.a.scq->cqe >= 100);
    post(80);  // would overflow the old size
    for (std::uint64_t id = 1; id < 60; ++id) pair.a.scq.expect(id);
    CHECK_OK(ibv_resize_cq(pair.a.scq, 40));
    for (std::uint64_t id = 60; id < 90; ++id) pair.a.scq.expect(id);
    CHECK(!pair.a.context.has_event(IBV_EVENT_CQ_ERR, 1));
}

// IBTA 11.2.8.4: the outstanding completions must fit, or else the CQ stays as it is.
CASE(resize_below_what_waits_is_refused) {
    Pair::Options options;
    options.a.cqe = 256;
    Pair pair(options);
    for (std::uint64_t id = 0; id < 60; ++id) pair.a.qp.post(write(id, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.qp.post(write(60, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    CHECK(!pair.a.context.has_event(IBV_EVENT_CQ_ERR, 100));  // waits until all of them are there
    const int result = ibv_resize_cq(pair.a.scq, 1);
    if (result == ENOSYS || result == EOPNOTSUPP) skip("CQs cannot be resized");
    // A device may round the size up, so that they fit.
    if (result == 0) CHECK(pair.a.scq->cqe >= 61);
    else CHECK_EQ(result, EINVAL);
    CHECK_ERROR(ibv_resize_cq(pair.a.scq, 0), EINVAL);
    for (std::uint64_t id = 0; id <= 60; ++id) pair.a.scq.expect(id);
}

// --- notification ---------------------------------------------------------------------------------------------------

CASE(unarmed_cq_raises_no_event) {
    Notified n;
    n.send_one(1);
    n.cq.expect(1);
    n.expect_no_event();
}

CASE(armed_cq_raises_one_event_for_several_completions) {
    Notified n;
    n.cq.arm();
    n.expect_no_event();
    for (std::uint64_t id = 1; id <= 5; ++id) n.send_one(id);
    n.expect_event();
    n.expect_no_event();  // notifies once (IBTA 11.4.2.2)
    for (std::uint64_t id = 1; id <= 5; ++id) n.cq.expect(id);
    n.cq.arm();
    n.send_one(6);
    n.expect_event();
    n.cq.expect(6);
}

CASE(arming_twice_raises_one_event) {
    Notified n;
    n.cq.arm();
    n.cq.arm();
    n.send_one(1);
    n.expect_event();
    n.expect_no_event();
    n.cq.expect(1);
}

CASE(send_completion_raises_an_event_too) {
    Notified n;
    n.a.qp.receive(1, n.a.memory.sge(0, 64));
    n.cq.arm();
    n.b.post(send(2, n.host.memory.sge(0, 64)));
    n.expect_event();
    n.cq.expect(2);
    n.a.rcq.expect(1);
}

CASE(solicited_only_ignores_other_messages) {
    Notified n;
    n.cq.arm(true);
    n.send_one(1);
    n.expect_no_event();
    n.send_one(2, IBV_SEND_SOLICITED);
    n.expect_event();
    n.cq.expect(1);
    n.cq.expect(2);
}

CASE(solicited_write_with_immediate_raises_an_event) {
    Notified n;
    n.cq.arm(true);
    n.host_receive(1);
    n.a.qp.post(write_imm(1, n.a.memory.sge(0, 8), n.host.memory.remote(), 5).with(IBV_SEND_SOLICITED));
    n.expect_event();
    n.cq.expect(1);
    n.a.scq.expect(1);
}

// IBTA 11.4.2.2: a completion in error counts as solicited.
CASE(error_completion_counts_as_solicited) {
    Notified n;
    n.cq.arm(true);
    n.host_receive(1);
    CHECK_OK(n.b.to(IBV_QPS_ERR));
    n.expect_event();
    n.cq.expect(1, IBV_WC_WR_FLUSH_ERR);
}

// IBTA 11.4.2.2: a request for the next solicited completion does not weaken one for the next completion.
CASE(arming_for_solicited_does_not_weaken_arming_for_any) {
    Notified n;
    n.cq.arm(false);
    n.cq.arm(true);
    n.send_one(1);
    n.expect_event();
    n.cq.expect(1);
}

CASE(arming_for_any_strengthens_arming_for_solicited) {
    Notified n;
    n.cq.arm(true);
    n.cq.arm(false);
    n.send_one(1);
    n.expect_event();
    n.cq.expect(1);
}

// IBTA 11.4.2.2 promises an event only for completions added after the request. ConnectX hardware compares with the
// consumer's index and fires at once if completions wait that were not polled, and programs rely on that.
CASE(arming_with_waiting_completions_fires_at_once_unless_strict) {
    Notified n;
    n.send_one(1);
    n.expect_no_event();  // waits until it has arrived
    n.cq.arm();
    if (ground() == "strictarm") {
        n.expect_no_event();
        n.send_one(2);
        n.expect_event();
        n.cq.expect(1);
        n.cq.expect(2);
    } else {
        n.expect_event();
        n.cq.expect(1);
    }
}

// perftest arms after taking an event and before polling: it must not be notified again of the completion that the
// event was for.
CASE(arming_before_polling_does_not_notify_of_the_same_completion_again) {
    Notified n;
    for (std::uint64_t id = 1; id <= 3; ++id) {
        n.cq.arm();
        n.send_one(id);
        n.expect_event();
        n.cq.arm();
        n.expect_no_event();
        n.cq.expect(id);
        n.send_one(100 + id);
        n.expect_event();
        n.cq.expect(100 + id);
    }
}

// Each notification is for one completion: a program that polls fewer than have come is notified again.
CASE(arming_before_polling_notifies_of_further_completions_unless_strict) {
    if (ground() == "strictarm") skip("arming notifies only of later completions");
    Notified n;
    n.cq.arm();
    for (std::uint64_t id = 1; id <= 3; ++id) n.send_one(id);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        n.expect_event();
        n.cq.arm();
        n.cq.expect(id);
    }
    n.expect_no_event();
}

// The acknowledgement is sent before the receiver's program learns of the message (IBTA 9.7.5.1), so no answer to it
// can come before the sender's own completion. Covers messages that the posting thread executes, and those that the
// engine's thread does.
CASE(sender_is_notified_before_the_receiver) {
    Notified n;
    const ChannelOfCompletions sent(n.a.context);
    const Cq scq(n.a.context, 64, sent);
    const Qp a(n.a.pd, scq, n.a.rcq), b(n.host.pd, n.cq, n.cq);
    connect(n.host.context, b, address_of(n.a.context, a), reversed({}));
    connect(n.a.context, a, address_of(n.host.context, b));
    for (std::uint64_t id = 1; id <= 200; ++id) {
        const std::size_t bytes = id % 2 == 0 ? 65536 : 64;
        b.receive(id, n.host.memory.sge(0, bytes));
        n.cq.arm();
        scq.arm();
        a.post(send(id, n.a.memory.sge(0, bytes)));
        CHECK(n.channel.next(kPatienceMs) == n.cq);
        CHECK(sent.next(0) == scq);
        scq.expect(id);
        n.cq.expect(id);
    }
}

CASE(arming_after_the_last_poll_loses_no_wakeup) {
    Notified n;
    for (std::uint64_t id = 1; id <= 50; ++id) {  // arm, poll again, sleep: as every event-driven program does
        n.cq.arm();
        n.send_one(id);
        if (!n.cq.poll()) {
            n.expect_event();
            n.cq.expect(id);
        } else if (n.channel.readable(100)) {
            n.expect_event();
        }
    }
}

CASE(channel_without_events_does_not_block_if_told_so) {
    Notified n;
    const int flags = fcntl(n.channel->fd, F_GETFL);
    CHECK_EQ(fcntl(n.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    errno = 0;
    CHECK(ibv_get_cq_event(n.channel, &cq, &user) != 0);
    CHECK_EQ(errno, EAGAIN);
    n.cq.arm();
    n.send_one(1);
    CHECK(n.channel.readable(kPatienceMs));
    CHECK_OK(ibv_get_cq_event(n.channel, &cq, &user));
    CHECK(cq == n.cq);
    CHECK(user == &n);
    ibv_ack_cq_events(cq, 1);
    n.cq.expect(1);
}

CASE(waiting_for_an_event_blocks_until_it_comes) {
    Notified n;
    n.cq.arm();
    std::atomic<bool> woken{false};
    std::thread waiter([&] {
        ibv_cq* cq = nullptr;
        void* user = nullptr;
        CHECK_OK(ibv_get_cq_event(n.channel, &cq, &user));
        ibv_ack_cq_events(cq, 1);
        woken = true;
    });
    CHECK(!wait_until([&] { return woken.load(); }, kQuietMs));
    n.send_one(1);
    waiter.join();
    n.cq.expect(1);
}

CASE(one_channel_tells_its_queues_apart) {
    Notified n;
    const Cq other(n.host.context, 8, n.channel, &n);
    const Qp qp(n.host.pd, other, other);
    CHECK_OK(to_init(qp));
    qp.receive(7, n.host.memory.sge(0, 8));
    n.cq.arm();
    other.arm();
    CHECK_OK(qp.to(IBV_QPS_ERR));
    CHECK(n.channel.next(kPatienceMs) == other);
    n.send_one(1);
    CHECK(n.channel.next(kPatienceMs) == n.cq);
    n.cq.expect(1);
    other.expect(7, IBV_WC_WR_FLUSH_ERR);
}

// ibv_ack_cq_events(3): destruction waits until every event that was taken has been acknowledged.
CASE(destroying_a_cq_waits_for_acknowledgements) {
    Node node;
    const ChannelOfCompletions channel(node.context);
    ibv_cq* cq = ibv_create_cq(node.context, 8, nullptr, channel, 0);
    CHECK(cq != nullptr);
    for (int event = 0; event < 2; ++event) {
        const Qp qp(node.pd, cq, cq);
        CHECK_OK(to_init(qp));
        qp.receive(1, node.memory.sge(0, 8));
        CHECK_OK(ibv_req_notify_cq(cq, 0));
        CHECK_OK(qp.to(IBV_QPS_ERR));
        CHECK(channel.readable(kPatienceMs));
        ibv_cq* of = nullptr;
        void* user = nullptr;
        CHECK_OK(ibv_get_cq_event(channel, &of, &user));
        ibv_wc wc{};
        CHECK(wait_until([&] { return ibv_poll_cq(cq, 1, &wc) == 1; }));
    }
    ibv_ack_cq_events(cq, 1);
    std::atomic<bool> destroyed{false};
    std::thread destroyer([&] {
        CHECK_OK(ibv_destroy_cq(cq));
        destroyed = true;
    });
    CHECK(!wait_until([&] { return destroyed.load(); }, 2 * kQuietMs));
    ibv_ack_cq_events(cq, 1);
    destroyer.join();
}

// The acknowledgement is sent before the receiver sees the message (IBTA 9.7.5.1). All threads are on one core, so that
// a thread that is woken up takes it from the sender.
CASE(message_has_arrived_though_its_receiver_quits_at_once) {
    cpu_set_t before, one;
    CHECK_OK(sched_getaffinity(0, sizeof before, &before));
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    CHECK_OK(sched_setaffinity(0, sizeof one, &one));
    for (int round = 0; round < 50; ++round) {
        Notified sides;
        sides.host_receive(1);
        sides.cq.arm();
        std::thread receiver([&] {
            sides.expect_event();
            sides.cq.expect(1);
            CHECK_OK(ibv_destroy_qp(sides.b.release()));
        });
        usleep(200);  // until the receiver sleeps
        sides.a.qp.post(send(1, sides.a.memory.sge(0, 64)));
        sides.a.scq.expect(1);
        receiver.join();
    }
    CHECK_OK(sched_setaffinity(0, sizeof before, &before));
}
