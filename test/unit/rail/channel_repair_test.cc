// SPDX-License-Identifier: BSD-3-Clause
//
// rail/channel.h and rail/in_order.h: what becomes of requests whose rail has failed, if the channel repairs.
#include "channel_fixture.h"

namespace coop::rail {
namespace {

// What the transport does when a rail fails: its own queue pair is drained, and then the peer's.
class RepairTest : public ChannelTest {
protected:
    void SetUp() override {
        open({kUp, kUp});
        channel.repairs = true;
    }
    FakeWork& submit(WorkKind kind, bool follows = false) {
        FakeWork& work = new_work(kind);
        work.follows = follows;
        if (kind == WorkKind::kSend) channel.submit(work);
        else channel.submit_stripe(work, false);
        return work;
    }
    void stop() {
        channel.shut(0);
        channel.displace_posted(channel.rails[0]);
        channel.resubmit_waiting(channel.rails[0]);
    }
    void repeat() {
        channel.resubmit_posted(channel.rails[0], [](FakeWork&) { return true; });
    }
    // With a new queue pair.
    void come_back(RailIndex number, std::uint32_t generation = 2) {
        auto rail = std::make_unique<FakeRail>();
        rail->state = kUp;
        rail->generation = generation;
        rail->set_depth(kDepth);
        rail->reads.reset(2);
        rail->mark.rail = number;
        retired.push_back(channel.rails.replace(number, std::move(rail), nullptr).first);
        channel.admit(number, sched::RailState::kUp);
    }
    bool is_posted(const FakeWork& work) const {
        for (const auto& each : channel.rails[1].qp.posted)
            if (each.id == &work) return true;
        return false;
    }

