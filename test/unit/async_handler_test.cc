// SPDX-License-Identifier: BSD-3-Clause
//
// async/handler.h, with a pipe as the transport: each byte is an interrupt.
#include "coop/async/handler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>

namespace coop::async {
namespace {

using namespace std::chrono_literals;

// Messages that arrive while a request is in force interrupt once; all wait until they are drained. As with a strict
// device (InfiniBand 11.4.2.2), a request does not interrupt for messages that are already waiting.
class FakeTransport : public Source {
public:
    FakeTransport() {
        EXPECT_EQ(pipe2(ends_.data(), O_NONBLOCK), 0);
        descriptors_[0] = ends_[0];
    }
    ~FakeTransport() override {
        close(ends_[0]);
        hang_up();
    }

    // Like a removed device's completion channel: its descriptor fails (POLLHUP here, POLLERR there).
    void hang_up() {
        if (ends_[1] >= 0) close(ends_[1]);
        ends_[1] = -1;
    }

    void arrive(Notice kind) {
        waiting_.fetch_add(1);
        Notice asked = requested.load();
        if (asked < kind || asked == Notice::kNone) return;
        if (requested.compare_exchange_strong(asked, Notice::kNone)) {
            const char byte = 0;
            EXPECT_EQ(write(ends_[1], &byte, 1), 1);
        }
    }

    std::span<const int> descriptors() const noexcept override { return descriptors_; }
    void request(Notice notice) noexcept override {
        if (before_request) before_request();
        requested_by = std::this_thread::get_id();
        requested.store(notice);
    }
    bool acknowledge(int) noexcept override {
        std::array<char, 16> bytes{};
        while (read(ends_[0], bytes.data(), bytes.size()) > 0) {
        }
        return !refuses_to_acknowledge;
    }
    void lost(int descriptor) noexcept override {
        EXPECT_EQ(descriptor, ends_[0]);
        ++losses;
    }
    int drain() noexcept override {
        const int n = std::min(waiting_.load(), portion);
        if (n > 0 && on_drained) on_drained(n);
        waiting_.fetch_sub(n);
        drained += n;
        return n;
    }

    std::atomic<Notice> requested{Notice::kNone};
    std::thread::id requested_by;  // valid once `requested` is not kNone
    std::atomic<int> drained{0}, losses{0};
    std::atomic<bool> refuses_to_acknowledge{false};
    int portion = std::numeric_limits<int>::max();  // messages that one drain() handles
    std::function<void(int)> on_drained;
    std::function<void()> before_request;

private:
    std::array<int, 2> ends_{};
    std::array<int, 1> descriptors_{};
    std::atomic<int> waiting_{0};
};

// The kind of a message is the lowest request that it meets: an urgent message meets kUrgent and kAny, an ordinary one
// kAny only.
constexpr Notice kUrgentMessage = Notice::kUrgent, kOrdinaryMessage = Notice::kAny;

class HandlerTest : public testing::Test {
protected:
    void start(bool exclusive = true) {
        handler.add(transport);
        ASSERT_EQ(handler.start(exclusive), 0);
    }
    void TearDown() override { handler.stop(); }

    void call_the_library() {
        handler.enter();
        handler.leave();
    }
    // Waits for an event on the handler's thread.
    static bool soon(const std::function<bool()>& holds) {
        for (int i = 0; i < 5000 && !holds(); ++i) std::this_thread::sleep_for(1ms);
        return holds();
    }

