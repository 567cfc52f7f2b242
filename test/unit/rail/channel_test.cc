// SPDX-License-Identifier: BSD-3-Clause
//
// rail/channel.h and rail/rail.h over fake queue pairs: what is posted on which rail, what waits, and how the failure
// of a rail affects the other rails.
#include "channel_fixture.h"

namespace coop::rail {
namespace {

// --- send queues ---------------------------------------------------------------------------------------------------

TEST_F(ChannelTest, posts_messages_on_the_rails_in_turn_and_numbers_them) {
    open({kUp, kUp});
    send(5);
    EXPECT_EQ(posted(0), 3u);
    EXPECT_EQ(posted(1), 2u);
    EXPECT_EQ(channel.prepared, (std::vector<sched::SequenceNumber>{0, 1, 2, 3, 4}));
    EXPECT_EQ(channel.rails[0].counts.sends, 3u);
    EXPECT_EQ(channel.rails[0].counts.bytes, 300u);
    EXPECT_EQ(known(0).in(sched::Direction::kOut).outstanding_bytes, 300u);
}

TEST_F(ChannelTest, queues_what_a_full_send_queue_does_not_take_and_posts_it_in_order) {
    open({kUp});
    send(kDepth + 3);
    EXPECT_EQ(posted(0), kDepth);
    EXPECT_EQ(channel.rails[0].counts.waits, 3u);
    EXPECT_EQ(known(0).in(sched::Direction::kOut).waiting_bytes, 300u);
    complete(0);
    complete(0);
    EXPECT_EQ(posted(0), kDepth);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, works[kDepth + 1].get());
    EXPECT_EQ(known(0).in(sched::Direction::kOut).waiting_bytes, 100u);
    for (std::size_t i = 2; i < kDepth + 3; ++i) complete(0);
    EXPECT_EQ(posted(0), 0u);
    EXPECT_EQ(channel.rails[0].in_flight(), 0u);
    EXPECT_EQ(known(0).in(sched::Direction::kOut).backlog_bytes(), 0u);
    EXPECT_EQ(channel.window.under_way(), 0u);
}

TEST_F(ChannelTest, lets_nothing_overtake_what_waits_on_a_rail) {
    open({kUp}, true);
    send(sched::kFirstCredits + 1);
    FakeWork& put = new_work(WorkKind::kPut);
    channel.submit_stripe(put, false);  // needs no credit, but the message before it does
    EXPECT_EQ(posted(0), sched::kFirstCredits);
    EXPECT_TRUE(channel.on_grant({0, 1}));
    EXPECT_EQ(posted(0), sched::kFirstCredits + 2);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &put);
}

TEST_F(ChannelTest, a_list_takes_as_many_places_as_it_has_requests) {
    open({kUp});
    FakeWork &first = new_work(WorkKind::kPut), &list = new_work(WorkKind::kPut), &later = new_work(WorkKind::kPut);
    first.requests = 3;
    list.requests = kDepth - 2;
    channel.submit_stripe(first, false);
    EXPECT_EQ(channel.rails[0].in_flight(), 3u);
    channel.submit_stripe(list, false);  // there is room for some of its requests, but not for all
    channel.submit_stripe(later, false);
    EXPECT_EQ(posted(0), 1u);
    EXPECT_EQ(channel.rails[0].counts.waits, 2u);
    complete(0);
    EXPECT_EQ(posted(0), 2u);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &later);
    EXPECT_EQ(channel.rails[0].in_flight(), kDepth - 1);
    EXPECT_EQ(channel.rails[0].counts.stripes, kDepth + 2u);
    complete(0);
    EXPECT_EQ(channel.rails[0].in_flight(), 1u);
    complete(0);
    EXPECT_EQ(channel.rails[0].in_flight(), 0u);
}

// Nothing else would complete, so the list would wait for ever.
TEST_F(ChannelTest, a_list_asks_for_the_places_of_inline_messages) {
    open({RailState::kUp});
    ASSERT_TRUE(send_inline());
    FakeWork& list = new_work(WorkKind::kPut);
    list.requests = kDepth;
    channel.submit_stripe(list, false);
    ASSERT_EQ(posted(0), 2u);  // the message, and a mark behind it
    complete(0);
    ASSERT_EQ(posted(0), 1u);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &list);
    EXPECT_EQ(channel.rails[0].in_flight(), kDepth);
}

