// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous events (IBTA 11.6.3: affiliated events and errors, unaffiliated ones). For events of path migration see
// apm.cc, of shared receive queues srq.cc, of completion queues completion.cc, of a drained send queue drain.cc.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "end.h"

using namespace verbstest;

namespace {

std::string hex(std::uint32_t number) {
    char text[16];
    snprintf(text, sizeof text, "0x%x", number);
    return text;
}

}  // namespace

// --- ports and devices ----------------------------------------------------------------------------------------------

CASE(port_down_and_up_raises_events_in_every_context_of_the_device) {
    const Context one, two, other(-1);
    const bool alone = devices() == 1;
    Meanwhile down({"port", "h0/coop0/1", "down"}, {"port", "h0/coop0/1", "up"});
    for (const Context* context : {&one, &two}) {
        CHECK_EQ(context->wait_event(IBV_EVENT_PORT_ERR).port, 1);
        CHECK(context->port().state != IBV_PORT_ACTIVE);
    }
    if (!alone) {
        CHECK(!other.has_event(IBV_EVENT_PORT_ERR));
        CHECK_EQ(other.port().state, IBV_PORT_ACTIVE);
    }
    down.over();
    for (const Context* context : {&one, &two}) {
        CHECK_EQ(context->wait_event(IBV_EVENT_PORT_ACTIVE).port, 1);
        CHECK_EQ(context->port().state, IBV_PORT_ACTIVE);
    }
}

CASE(port_that_comes_back_works_again) {
    const Context watcher;
    tool({"port", "h0/coop0/1", "down"});
    watcher.wait_event(IBV_EVENT_PORT_ERR);
    tool({"port", "h0/coop0/1", "up"});
    watcher.wait_event(IBV_EVENT_PORT_ACTIVE);
    Pair pair;
    pair.exchange(1);
}

CASE(port_of_another_host_is_not_our_event) {
    const Context context;
    const Meanwhile down({"port", "h1/coop0/1", "down"}, {"port", "h1/coop0/1", "up"});
    CHECK(!context.has_event(IBV_EVENT_PORT_ERR));
}

// --- other addresses ------------------------------------------------------------------------------------------------

// IBTA 11.6.3.3: LID change, GID change; 14.2.5.6: the subnet manager may give a port that returns another LID.
CASE(port_may_return_with_another_lid) {
    const Context context;
    if (context.ethernet()) skip("no LIDs on Ethernet");
    const int old = context.port().lid;
    tool({"port", "h0/coop0/1", "down"});
    context.wait_event(IBV_EVENT_PORT_ERR);
    const Meanwhile moved({"port", "h0/coop0/1", "up", "--lid", "new"},
                          {"port", "h0/coop0/1", "up", "--lid", std::to_string(old)});
    CHECK_EQ(context.next_event(kPatienceMs).value().type, IBV_EVENT_LID_CHANGE);
    CHECK_EQ(context.next_event(kPatienceMs).value().type, IBV_EVENT_PORT_ACTIVE);
    CHECK(context.port().lid != old);
    Pair pair;
    CHECK_EQ(pair.at_a.lid, context.port().lid);
    pair.exchange(1);
}

CASE(port_may_return_with_another_gid) {
    const Context context;
    const ibv_gid old = context.gid(1, 0);
    tool({"port", "h0/coop0/1", "down"});
    context.wait_event(IBV_EVENT_PORT_ERR);
    tool({"port", "h0/coop0/1", "up", "--gid", "new"});
    CHECK_EQ(context.next_event(kPatienceMs).value().type, IBV_EVENT_GID_CHANGE);
    CHECK_EQ(context.next_event(kPatienceMs).value().type, IBV_EVENT_PORT_ACTIVE);
    const ibv_gid now = context.gid(1, 0);
    CHECK(memcmp(&old, &now, sizeof old) != 0);
    Pair pair;
    pair.exchange(1);
}