    FakeTransport transport;
    Handler handler;
};

TEST_F(HandlerTest, requests_nothing_while_nothing_is_expected) {
    start();
    call_the_library();
    EXPECT_EQ(transport.requested.load(), Notice::kNone);
    EXPECT_EQ(handler.counts().requests.load(), 0u);
}

TEST_F(HandlerTest, requests_once_and_remembers) {
    start();
    handler.expect(1);
    for (int i = 0; i < 10; ++i) call_the_library();
    EXPECT_EQ(transport.requested.load(), Notice::kUrgent);
    EXPECT_EQ(handler.counts().requests.load(), 1u);
}

TEST_F(HandlerTest, requests_nothing_at_the_end_of_a_nested_call) {
    start();
    handler.expect(1);
    handler.enter();
    call_the_library();
    EXPECT_EQ(transport.requested.load(), Notice::kNone);
    handler.leave();
    EXPECT_EQ(transport.requested.load(), Notice::kUrgent);
}

TEST_F(HandlerTest, a_poll_leaves_the_request_to_the_handler) {
    start();
    handler.expect(1);
    handler.enter();
    handler.leave_polling();
    EXPECT_TRUE(soon([&] { return transport.requested.load() == Notice::kUrgent; }));
    EXPECT_NE(transport.requested_by, std::this_thread::get_id());
}

TEST_F(HandlerTest, a_link_passes_on_what_a_transport_reports) {
    HandlerLink link;
    link.attach(&handler);
    start();
    link.under_way(1);
    call_the_library();
    EXPECT_EQ(transport.requested.load(), Notice::kAny);
    link.leaves_callback();
    EXPECT_EQ(handler.counts().callbacks_left.load(), 1u);
    EXPECT_FALSE(link.is_handler());
    std::atomic<bool> was_handler{false};
    transport.on_drained = [&](int) { was_handler = link.is_handler(); };
    transport.arrive(kOrdinaryMessage);
    EXPECT_TRUE(soon([&] { return was_handler.load(); }));
}

TEST(HandlerLink, without_a_handler_does_nothing) {
    const HandlerLink link;
    link.under_way(1);
    link.swept();
    link.leaves_callback();
    EXPECT_FALSE(link.is_handler());
    EXPECT_EQ(link.get(), nullptr);
    const Polling turn(link.get());
}

TEST_F(HandlerTest, who_is_inside_holds_the_turn) {
    start();
    {
        const Inside inside(handler);
        const Polling within(&handler);
        EXPECT_FALSE(handler.turn().try_take());
    }
    EXPECT_TRUE(handler.turn().try_take());
    handler.turn().give_back();
}

TEST_F(HandlerTest, looks_once_more_after_a_request) {
    start();
    transport.arrive(kUrgentMessage);  // nothing was requested: no interrupt
    handler.expect(1);
    call_the_library();
    EXPECT_EQ(transport.drained.load(), 1);
    EXPECT_EQ(handler.counts().interrupts.load(), 0u);
}

TEST_F(HandlerTest, drains_when_interrupted_and_requests_again) {
    start();
    handler.expect(1);
    call_the_library();
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 1; }));
    EXPECT_TRUE(soon([&] { return transport.requested.load() == Notice::kUrgent; }));
    EXPECT_EQ(handler.counts().events.load(), 1u);
}

TEST_F(HandlerTest, ordinary_messages_do_not_interrupt_what_waits_for_urgent_ones) {
    start();
    handler.expect(1);
    call_the_library();
    transport.arrive(kOrdinaryMessage);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(handler.counts().interrupts.load(), 0u);
}

TEST_F(HandlerTest, any_completion_interrupts_while_an_operation_is_under_way) {
    start();
    transport.on_drained = [&](int) { handler.under_way(-1); };
    handler.under_way(1);
    call_the_library();
    EXPECT_EQ(transport.requested.load(), Notice::kAny);
    transport.arrive(kOrdinaryMessage);
    EXPECT_TRUE(soon([&] { return handler.counts().interrupts.load() == 1; }));
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 1; }));
    EXPECT_EQ(transport.requested.load(), Notice::kNone);  // no further messages are expected
}

TEST_F(HandlerTest, two_wake_ups_at_most_drain_a_burst) {
    start();
    handler.expect(64);
    handler.enter();
    handler.leave();
    handler.enter();  // keeps the handler from draining before all have arrived
    for (int i = 0; i < 64; ++i) transport.arrive(kUrgentMessage);
    handler.leave();
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 64; }));
    EXPECT_LE(handler.counts().interrupts.load(), 2u);
}

TEST_F(HandlerTest, leaves_messages_to_a_polling_application) {
    start();
    handler.expect(1);
    call_the_library();
    handler.enter();
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] {
        transport.drain();
        handler.swept();
        return handler.counts().left.load() == 1;
    }));
    EXPECT_EQ(handler.counts().events.load(), 0u);
    EXPECT_EQ(transport.requested.load(), Notice::kNone);
    handler.leave();
    EXPECT_EQ(transport.requested.load(), Notice::kUrgent);
}