TEST_F(ChannelTest, a_list_of_reads_needs_one_token) {
    open({kUp});
    for (int i = 0; i < 3; ++i) {
        FakeWork& list = new_work(WorkKind::kGet);
        list.requests = 4;
        channel.submit_stripe(list, true);
    }
    EXPECT_EQ(posted(0), 2u);
    EXPECT_EQ(channel.rails[0].in_flight(), 8u);
    complete(0);
    EXPECT_EQ(posted(0), 2u);
}

TEST_F(ChannelTest, posts_a_rider_after_its_stripe_and_before_later_ones) {
    open({kUp}, true);
    FakeWork &stripe = new_work(WorkKind::kPut), &rider = new_work(), &later = new_work(WorkKind::kPut);
    rider.wants_credit = true;
    for (std::uint32_t i = 1; i < kDepth; ++i) channel.submit_stripe(new_work(WorkKind::kPut), false);
    while (channel.take_credit(channel.rails[0])) continue;
    channel.submit_stripe(stripe, false);
    channel.submit(rider);
    channel.submit_stripe(later, false);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &stripe);
    complete(0);
    complete(0);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &stripe) << "there is room but no credit for the rider";
    EXPECT_TRUE(channel.on_grant({0, 1}));
    ASSERT_EQ(posted(0), kDepth);
    EXPECT_EQ(channel.rails[0].qp.posted[kDepth - 2].id, &rider);
    EXPECT_EQ(channel.rails[0].qp.posted[kDepth - 1].id, &later);
}

// --- credits -------------------------------------------------------------------------------------------------------

TEST_F(ChannelTest, sends_as_many_messages_as_it_has_credits) {
    open({kUp}, true);
    send(sched::kFirstCredits + 2);
    EXPECT_EQ(posted(0), sched::kFirstCredits);
    complete(0);  // room in the send queue is not what is missing
    EXPECT_EQ(posted(0), sched::kFirstCredits - 1);
    EXPECT_TRUE(channel.on_grant({0, 1}));
    EXPECT_EQ(posted(0), sched::kFirstCredits);
    EXPECT_TRUE(channel.on_grant({0, 5}));
    EXPECT_EQ(posted(0), sched::kFirstCredits + 1);
    EXPECT_EQ(channel.credits[0].left(), 4u);
}

TEST_F(ChannelTest, needs_no_credit_for_a_message_that_is_written_into_the_ring) {
    open({kUp}, true);
    channel.has_ring = true;
    send(kDepth);
    EXPECT_EQ(posted(0), kDepth);
    EXPECT_EQ(channel.credits[0].left(), sched::kFirstCredits);
}

TEST_F(ChannelTest, sends_credits_past_messages_that_wait_for_some) {
    open({kUp}, true);
    send(sched::kFirstCredits + 1);
    FakeWork& credits = new_work();
    channel.send_first(credits);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &credits);
    while (channel.rails[0].has_room()) {
        FakeWork& more = new_work();
        channel.send_first(more);
    }
    FakeWork& last = new_work();
    channel.send_first(last);  // the send queue is full: first of those that wait
    EXPECT_EQ(channel.rails[0].waiting.front(), &last);
    complete(0);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &last);
}

TEST_F(ChannelTest, refuses_more_credits_than_a_queue_pair_has) {
    open({kUp}, true);
    EXPECT_FALSE(channel.on_grant({0, sched::Grant::kMax}));
    EXPECT_EQ(channel.credits[0].left(), sched::kFirstCredits);
}

TEST_F(ChannelTest, keeps_credits_that_come_before_the_rails_are_known) {
    EXPECT_TRUE(channel.on_grant({1, 3}));
    open({kUp, kUp}, true);
    EXPECT_EQ(channel.credits[1].left(), sched::kFirstCredits + 3);
}

TEST_F(ChannelTest, returns_the_credits_of_the_rail_that_owes_most) {
    open({kUp, kUp, kClosed});
    while (channel.take_owed_receives().count != 0) {
    }
    for (int i = 0; i < 3; ++i) channel.rails[1].own_receives.on_free();
    for (int i = 0; i < 9; ++i) channel.rails[2].own_receives.on_free();  // closed: the peer sends nothing there
    channel.rails[0].own_receives.on_free();
    const sched::Grant first = channel.take_owed_receives();
    EXPECT_EQ(first.rail, 1);
    EXPECT_EQ(first.count, 3u);
    EXPECT_EQ(channel.take_owed_receives().rail, 0);
    EXPECT_EQ(channel.take_owed_receives().count, 0u);
}