// IBTA 9.6.1: what the connection knows of its peer does not change with the port.
CASE(queue_pairs_do_not_follow_a_port_to_its_new_address) {
    for (const bool of_a : {true, false}) {
        Pair pair;
        pair.exchange(1);
        const std::string port = of_a ? pair.a.port_name() : pair.b->port_name();
        const char* what = pair.at_a.global ? "--gid" : "--lid";
        const std::string old = std::to_string(of_a ? pair.at_a.lid : pair.at_b.lid);
        tool({"port", port, "up", what, "new"});
        pair.b->receive(2, 0, 64);
        pair.a.qp.post(send(2, pair.a.memory.sge(0, 64)));
        pair.a.scq.expect(2, IBV_WC_RETRY_EXC_ERR);
        pair.b->expect_no_receive();
        if (!pair.at_a.global) tool({"port", port, "up", "--lid", old});
    }
    Pair pair;
    pair.exchange(3);
}

CASE(address_handle_does_not_follow_a_port_to_its_new_lid) {
    Pair::Options options;
    options.a.qp.type = options.b.qp.type = IBV_QPT_UD;
    Pair pair(options);
    if (pair.at_a.global) skip("no LIDs on Ethernet");
    const auto send_to = [&](std::uint64_t id, const Ah& ah) {
        Wr wr = send(id, pair.a.memory.sge(0, 64));
        wr.ah = ah;
        wr.qpn = pair.at_b.qpn;
        wr.qkey = kQkey;
        pair.a.qp.post(wr);
        pair.a.scq.expect(id);
    };
    for (std::uint64_t id = 1; id <= 2; ++id) pair.b->receive(id, id * 1024, 256);
    const Ah old(pair.a.pd, way_to(pair.at_b, {}, 1));
    send_to(1, old);
    pair.b->expect_receive(1);
    const Meanwhile moved({"port", pair.b->port_name(), "up", "--lid", "new"},
                          {"port", pair.b->port_name(), "up", "--lid", std::to_string(pair.at_b.lid)});
    send_to(2, old);
    pair.b->expect_no_receive();
    const Ah now(pair.a.pd, way_to(pair.b->address(), {}, 1));
    send_to(3, now);
    pair.b->expect_receive(2);
}

// IBTA 11.6.3.3: changes made by the subnet manager. A LID that goes down and comes back.
CASE(lid_change_raises_an_event) {
    const Context context;
    if (context.ethernet()) skip("no LIDs on Ethernet");
    const std::string lid = std::to_string(context.port().lid);
    Meanwhile down({"lid", lid, "down"}, {"lid", lid, "up"});
    CHECK_EQ(context.wait_event(IBV_EVENT_LID_CHANGE).port, 1);
    CHECK_EQ(context.port().state, IBV_PORT_ACTIVE);
    down.over();
    CHECK_EQ(context.wait_event(IBV_EVENT_LID_CHANGE).port, 1);
}

CASE(subnet_manager_change_raises_an_event) {
    const Context context;
    if (context.ethernet()) skip("no subnet manager on Ethernet");
    tool({"sm", "change"});
    CHECK(context.wait_event(IBV_EVENT_SM_CHANGE).port >= 1);
}

// IBTA 11.6.3.2 (Local Catastrophic Error): all objects of the device are lost, and can be closed.
CASE(lost_hca_raises_an_event_and_can_be_closed) {
    if (devices() < 2) skip("needs a second HCA");
    {
        Pair pair;
        pair.exchange(1);
        auto lost = std::make_unique<Node>(on_last_device());
        const std::string hca = "h0/" + lost->context.name();
        const Meanwhile down({"hca", hca, "down"}, {"hca", hca, "up"});
        lost->context.wait_event(IBV_EVENT_DEVICE_FATAL);
        CHECK(!pair.a.context.has_event(IBV_EVENT_DEVICE_FATAL));
        lost.reset();
    }
    Node again(on_last_device()), a;
    again.connect(a.address(), reversed({}));
    a.connect(again.address());
    a.qp.post(write(1, a.memory.sge(0, 8), again.memory.remote()));
    a.scq.expect(1);
}

CASE(lost_hca_raises_an_event_in_every_context) {
    if (devices() < 2) skip("needs a second HCA");
    const Context one(-1), two(-1), other(0);
    const std::string hca = "h0/" + one.name();
    const Meanwhile down({"hca", hca, "down"}, {"hca", hca, "up"});
    for (const Context* context : {&one, &two}) context->wait_event(IBV_EVENT_DEVICE_FATAL);
    CHECK(!other.has_event(IBV_EVENT_DEVICE_FATAL));
}