TEST_F(HandlerTest, waits_for_an_application_that_is_inside_and_does_not_poll) {
    start();
    handler.expect(1);
    call_the_library();
    handler.enter();
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return handler.counts().interrupts.load() == 1; }));
    std::this_thread::sleep_for(10ms);
    EXPECT_EQ(transport.drained.load(), 0);
    handler.leave_polling();
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 1; }));
}

TEST_F(HandlerTest, with_threads_it_does_not_wait_for_the_application) {
    start(false);
    handler.expect(1);
    handler.enter();
    handler.leave();
    handler.enter();
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 1; }));
    handler.leave();
}

// --- messages present when interrupts are requested do not interrupt -----------------------------------------------

using Site28Look = HandlerTest;

TEST_F(Site28Look, goes_on_until_nothing_is_left) {
    start();
    transport.portion = 1;
    for (int i = 0; i < 5; ++i) transport.arrive(kUrgentMessage);
    handler.expect(1);
    call_the_library();
    EXPECT_EQ(transport.drained.load(), 5);
    EXPECT_EQ(transport.requested.load(), Notice::kUrgent);
    EXPECT_EQ(handler.counts().requests.load(), 1u);
}

TEST_F(Site28Look, goes_on_until_no_source_has_anything_left) {
    FakeTransport other;
    handler.add(other);
    start();
    transport.portion = other.portion = 1;
    for (int i = 0; i < 2; ++i) transport.arrive(kUrgentMessage);
    for (int i = 0; i < 5; ++i) other.arrive(kUrgentMessage);
    handler.expect(1);
    call_the_library();
    EXPECT_EQ(transport.drained.load(), 2);
    EXPECT_EQ(other.drained.load(), 5);
    handler.stop();
}

TEST_F(Site28Look, of_the_handler_goes_on_until_nothing_is_left) {
    start();
    transport.portion = 1;
    handler.expect(1);
    call_the_library();
    bool arrived = false;
    transport.before_request = [&] {  // after the last drain, before the request is in force
        for (int i = 0; i < 5 && !arrived; ++i) transport.arrive(kUrgentMessage);
        arrived = true;
    };
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 6; }));
    EXPECT_EQ(handler.counts().interrupts.load(), 1u);
}

TEST_F(Site28Look, asks_for_what_is_wanted_when_it_ends) {
    start();
    transport.portion = 1;
    for (int i = 0; i < 3; ++i) transport.arrive(kUrgentMessage);
    bool begun = false;
    transport.on_drained = [&](int) {  // the first message begins an operation
        if (!begun) handler.under_way(1);
        begun = true;
    };
    handler.expect(1);
    call_the_library();
    EXPECT_EQ(transport.drained.load(), 3);
    EXPECT_EQ(transport.requested.load(), Notice::kAny);
}

TEST_F(Site28Look, at_an_endless_stream_is_left_to_the_handler) {
    start();
    transport.portion = 1;
    const std::thread::id application = std::this_thread::get_id();
    std::atomic<int> left_to_the_handler{1000};
    transport.on_drained = [&](int) {  // as many arrive as are drained, until the handler has drained some
        if (std::this_thread::get_id() == application || left_to_the_handler.fetch_sub(1) > 0)
            transport.arrive(kUrgentMessage);
    };
    transport.arrive(kUrgentMessage);
    handler.expect(1);
    call_the_library();
    EXPECT_TRUE(soon([&] { return left_to_the_handler.load() < 0; }));
    EXPECT_TRUE(soon([&] { return transport.requested.load() == Notice::kUrgent; }));
}

// --- an application that polls, and makes no call that requests interrupts again -----------------------------------

using Site30Polling = HandlerTest;