TEST_F(ChannelTest, returns_credits_for_each_rail_that_owes_half) {
    open({kUp, kUp, kUp});
    channel.rails[1].own_receives = sched::ReceiveCredits(320);
    while (channel.take_owed_receives().count != 0) {
    }
    EXPECT_EQ(channel.rails_that_owe_half(), 0u);
    for (int i = 0; i < 100; ++i) channel.rails[1].own_receives.on_free();  // less than half, but most
    for (int i = 0; i < 14; ++i) channel.rails[0].own_receives.on_free();   // just half
    for (int i = 0; i < 28; ++i) channel.rails[2].own_receives.on_free();   // all
    EXPECT_EQ(channel.rails_that_owe_half(), 2u);
    EXPECT_EQ(channel.take_owed_receives().rail, 2);
    EXPECT_EQ(channel.take_owed_receives().rail, 0);
    EXPECT_EQ(channel.rails_that_owe_half(), 0u);
    EXPECT_EQ(channel.take_owed_receives().rail, 1);
}

// --- inline data and marks -----------------------------------------------------------------------------------------

TEST_F(ChannelTest, asks_for_one_completion_of_several_inline_sends) {
    open({kUp});
    for (std::uint32_t i = 0; i < kDepth / 4; ++i) EXPECT_TRUE(send_inline());
    const auto& queue = channel.rails[0].qp.posted;
    for (std::uint32_t i = 0; i < kDepth / 4; ++i) EXPECT_EQ(queue[i].completes, i + 1 == kDepth / 4) << i;
    EXPECT_EQ(channel.window.under_way(), kDepth / 4);
    complete(0);
    EXPECT_EQ(channel.rails[0].in_flight(), 0u);
    EXPECT_EQ(channel.window.under_way(), 0u);
}

TEST_F(ChannelTest, posts_inline_data_at_once_or_not_at_all) {
    open({kUp}, true);
    EXPECT_EQ(channel.rail_for_inline(65), nullptr);
    for (std::uint32_t i = 0; i < sched::kFirstCredits; ++i) EXPECT_TRUE(send_inline());
    EXPECT_FALSE(send_inline());  // no credit
    EXPECT_EQ(channel.window.under_way(), sched::kFirstCredits);
    EXPECT_TRUE(channel.on_grant({0, 100}));
    while (channel.rails[0].has_room()) EXPECT_TRUE(send_inline());
    EXPECT_FALSE(send_inline());  // no room
}

TEST_F(ChannelTest, asks_for_inline_sends_when_the_window_is_full) {
    open({kUp});
    EXPECT_TRUE(send_inline());
    for (std::uint32_t i = 1; i < sched::kSendWindow; ++i) {
        send(1);
        if (posted(0) == kDepth)
            while (posted(0) > 1) {
                auto& queue = channel.rails[0].qp.posted;
                const auto posted = queue[1];
                queue.erase(queue.begin() + 1);
                channel.on_completed(*static_cast<FakeWork*>(posted.id), 1);
            }
    }
    EXPECT_FALSE(channel.window.has_room());  // the inline message has not landed, as far as is known
    send(1);
    EXPECT_EQ(channel.window_waits, 1u);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &channel.rails[0].mark);
    while (posted(0) != 0) complete(0);
    EXPECT_TRUE(channel.beyond.empty());
    EXPECT_EQ(channel.prepared.back(), sched::kSendWindow);
    EXPECT_EQ(channel.window.under_way(), 0u);
}

// --- reads ---------------------------------------------------------------------------------------------------------

TEST_F(ChannelTest, posts_as_many_reads_as_there_are_tokens) {
    open({kUp, kUp});
    submit_read(0);
    submit_read(0);
    FakeWork& third = submit_read(0);
    EXPECT_EQ(posted(0), 2u);
    EXPECT_EQ(channel.rails[0].counts.read_waits, 1u);
    EXPECT_EQ(known(0).in(sched::Direction::kIn).waiting_bytes, 100u);
    EXPECT_TRUE(channel.can_read());
    submit_read(1);
    submit_read(1);
    EXPECT_FALSE(channel.can_read());
    complete(0);
    EXPECT_EQ(channel.rails[0].qp.posted.back().id, &third);
    EXPECT_EQ(known(0).in(sched::Direction::kIn).waiting_bytes, 0u);
}