// Ten times a second for a second. Connections whose retries last longer go on, and each change is reported.
CASE(flapping_port_neither_wedges_connections_nor_loses_events) {
    constexpr int kFlaps = 10;
    Pair::Options options;
    options.from_a.timeout = 14;  // 67 ms, seven times
    options.from_a.retry = 7;
    Pair pair(options);
    const Context watcher;
    std::atomic<bool> over{false};
    std::thread flapping([&] {
        for (int i = 0; i < kFlaps; ++i) {
            tool({"port", "h0/coop0/1", "down"});
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            tool({"port", "h0/coop0/1", "up"});
            std::this_thread::sleep_for(std::chrono::milliseconds(70));
        }
        over = true;
    });
    std::uint64_t sent = 0;
    while (!over) pair.exchange(++sent, 1000);
    flapping.join();
    for (int i = 0; i < kFlaps; ++i) {
        CHECK_EQ(watcher.next_event(kPatienceMs).value().type, IBV_EVENT_PORT_ERR);
        CHECK_EQ(watcher.next_event(kPatienceMs).value().type, IBV_EVENT_PORT_ACTIVE);
    }
    pair.exchange(++sent);
    pair.b->expect_no_receive(1);
    Pair next;
    next.exchange(1);
}

// IBTA 11.6.3.2. The queue pair does not send, so nothing but the loss of the device makes its engine look at it.
CASE(lost_hca_flushes_a_queue_pair_that_only_receives) {
    if (devices() < 2) skip("needs a second HCA");
    Node a, b(on_last_device());
    b.connect(a.address(), reversed({}));
    b.qp.receive(7, b.memory.sge(0, 8));
    const std::string hca = "h0/" + b.context.name();
    const Meanwhile down({"hca", hca, "down"}, {"hca", hca, "up"});
    b.rcq.expect(7, IBV_WC_WR_FLUSH_ERR);
}

CASE(peer_of_a_lost_hca_exceeds_retries) {
    if (devices() < 2 || far()) skip("needs a second HCA here");
    Pair pair;
    const std::string name = pair.b->port_name(), hca = name.substr(0, name.rfind('/'));
    const Meanwhile down({"hca", hca, "down"}, {"hca", hca, "up"});
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 8), pair.at_b.remote()));
    pair.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

// IBTA 10.3.1.3, 11.6.3.1: the queue pair is in RTR when the first message arrives.
CASE(first_message_in_rtr_says_that_communication_is_established) {
    Node a, b(on_last_device());
    CHECK_OK(b.to_init());
    CHECK_OK(b.to_rtr(a.address(), reversed({})));
    a.connect(b.address());
    CHECK(!b.context.has_event(IBV_EVENT_COMM_EST, 1));
    for (std::uint64_t id = 1; id <= 2; ++id) {
        b.qp.receive(id, b.memory.sge(0, 8));
        a.qp.post(send(id, a.memory.sge(0, 8)));
        a.scq.expect(id);
        b.rcq.expect(id);
    }
    CHECK(b.context.wait_event(IBV_EVENT_COMM_EST).element == static_cast<ibv_qp*>(b.qp));
    CHECK(!b.context.has_event(IBV_EVENT_COMM_EST));
}

CASE(message_in_rts_establishes_nothing_more) {
    Pair pair;
    pair.exchange(1);
    pair.b->expect_no_event(IBV_EVENT_COMM_EST);
}

CASE(access_error_names_the_queue_pair) {
    Two two;
    Remote wrong = two.b.memory.remote();
    wrong.rkey ^= 0x5a5a5a;
    two.a.qp.post(write(1, two.a.memory.sge(0, 8), wrong));
    two.a.scq.expect(1, IBV_WC_REM_ACCESS_ERR);
    CHECK(two.b.context.wait_event(IBV_EVENT_QP_ACCESS_ERR).element == static_cast<ibv_qp*>(two.b.qp));
    two.b.qp.wait_state(IBV_QPS_ERR);
    CHECK(!two.a.context.has_event(IBV_EVENT_QP_ACCESS_ERR, 1));  // the requester has a completion instead
}