TEST_F(Site30Polling, interrupt_that_is_left_to_a_poll_is_requested_again) {
    start();
    handler.expect(1);
    call_the_library();
    handler.enter();
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] {
        transport.drain();
        handler.swept();
        return handler.counts().left.load() == 1;
    }));
    EXPECT_EQ(transport.requested.load(), Notice::kNone);
    handler.leave_polling();  // and then computes
    EXPECT_TRUE(soon([&] { return transport.requested.load() == Notice::kUrgent; }));
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 2; }));
}

TEST_F(Site30Polling, operation_that_begins_in_a_poll_is_looked_after) {
    start();
    handler.enter();
    handler.under_way(1);
    handler.leave_polling();
    EXPECT_TRUE(soon([&] { return transport.requested.load() == Notice::kAny; }));
}

TEST_F(Site30Polling, message_that_came_before_the_request_is_handled) {
    start();
    transport.arrive(kUrgentMessage);
    handler.expect(1);
    handler.enter();
    handler.leave_polling();
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 1; }));
}

TEST_F(Site30Polling, application_is_left_alone_for_a_moment) {
    start();
    handler.expect(1);
    const auto begin = std::chrono::steady_clock::now();
    while (transport.requested.load() == Notice::kNone) {
        handler.enter();
        handler.leave_polling();
        ASSERT_LT(std::chrono::steady_clock::now() - begin, 30s);
    }
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 1ms);
    EXPECT_EQ(handler.counts().requests.load(), 1u);
}

TEST_F(Site30Polling, inside_of_a_call_wakes_nobody) {
    start();
    handler.expect(1);
    handler.enter();
    for (int i = 0; i < 100; ++i) {
        handler.enter();
        handler.leave_polling();
    }
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(transport.requested.load(), Notice::kNone);
    handler.leave();
    EXPECT_EQ(transport.requested.load(), Notice::kUrgent);
    EXPECT_EQ(transport.requested_by, std::this_thread::get_id());
}

// --- a descriptor that has failed is ready forever -----------------------------------------------------------------

using Site32Descriptor = HandlerTest;

TEST_F(Site32Descriptor, that_hangs_up_wakes_the_handler_once_and_its_source_is_told) {
    FakeTransport other;
    handler.add(other);
    start();
    handler.expect(1);
    call_the_library();
    transport.hang_up();
    EXPECT_TRUE(soon([&] { return transport.losses.load() == 1; }));
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(handler.counts().interrupts.load(), 1u);
    other.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return other.drained.load() == 1; }));
    EXPECT_EQ(handler.counts().interrupts.load(), 2u);
    EXPECT_EQ(transport.losses.load(), 1);
    handler.stop();
}

TEST_F(Site32Descriptor, that_cannot_be_acknowledged_is_watched_no_longer) {
    start();
    handler.expect(1);
    call_the_library();
    transport.refuses_to_acknowledge = true;
    transport.arrive(kUrgentMessage);
    EXPECT_TRUE(soon([&] { return transport.drained.load() == 1; }));  // messages that came with it are handled
    EXPECT_EQ(transport.losses.load(), 1);
    EXPECT_TRUE(soon([&] { return transport.requested.load() == Notice::kUrgent; }));
    transport.arrive(kUrgentMessage);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(handler.counts().interrupts.load(), 1u);
}

TEST_F(HandlerTest, nothing_is_lost_in_a_storm) {
    constexpr int kMessages = 20'000;
    start();
    volatile long in_turns = 0;  // not atomic: both sides change it in their turns
    transport.on_drained = [&](int n) { in_turns = in_turns + n; };
    handler.expect(1);
    std::thread wire([&] {
        for (int i = 0; i < kMessages; ++i) transport.arrive(i % 3 == 0 ? kUrgentMessage : kOrdinaryMessage);
        transport.arrive(kUrgentMessage);
    });
    for (int i = 0; i < kMessages; ++i) {
        handler.enter();
        if (i % 2 == 0 && transport.drain() == 0) handler.swept();
        handler.leave();
    }
    wire.join();
    transport.arrive(kUrgentMessage);
    call_the_library();
    EXPECT_TRUE(soon([&] { return transport.drained.load() == kMessages + 2; }));
    handler.stop();
    EXPECT_EQ(in_turns, kMessages + 2);
}

}  // namespace
}  // namespace coop::async