TEST_F(ChannelTest, posts_reads_on_their_own_queue_pair) {
    open({kUp, kUp});
    EXPECT_FALSE(channel.reads_apart());
    FakeRail& reader = add_reader(0);
    EXPECT_FALSE(channel.reads_apart()) << "rail 1 has none";
    add_reader(1);
    EXPECT_TRUE(channel.reads_apart());
    for (std::uint32_t i = 0; i < kDepth; ++i) {
        FakeWork& put = new_work(WorkKind::kPut);
        put.rail = 0;
        channel.submit_stripe(put, false);
    }
    FakeWork& first = submit_read(0);
    submit_read(0);
    FakeWork& third = submit_read(0);
    EXPECT_EQ(posted(0), kDepth) << "the writes fill their send queue, which does not matter to reads";
    EXPECT_EQ(reader.qp.posted.size(), 2u);
    EXPECT_EQ(reader.counts.read_waits, 1u);
    EXPECT_EQ(channel.rails[0].counts.read_waits, 0u);
    EXPECT_EQ(known(0).in(sched::Direction::kIn).outstanding_bytes, 200u) << "the scheduler knows one rail";
    reader.qp.posted.pop_front();
    channel.on_completed(first, 1000);
    EXPECT_EQ(reader.qp.posted.back().id, &third);
    EXPECT_EQ(reader.in_flight(), 2u);
    EXPECT_EQ(channel.rails[0].in_flight(), kDepth);
}

TEST_F(ChannelTest, posts_reads_with_riders_and_those_of_a_closed_queue_pair_on_the_rail) {
    open({kUp, kUp});
    add_reader(0);
    add_reader(1, kClosed);
    submit_read(0, false);
    submit_read(1);
    EXPECT_EQ(posted(0), 1u);
    EXPECT_EQ(posted(1), 1u);
    EXPECT_FALSE(channel.reads_apart());
}

TEST_F(ChannelTest, a_rail_fails_with_its_queue_pair_for_reads) {
    open({kUp, kUp});
    FakeRail& reader = add_reader(0);
    EXPECT_EQ(channel.on_rail_event(&reader, RailEvent::kQueuePairError), RailDecision::kEndJob);
    EXPECT_EQ(channel.rails[0].state, RailState::kFailed);
    EXPECT_FALSE(channel.rails[0].has_room());
    EXPECT_FALSE(reader.has_room());
    EXPECT_EQ(channel.on_rail_event(&channel.rails[0], RailEvent::kSendFlushed), RailDecision::kIgnore);
}

TEST_F(ChannelTest, ignores_the_probe_of_a_closed_queue_pair_for_reads) {
    open({kUp});
    const FakeRail& reader = add_reader(0, kClosed);
    EXPECT_EQ(channel.on_failed(reader.mark, RailEvent::kSendFlushed), RailDecision::kIgnore);
    EXPECT_EQ(channel.rails[0].state, kUp);
}

TEST_F(ChannelTest, posts_a_fenced_read_without_a_token) {
    open({kUp});
    for (int i = 0; i < 3; ++i) channel.submit_stripe(new_work(WorkKind::kGet), false);
    EXPECT_EQ(posted(0), 3u);
    complete(0);
    EXPECT_EQ(channel.rails[0].reads.outstanding(), 0u);
}

// --- failures and numbers ------------------------------------------------------------------------------------------

TEST_F(ChannelTest, reports_the_first_error_of_a_rail_and_ignores_what_follows_from_it) {
    open({kUp, kUp});
    send(6);
    EXPECT_EQ(fail(0), (std::vector{RailDecision::kEndJob, RailDecision::kIgnore, RailDecision::kIgnore}));
    EXPECT_EQ(channel.rails[0].state, RailState::kFailed);
    EXPECT_EQ(known(0).in(sched::Direction::kOut).outstanding_bytes, 0u);
    EXPECT_EQ(channel.on_rail_event(&channel.rails[0], RailEvent::kQueuePairError), RailDecision::kIgnore);
    EXPECT_EQ(channel.rails[1].state, RailState::kUp);
}