// IBTA 11.6.3.2, Local Work Queue Catastrophic Error.
CASE(killed_queue_pair_raises_an_event_and_is_flushed) {
    Two two;
    two.b.qp.receive(1, two.b.memory.sge(0, 8));
    two.b.qp.receive(2, two.b.memory.sge(0, 8));
    tool({"fault", "qp:" + hex(two.b.qp.number()), "kill-qp", "--count", "1"});
    two.a.qp.post(send(1, two.a.memory.sge(0, 8)));  // the fault applies to a message
    CHECK(two.b.context.wait_event(IBV_EVENT_QP_FATAL).element == static_cast<ibv_qp*>(two.b.qp));
    two.b.qp.wait_state(IBV_QPS_ERR);
    two.b.rcq.expect(1, IBV_WC_WR_FLUSH_ERR);
    two.b.rcq.expect(2, IBV_WC_WR_FLUSH_ERR);
    two.a.scq.expect(1, IBV_WC_RETRY_EXC_ERR);
}

CASE(completion_errors_of_a_requester_are_no_events) {
    Pair pair;
    ibv_sge wrong = pair.a.memory.sge(0, 8);
    wrong.lkey ^= 0x5a5a5a;
    pair.a.qp.post(write(1, wrong, pair.at_b.remote()));
    pair.a.scq.expect(1, IBV_WC_LOC_PROT_ERR);
    CHECK(!pair.a.context.next_event(kQuietMs));
}

// --- the queue of events --------------------------------------------------------------------------------------------

CASE(no_event_does_not_block_if_told_so) {
    const Context context;
    const int flags = fcntl(context->async_fd, F_GETFL);
    CHECK_EQ(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
    ibv_async_event event{};
    errno = 0;
    CHECK(ibv_get_async_event(context, &event) != 0);
    CHECK_EQ(errno, EAGAIN);
}

CASE(waiting_for_an_async_event_blocks_until_it_comes) {
    const Context context;
    std::atomic<bool> woken{false};
    std::thread waiter([&] {
        ibv_async_event event{};
        CHECK_OK(ibv_get_async_event(context, &event));
        CHECK_EQ(event.event_type, IBV_EVENT_PORT_ERR);
        ibv_ack_async_event(&event);
        woken = true;
    });
    CHECK(!wait_until([&] { return woken.load(); }, kQuietMs));
    const Meanwhile down({"port", "h0/coop0/1", "down"}, {"port", "h0/coop0/1", "up"});
    waiter.join();
}

// ibv_get_async_event(3): events of a destroyed object are not delivered any more.
CASE(events_of_a_destroyed_queue_pair_are_not_delivered) {
    Node b(on_last_device());
    {
        Node a;
        const Qp brief(b.pd, b.scq, b.rcq);
        connect(b.context, brief, a.address(), reversed({}));
        a.connect(address_of(b.context, brief));
        Remote wrong = b.memory.remote();
        wrong.rkey ^= 0x5a5a5a;
        a.qp.post(write(1, a.memory.sge(0, 8), wrong));
        a.scq.expect(1, IBV_WC_REM_ACCESS_ERR);
    }
    // poll() must not report an event that ibv_get_async_event() would then wait for: read without blocking.
    CHECK_EQ(fcntl(b.context->async_fd, F_SETFL, fcntl(b.context->async_fd, F_GETFL) | O_NONBLOCK), 0);
    ibv_async_event event{};
    errno = 0;
    CHECK(ibv_get_async_event(b.context, &event) != 0);
    CHECK_EQ(errno, EAGAIN);
}

// ibv_get_async_event(3): destruction waits until the object's events have been acknowledged.
CASE(destroying_a_queue_pair_waits_for_acknowledgement) {
    Node a, b(on_last_device());
    Qp qp(b.pd, b.scq, b.rcq);
    connect(b.context, qp, a.address(), reversed({}));
    a.connect(address_of(b.context, qp));
    ibv_qp* const raw = qp.release();
    Remote wrong = b.memory.remote();
    wrong.rkey ^= 0x5a5a5a;
    a.qp.post(write(1, a.memory.sge(0, 8), wrong));
    a.scq.expect(1, IBV_WC_REM_ACCESS_ERR);
    ibv_async_event event{};
    CHECK_OK(ibv_get_async_event(b.context, &event));
    CHECK_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    std::atomic<bool> destroyed{false};
    std::thread destroyer([&] {
        CHECK_OK(ibv_destroy_qp(raw));
        destroyed = true;
    });
    CHECK(!wait_until([&] { return destroyed.load(); }, 2 * kQuietMs));
    ibv_ack_async_event(&event);
    destroyer.join();
}