    std::vector<std::unique_ptr<FakeRail>> retired;
};

TEST_F(RepairTest, a_message_behind_stripes_waits_until_they_have_ended_on_other_rails) {
    FakeWork& first = submit(WorkKind::kPut);
    FakeWork& signal = submit(WorkKind::kSend, true);
    FakeWork& message = submit(WorkKind::kSend);
    FakeWork& second = submit(WorkKind::kPut);
    stop();
    EXPECT_EQ(channel.displaced(), 2u);
    repeat();
    EXPECT_TRUE(is_posted(first) && is_posted(second) && is_posted(message));
    EXPECT_FALSE(is_posted(signal));
    complete(1);
    EXPECT_FALSE(is_posted(signal)) << "the second put has not ended";
    complete(1);
    complete(1);
    EXPECT_EQ(channel.displaced(), 0u);
    EXPECT_TRUE(is_posted(signal));
}

TEST_F(RepairTest, a_stripe_without_a_usable_rail_waits_for_one) {
    channel.shut(1);
    stop();
    FakeWork &put = new_work(WorkKind::kPut), &read = new_work(WorkKind::kGet);
    channel.park(put, false);
    channel.park(read, true);
    EXPECT_EQ(channel.displaced(), 2u) << "signals must not overtake them";
    channel.rails[1].set_depth(kDepth);
    channel.rails.set_state(1, kUp);
    channel.admit(1, sched::RailState::kUp);
    EXPECT_TRUE(is_posted(put) && is_posted(read));
    EXPECT_TRUE(read.has_token && !put.has_token);
    complete(1);
    complete(1);
    EXPECT_EQ(channel.displaced(), 0u);
}

// It was never posted, so that it could be sent at once.
TEST_F(RepairTest, a_message_that_waited_behind_stripes_waits_for_them) {
    for (std::uint32_t i = 0; i < kDepth; ++i) submit(WorkKind::kPut);
    FakeWork& put = submit(WorkKind::kPut);
    FakeWork& signal = submit(WorkKind::kSend, true);
    stop();
    EXPECT_TRUE(is_posted(put));
    EXPECT_FALSE(is_posted(signal));
    EXPECT_EQ(channel.displaced(), kDepth + 1);
    repeat();
    for (std::uint32_t i = 0; i <= kDepth; ++i) complete(1);
    EXPECT_TRUE(is_posted(signal));
}

TEST_F(RepairTest, a_message_behind_stripes_that_have_ended_goes_at_once) {
    submit(WorkKind::kPut);
    FakeWork& signal = submit(WorkKind::kSend, true);
    complete(0);
    stop();
    repeat();
    EXPECT_TRUE(is_posted(signal));
}

TEST_F(RepairTest, a_read_behind_writes_waits_until_they_have_ended) {
    FakeWork& put = submit(WorkKind::kPut);
    stop();
    FakeWork& read = new_work(WorkKind::kGet);
    read.follows = true;
    read.rail = 1;
    channel.submit_stripe(read, true);
    EXPECT_FALSE(is_posted(read));
    repeat();
    EXPECT_TRUE(is_posted(put));
    complete(1);
    EXPECT_TRUE(is_posted(read));
}

// The peer says that it has got what is behind the stripe.
TEST_F(RepairTest, a_stripe_that_has_ended_at_the_peer_holds_up_nothing) {
    FakeWork& put = submit(WorkKind::kPut);
    FakeWork& signal = submit(WorkKind::kSend, true);
    stop();
    channel.rails[0].on_completed(put);
    repeat();
    EXPECT_FALSE(is_posted(signal));
    channel.settle(put);
    EXPECT_TRUE(is_posted(signal));
}

TEST_F(RepairTest, a_refused_list_counts_as_posted_because_a_part_of_it_may_have_been) {
    channel.rails[0].qp.refuses = ENOMEM;
    FakeWork& list = new_work(WorkKind::kPut);
    list.requests = 4;
    channel.submit_stripe(list, false);
    EXPECT_EQ(channel.refused, std::vector<FakeWork*>{&channel.rails[0].mark});
    EXPECT_EQ(channel.decision, RailDecision::kRepair);
    EXPECT_EQ(channel.rails[0].posted.front(), &list);
    EXPECT_EQ(known(0).in(sched::Direction::kOut).outstanding_bytes, list.bytes);
    stop();
    EXPECT_FALSE(is_posted(list));
    repeat();
    EXPECT_TRUE(is_posted(list));
    EXPECT_EQ(known(0).in(sched::Direction::kOut).outstanding_bytes, 0u);
}

// --- credits ---------------------------------------------------------------------------------------------------------

// The peer may use a new queue pair earlier. The generations between were skipped because they never carried data here.
TEST_F(RepairTest, credits_for_the_next_queue_pair_count_also_after_skipped_generations) {
    for (std::uint32_t generation = 2; generation < 40; generation += 1 + generation % sched::Grant::kMostAhead) {
        stop();
        ASSERT_TRUE(channel.on_grant({0, 5, (generation - 1) % sched::Grant::kGenerations}));
        come_back(0, generation);
        EXPECT_EQ(channel.credits[0].left(), sched::kFirstCredits + 5) << generation;
    }
}

TEST_F(RepairTest, credits_for_a_queue_pair_that_is_gone_are_void) {
    stop();
    come_back(0, 20);
    constexpr std::uint32_t kMostPast = sched::Grant::kGenerations - sched::Grant::kMostAhead - 1;
    for (std::uint32_t past = 1; past <= kMostPast; ++past) {
        ASSERT_TRUE(channel.on_grant({0, 5, (19 - past) % sched::Grant::kGenerations}));
        EXPECT_EQ(channel.credits[0].left(), sched::kFirstCredits) << past;
    }
    ASSERT_TRUE(channel.on_grant({0, 5, 19 % sched::Grant::kGenerations}));
    EXPECT_EQ(channel.credits[0].left(), sched::kFirstCredits + 5);
}

// --- requests that keep their order -----------------------------------------------------------------------------------

class InOrderTest : public RepairTest {
protected:
    FakeWork& start(WorkKind kind = WorkKind::kPut) {
        FakeWork& work = new_work(kind);
        channel.submit_in_order(work, kind == WorkKind::kGet);
        return work;
    }
    std::vector<const void*> on(RailIndex rail) const {
        std::vector<const void*> ids;
        for (const auto& each : channel.rails[rail].qp.posted) ids.push_back(each.id);
        return ids;
    }
    static std::vector<const void*> list(std::initializer_list<FakeWork*> all) {
        return std::vector<const void*>(all.begin(), all.end());
    }
    void fail_rail(RailIndex rail) {
        channel.shut(rail);
        channel.displace_posted(channel.rails[rail]);
        channel.resubmit_waiting(channel.rails[rail]);
    }
    void repeat(RailIndex rail) {
        channel.resubmit_posted(channel.rails[rail], [](FakeWork&) { return true; });
    }
};

TEST_F(InOrderTest, all_take_one_rail) {
    FakeWork &put = start(), &atomic = start(WorkKind::kAtomic), &get = start(WorkKind::kGet);
    EXPECT_EQ(on(0), list({&put, &atomic, &get}));
    complete(0);
    complete(0);
    complete(0);
    FakeWork& next = start();
    EXPECT_EQ(on(0), list({&next}));
}

// The atomic operation was never posted. It could go at once, but the put before it may be executed again.
TEST_F(InOrderTest, none_takes_another_rail_before_all_have_left_the_one_that_has_failed) {
    FakeWork &put = start(), &second = start();
    fail_rail(0);
    FakeWork &atomic = start(WorkKind::kAtomic), &third = start();
    EXPECT_TRUE(on(1).empty());
    EXPECT_TRUE(channel.in_order.has_waiting());
    repeat(0);
    EXPECT_EQ(on(1), list({&put, &second, &atomic, &third}));
    EXPECT_FALSE(channel.in_order.has_waiting());
    for (int i = 0; i < 4; ++i) complete(1);
    EXPECT_EQ(channel.displaced(), 0u);
}

TEST_F(InOrderTest, one_that_has_completed_after_the_failure_is_not_repeated) {
    FakeWork& put = start();
    fail_rail(0);
    FakeWork& later = start();
    channel.on_completed(put, 1);
    EXPECT_EQ(on(1), list({&later}));
    complete(1);
    EXPECT_EQ(channel.displaced(), 0u);
}

TEST_F(InOrderTest, those_that_waited_on_the_rail_stay_behind_the_posted_ones) {
    std::vector<const void*> all;
    for (std::uint32_t i = 0; i < kDepth + 3; ++i) all.push_back(&start());
    fail_rail(0);
    EXPECT_TRUE(on(1).empty());
    repeat(0);
    all.resize(kDepth);
    EXPECT_EQ(on(1), all);
}

// The first rail is back, but some are still on the second one.
TEST_F(InOrderTest, a_rail_that_is_back_is_not_used_while_others_are_on_another_one) {
    FakeWork& put = start();
    fail_rail(0);
    repeat(0);
    come_back(0);
    FakeWork& later = start();
    EXPECT_EQ(on(1), list({&put, &later}));
    complete(1);
    complete(1);
    FakeWork& last = start();
    EXPECT_EQ(on(0).back(), &last);
}

TEST_F(InOrderTest, without_a_rail_that_reaches_the_HCA_they_wait_for_one) {
    channel.reach_atomics[1] = false;
    FakeWork& put = start();
    fail_rail(0);
    repeat(0);
    FakeWork& later = start(WorkKind::kAtomic);
    EXPECT_TRUE(on(1).empty());
    come_back(0);
    EXPECT_EQ(on(0), list({&put, &later}));
}

TEST_F(InOrderTest, a_second_failure_keeps_the_order) {
    FakeWork &put = start(), &get = start(WorkKind::kGet);
    fail_rail(0);
    repeat(0);
    FakeWork& later = start();
    fail_rail(1);
    FakeWork& last = start();
    come_back(0);
    EXPECT_TRUE(on(0).empty()) << "the second rail may still execute some";
    repeat(1);
    EXPECT_EQ(on(0), list({&put, &get, &later, &last}));
}

// Its rail was lost before it was started. What is behind it must not go first.
TEST_F(InOrderTest, one_that_finds_no_rail_is_displaced) {
    channel.reach_atomics[1] = false;
    fail_rail(0);
    start();
    EXPECT_EQ(channel.displaced(), 1u);
    come_back(0);
    complete(0);
    EXPECT_EQ(channel.displaced(), 0u);
}

// Reads wait for tokens there, of which the rail has two.
TEST_F(InOrderTest, reads_that_wait_for_a_token_leave_the_rail_too) {
    for (int i = 0; i < 3; ++i) start(WorkKind::kGet);
    EXPECT_EQ(posted(0), 2u);
    fail_rail(0);
    repeat(0);
    EXPECT_EQ(posted(1), 2u);
    complete(1);
    EXPECT_EQ(posted(1), 2u);
}

TEST_F(InOrderTest, a_refused_post_keeps_the_order) {
    FakeWork& put = start();
    channel.rails[0].qp.refuses = ENOMEM;
    FakeWork& refused = start();  // the transport shuts the rail and submits it again
    EXPECT_EQ(channel.refused, std::vector<FakeWork*>{&refused});
    channel.displace_posted(channel.rails[0]);
    FakeWork& later = start();
    channel.resubmit(refused);
    EXPECT_TRUE(on(1).empty());
    repeat(0);
    EXPECT_EQ(on(1), list({&put, &refused, &later}));
}

}  // namespace
}  // namespace coop::rail