TEST_F(ChannelTest, sends_over_the_other_rails_when_one_has_failed) {
    open({kUp, kUp, kUp});
    EXPECT_EQ(channel.on_rail_event(&channel.rails[1], RailEvent::kQueuePairError), RailDecision::kEndJob);
    send(4);
    EXPECT_EQ(posted(0), 2u);
    EXPECT_EQ(posted(1), 0u);
    EXPECT_EQ(posted(2), 2u);
    for (const FakeWork* work : {works[1].get(), works[3].get()}) EXPECT_EQ(work->rail, 2);
    EXPECT_EQ(channel.rails.up(), 0b101u);
}

TEST_F(ChannelTest, posts_nothing_more_on_a_rail_that_has_failed) {
    open({kUp, kUp});
    send(2 * kDepth + 2);
    EXPECT_FALSE(channel.rails[0].waiting.empty());
    FakeWork* const waiting = channel.rails[0].waiting.front();
    fail(0);
    EXPECT_EQ(posted(0), 0u);
    EXPECT_EQ(channel.rails[0].waiting.front(), waiting);  // stays for the owner of the channel, which ends the job
    FakeWork& late = new_work(WorkKind::kPut);
    late.rail = 0;
    channel.submit_stripe(late, false);
    EXPECT_TRUE(channel.on_grant({0, 1}));
    EXPECT_EQ(posted(0), 0u);
    complete(1);
    EXPECT_EQ(posted(1), kDepth);
}

TEST_F(ChannelTest, takes_a_refused_post_for_a_failure) {
    open({kUp, kUp});
    channel.rails[0].qp.refuses = ENOMEM;
    send(2);
    EXPECT_EQ(channel.refused, (std::vector{works[0].get()}));
    EXPECT_EQ(channel.last_errno, ENOMEM);
    EXPECT_EQ(channel.decision, RailDecision::kEndJob);
    EXPECT_EQ(channel.rails[0].in_flight(), 0u);
    EXPECT_EQ(known(0).in(sched::Direction::kOut).backlog_bytes(), 0u);
    EXPECT_EQ(posted(1), 1u);
}

TEST_F(ChannelTest, takes_a_refused_inline_send_for_a_failure) {
    open({kUp});
    channel.rails[0].qp.refuses = EINVAL;
    EXPECT_TRUE(send_inline());
    EXPECT_EQ(channel.refused, (std::vector{&channel.rails[0].mark}));
    EXPECT_EQ(channel.decision, RailDecision::kEndJob);
}

TEST_F(ChannelTest, ignores_the_probe_of_a_closed_rail) {
    open({kUp, kClosed});
    EXPECT_EQ(channel.on_failed(channel.rails[1].mark, RailEvent::kSendFlushed), RailDecision::kIgnore);
    EXPECT_EQ(channel.rails[1].state, kClosed);
}

TEST_F(ChannelTest, decides_on_trouble_of_a_rail_that_it_has_yet_to_take) {
    EXPECT_EQ(channel.on_rail_event(nullptr, RailEvent::kReceiveFlushed), RailDecision::kIgnore);
    EXPECT_EQ(channel.on_rail_event(nullptr, RailEvent::kReceiveError), RailDecision::kEndJob);
}

TEST_F(ChannelTest, uses_a_rail_by_its_number_whatever_others_do) {
    open({kUp, kClosed, kUp, kUp});
    static_cast<void>(channel.on_rail_event(&channel.rails[0], RailEvent::kSendError));
    send(4);
    EXPECT_EQ(posted(0), 0u);
    EXPECT_EQ(posted(1), 0u);
    EXPECT_EQ(posted(2), 2u);
    EXPECT_EQ(posted(3), 2u);
    EXPECT_EQ(channel.rails[3].number(), 3);
    complete(3);
    EXPECT_EQ(channel.rails[3].in_flight(), 1u);
}

TEST_F(ChannelTest, a_flushed_request_is_no_longer_outstanding) {
    open({kUp, kUp});
    send(2);
    EXPECT_EQ(channel.on_failed(*works[1], RailEvent::kSendFlushed), RailDecision::kEndJob);
    EXPECT_EQ(known(1).in(sched::Direction::kOut).outstanding_bytes, 0u);
    complete(0);
    EXPECT_EQ(channel.rails[0].in_flight(), 0u);
}

}  // namespace
}  // namespace coop::rail
