// SPDX-License-Identifier: BSD-3-Clause
//
// sched/scheduler.h: the rails that each policy uses.
#include "sched_rails.h"

#include <map>

namespace coop::sched {
namespace {

using namespace test;

TEST(Binding, sends_everything_over_one_rail) {
    SchedConfig config = small_by(Policy::kBinding);
    config.large_policy = Policy::kBinding;
    Scheduler scheduler(config, rails_from(2, 4));
    EXPECT_EQ(rails_of_messages(scheduler, 3), (Rails{2, 2, 2}));
    EXPECT_EQ(rails_of_messages(scheduler, 2, 64 * kMiB), (Rails{2, 2}));
}

TEST(RoundRobin, takes_each_rail_in_turn) {
    const SchedConfig config = small_by(Policy::kRoundRobin);
    Scheduler scheduler(config, rails_of(3));
    EXPECT_EQ(rails_of_messages(scheduler, 7), (Rails{0, 1, 2, 0, 1, 2, 0}));
}

TEST(RailOfSmall, takes_the_turns_that_schedules_would_have) {
    for (Policy policy :
         {Policy::kBinding, Policy::kRoundRobin, Policy::kWindowRoundRobin, Policy::kWeightedRoundRobin}) {
        SchedConfig config = small_by(policy);
        config.window = 2;
        Scheduler by_schedule(config, rails_of(3)), by_rail(config, rails_of(3));
        for (int i = 0; i < 20; ++i) {
            const Schedule schedule = by_schedule.make_schedule(64, Marker::kNone, 0);
            ASSERT_EQ(by_rail.rail_of_small(64), schedule[0].rail) << name(policy);
            ASSERT_EQ(by_rail.describe_last_small(), by_schedule.describe_last_small());
        }
    }
}

TEST(RailOfSmall, shares_its_turns_with_schedules_of_small_messages) {
    const SchedConfig config = small_by(Policy::kRoundRobin);
    Scheduler scheduler(config, rails_of(3));
    EXPECT_EQ(scheduler.rail_of_small(64), 0);
    EXPECT_EQ(rails_of_messages(scheduler, 1), (Rails{1}));
    EXPECT_EQ(scheduler.rail_of_small(64), 2);
}

TEST(Scheduler, counts_unmeasured_messages_as_under_way) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    const std::uint64_t least = scheduler.limits().min;
    scheduler.on_posted(1, least, kNotMeasured);
    EXPECT_EQ(scheduler.rails()[1].in(Direction::kOut).outstanding_bytes, least);
    EXPECT_EQ(scheduler.rails()[1].in(Direction::kOut).outstanding_stripes, 1u);
    scheduler.on_completed(1, least, kNotMeasured, 1000);
    EXPECT_EQ(scheduler.rails()[1].in(Direction::kOut).outstanding_bytes, 0u);
    EXPECT_EQ(scheduler.rails()[1].in(Direction::kOut).outstanding_stripes, 0u);
}

TEST(RoundRobin, skips_a_rail_that_is_down_and_uses_it_when_it_is_back) {
    const SchedConfig config = small_by(Policy::kRoundRobin);
    Scheduler scheduler(config, rails_of(3));
    scheduler.set_state(1, RailState::kDown);
    EXPECT_EQ(rails_of_messages(scheduler, 4), (Rails{0, 2, 0, 2}));
    scheduler.set_state(1, RailState::kUp);
    EXPECT_EQ(rails_of_messages(scheduler, 3), (Rails{0, 1, 2}));
}

TEST(RoundRobin, has_turns_of_its_own_for_large_messages) {
    SchedConfig config = small_by(Policy::kRoundRobin);
    config.large_policy = Policy::kRoundRobin;
    Scheduler scheduler(config, rails_of(2));
    Rails large;
    for (int i = 0; i < 4; ++i) {
        (void)scheduler.make_schedule(64, Marker::kNone, 0);
        large.push_back(scheduler.make_schedule(kMiB, Marker::kNone, 0)[0].rail);
    }
    EXPECT_EQ(large, (Rails{0, 1, 0, 1}));
}

TEST(WindowRoundRobin, stays_on_a_rail_for_w_messages) {
    SchedConfig config = small_by(Policy::kWindowRoundRobin);
    config.window = 3;
    Scheduler scheduler(config, rails_of(2));
    EXPECT_EQ(rails_of_messages(scheduler, 8), (Rails{0, 0, 0, 1, 1, 1, 0, 0}));
    scheduler.set_state(0, RailState::kDown);
    EXPECT_EQ(rails_of_messages(scheduler, 4), (Rails{1, 1, 1, 1}));
}

TEST(WindowRoundRobin, with_a_window_of_one_is_round_robin) {
    SchedConfig config = small_by(Policy::kWindowRoundRobin);
    config.window = 1;
    Scheduler scheduler(config, rails_of(3));
    EXPECT_EQ(rails_of_messages(scheduler, 4), (Rails{0, 1, 2, 0}));
}

TEST(WeightedRoundRobin, takes_heavier_rails_more_often_and_spreads_their_turns) {
    SchedConfig config = small_by(Policy::kWeightedRoundRobin);
    config.weights = {{5, 2, 1}, 3};
    Scheduler scheduler(config, rails_of(3));
    const Rails turns = rails_of_messages(scheduler, 80);
    std::map<int, int> count;
    for (int rail : turns) ++count[rail];
    EXPECT_EQ(count[0], 50);
    EXPECT_EQ(count[1], 20);
    EXPECT_EQ(count[2], 10);
    EXPECT_EQ(Rails(turns.begin(), turns.begin() + 8), (Rails{0, 1, 0, 0, 2, 0, 1, 0}));
}

TEST(WeightedRoundRobin, without_weights_goes_by_the_links) {
    SchedConfig config = small_by(Policy::kWeightedRoundRobin);
    RailSet rails;
    for (std::uint64_t mb_per_s : {300u, 100u}) {
        RailInfo info;
        info.bytes_per_s = mb_per_s * 1'000'000;
        ASSERT_TRUE(rails.add(info));
    }
    Scheduler scheduler(config, rails);
    std::map<int, int> count;
    for (int rail : rails_of_messages(scheduler, 40)) ++count[rail];
    EXPECT_EQ(count[0], 30);
    EXPECT_EQ(count[1], 10);
}

TEST(ShortestQueue, takes_the_rail_with_the_fewest_bytes_under_way) {
    const SchedConfig config = small_by(Policy::kShortestQueue);
    Scheduler scheduler(config, rails_of(3));
    EXPECT_EQ(rails_of_messages(scheduler, 4), (Rails{0, 1, 2, 0})) << "in turn, while nothing is under way";
    scheduler.on_posted(0, 9000, 0);
    scheduler.on_waiting(1, 8000);
    scheduler.on_posted(2, 20000, 0);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
    scheduler.on_posted(1, 4000, 0);
    EXPECT_EQ(rails_of_messages(scheduler, 1), (Rails{0}));
    scheduler.set_state(0, RailState::kDown);
    EXPECT_EQ(rails_of_messages(scheduler, 1), (Rails{1}));
}

// Messages of 12 KiB and 20 KiB in turn: turns of rails would give one rail all of the longer ones.
TEST(ShortestQueue, levels_messages_of_different_length) {
    const SchedConfig config = small_by(Policy::kShortestQueue);
    Scheduler scheduler(config, rails_of(2));
    for (int i = 0; i < 40; ++i) {
        const std::uint64_t bytes = (i % 2 == 0 ? 12 : 20) * kKiB;
        scheduler.on_posted(scheduler.rail_of_small(bytes), bytes, 0);
    }
    const auto queued = [&](RailIndex rail) {
        return static_cast<double>(scheduler.rails()[rail].in(Direction::kOut).backlog_bytes());
    };
    EXPECT_NEAR(queued(0), queued(1), 20 * kKiB);
}

TEST(EvenStriping, gives_each_rail_the_same) {
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails_of(4));
    for (const Stripe& stripe : scheduler.make_schedule(kMiB, Marker::kNone, 0))
        EXPECT_EQ(stripe.length_bytes, kMiB / 4);
}

TEST(EvenStriping, shorter_messages_take_turns_among_the_rails) {
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails_of(4));
    EXPECT_EQ(rails_in(scheduler.make_schedule(16 * kKiB, Marker::kNone, 0)), (Rails{0, 1}));
    EXPECT_EQ(rails_in(scheduler.make_schedule(16 * kKiB, Marker::kNone, 0)), (Rails{2, 3}));
    EXPECT_EQ(rails_in(scheduler.make_schedule(24 * kKiB, Marker::kNone, 0)), (Rails{0, 1, 2}));
    EXPECT_EQ(rails_in(scheduler.make_schedule(16 * kKiB, Marker::kNone, 0)), (Rails{3, 0}));
}

TEST(EvenStriping, without_an_alignment_asked_for_ends_on_the_largest_mtu) {
    const SchedConfig config = large_by(Policy::kEvenStriping);
    RailSet rails;
    for (std::uint32_t mtu : {1024u, 2048u}) {
        RailInfo info;
        info.mtu_bytes = mtu;
        ASSERT_TRUE(rails.add(info));
    }
    Scheduler scheduler(config, rails);
    EXPECT_EQ(scheduler.limits().alignment, 2048u);
    EXPECT_EQ(scheduler.make_schedule(100'000, Marker::kNone, 0)[1].offset_bytes % 2048, 0u);
}

TEST(WeightedStriping, cuts_by_the_weights_asked_for) {
    SchedConfig config = large_by(Policy::kWeightedStriping);
    config.weights = {{3, 1}, 2};
    Scheduler scheduler(config, rails_of(2));
    const Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    ASSERT_EQ(schedule.size(), 2u);
    EXPECT_EQ(schedule[0].length_bytes, 768 * kKiB);
    EXPECT_EQ(schedule[1].length_bytes, 256 * kKiB);
    EXPECT_EQ(schedule.batch_weight(), 4u);
}

TEST(Bss, begins_with_the_first_paths_from_the_first_rail_on) {
    SchedConfig config = large_by(Policy::kBss);
    config.bss_paths = 4;
    config.bss_batch = 2;
    Scheduler scheduler(config, rails_of(6, 1'000'000'000));
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0, 1}));
    Scheduler other(config, rails_from(4, 6));
    EXPECT_EQ(rails_in(other.make_schedule(kMiB, Marker::kNone, 0)), (Rails{4, 5}));
    for (RailIndex rail : {4, 5}) other.set_state(rail, RailState::kDown);
    EXPECT_EQ(rails_in(other.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0, 1}))
        << "never 2 and 3, which are not among its paths";
}

TEST(Bss, uses_other_rails_when_all_of_its_paths_are_down) {
    SchedConfig config = large_by(Policy::kBss);
    config.bss_paths = 2;
    Scheduler scheduler(config, rails_of(3));
    scheduler.set_state(0, RailState::kDown);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{1}));
    scheduler.set_state(1, RailState::kDown);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{2}));
}

TEST(Epc, stripes_blocking_and_collective_calls_and_takes_turns_with_nonblocking_ones) {
    const SchedConfig config = large_by(Policy::kEpc);
    Scheduler scheduler(config, rails_of(2));
    struct Case {
        std::uint64_t bytes;
        Marker marker;
        Policy policy;
        Reason reason;
    };
    const Case cases[] = {
        {64, Marker::kNone, Policy::kShortestQueue, Reason::kSmall},
        {16 * kKiB - 1, Marker::kBlocking, Policy::kShortestQueue, Reason::kSmall},
        {16 * kKiB, Marker::kBlocking, Policy::kAdaptiveStriping, Reason::kBlocking},
        {16 * kKiB, Marker::kCollective, Policy::kAdaptiveStriping, Reason::kCollective},
        {16 * kKiB, Marker::kNonblocking, Policy::kRoundRobin, Reason::kNonblocking},
        {128 * kKiB - 1, Marker::kNonblocking, Policy::kRoundRobin, Reason::kNonblocking},
        {128 * kKiB, Marker::kNonblocking, Policy::kAdaptiveStriping, Reason::kVeryLarge},
        {16 * kKiB, Marker::kNone, Policy::kAdaptiveStriping, Reason::kNoMarker},
    };
    for (const Case& c : cases) {
        const Schedule schedule = scheduler.make_schedule(c.bytes, c.marker, 0);
        EXPECT_EQ(schedule.header.policy, c.policy) << describe(schedule, config);
        EXPECT_EQ(schedule.header.reason, c.reason) << describe(schedule, config);
        EXPECT_EQ(schedule.size(), multiplexes(c.policy) ? 1u : 2u);
    }
}

TEST(Whole, is_one_stripe_on_the_rail_of_a_small_message_whatever_the_length_and_the_policy) {
    for (const PolicyRow& row : kPolicyRows)
        for (const std::uint64_t bytes : {std::uint64_t{0}, 64 * std::uint64_t{1}, 16 * kKiB, 64 * kMiB}) {
            SchedConfig config = large_by(row.policy);
            config.small_policy = Policy::kRoundRobin;
            Scheduler scheduler(config, rails_of(3));
            EXPECT_EQ(rails_of_messages(scheduler, 1), (Rails{0}));
            const Schedule schedule = scheduler.make_whole(bytes);
            ASSERT_EQ(schedule.size(), 1u) << row.name;
            EXPECT_EQ(schedule[0], (Stripe{0, bytes, 1, 1})) << row.name;
            EXPECT_EQ(schedule.header.reason, Reason::kWhole);
            EXPECT_FALSE(schedule.is_measured());
            EXPECT_EQ(rails_of_messages(scheduler, 1), (Rails{2})) << "takes its turn";
        }
}

TEST(Whole, joins_the_shortest_queue) {
    const SchedConfig config = small_by(Policy::kShortestQueue);
    Scheduler scheduler(config, rails_of(3));
    for (RailIndex rail : {0, 2}) scheduler.on_posted(rail, kMiB, kNotMeasured);
    EXPECT_EQ(rails_in(scheduler.make_whole(kMiB)), (Rails{1}));
}

TEST(Whole, avoids_rails_that_are_down_and_has_no_stripe_without_any) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    scheduler.set_state(0, RailState::kDown);
    EXPECT_EQ(rails_in(scheduler.make_whole(kMiB)), (Rails{1}));
    scheduler.set_state(1, RailState::kSuspect);
    EXPECT_TRUE(scheduler.make_whole(kMiB).header.suspect);
    scheduler.set_state(1, RailState::kDown);
    const Schedule schedule = scheduler.make_whole(kMiB);
    EXPECT_TRUE(schedule.empty());
    EXPECT_EQ(schedule.header.reason, Reason::kNoRail);
}

TEST(Whole, goes_over_the_rail_of_its_lane_whatever_is_queued) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(4));
    scheduler.set_state(1, RailState::kDown);
    scheduler.on_posted(2, kMiB, kNotMeasured);
    for (int again = 0; again < 2; ++again)
        for (const auto& [lane, rail] : {std::pair{0, 0}, {1, 2}, {2, 3}, {3, 0}, {4, 2}})
            EXPECT_EQ(rails_in(scheduler.make_whole(kMiB, static_cast<std::uint8_t>(lane))),
                      (Rails{static_cast<RailIndex>(rail)}));
    for (const RailIndex rail : {0, 2, 3}) scheduler.set_state(rail, RailState::kDown);
    EXPECT_TRUE(scheduler.make_whole(kMiB, 1).empty());
}

TEST(Whole, because_stripes_have_taken_longer_takes_the_rail_that_is_done_first) {
    SchedConfig config;
    config.weights = {{3, 1}, 2};
    Scheduler scheduler(config, rails_of(2));
    const auto next = [&] {
        const Schedule schedule = scheduler.make_whole(kMiB, kNoLane, Direction::kOut, Reason::kNotWorth);
        scheduler.on_posted(schedule[0].rail, kMiB, kNotMeasured);
        return static_cast<int>(schedule[0].rail);
    };
    std::map<int, int> count;
    for (int i = 0; i < 40; ++i) ++count[next()];
    EXPECT_EQ(count[0], 30);
    EXPECT_EQ(count[1], 10);
}

TEST(Whole, because_stripes_have_taken_longer_takes_equal_idle_rails_in_turn) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(3));
    Rails rails;
    for (int i = 0; i < 4; ++i)
        rails.push_back(scheduler.make_whole(kMiB, kNoLane, Direction::kIn, Reason::kNotWorth)[0].rail);
    EXPECT_EQ(rails, (Rails{0, 1, 2, 0}));
}

TEST(Weights, that_are_forgotten_are_the_first_ones) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{3, 1}, 2};
    Scheduler scheduler(config, rails_of(2));
    for (std::uint64_t now = 1'000'000; now < 20'000'000; now += 2'000'000) {
        for (const RailIndex rail : {0, 1}) scheduler.on_posted(rail, kMiB, now);
        scheduler.on_completed(0, kMiB, now, now + 1'000'000);
        scheduler.on_completed(1, kMiB, now, now + 1'000'000);
    }
    EXPECT_LT(scheduler.rails().share(0), 0.6) << "they are equally fast";
    scheduler.forget_weights();
    EXPECT_DOUBLE_EQ(scheduler.rails().share(0), 0.75);
}

TEST(ShortestStripe, is_what_the_fastest_rail_carries_in_the_time_of_a_request) {
    const SchedConfig config;
    const auto shortest = [&](std::uint64_t bytes_per_s) {
        return Scheduler(config, rails_of(2, bytes_per_s)).limits().min;
    };
    EXPECT_EQ(shortest(0), 8 * kKiB) << "unknown";
    EXPECT_EQ(shortest(250'000'000), 4 * kKiB);
    EXPECT_EQ(shortest(12'500'000'000), 16 * kKiB) << "12500 bytes, in whole packets";
    EXPECT_EQ(shortest(100'000'000'000), 64 * kKiB);
    SchedConfig given;
    given.min_stripe = 5000;
    EXPECT_EQ(Scheduler(given, rails_of(2, 12'500'000'000)).limits().min, 8 * kKiB) << "of the user, in whole packets";
}

TEST(Whole, is_described) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    static_cast<void>(scheduler.make_whole(kMiB));
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go whole on rail 0 (shortest_queue): the caller does not permit stripes");
    static_cast<void>(scheduler.make_whole(64));
    EXPECT_EQ(scheduler.describe_last_small(),
              "64 bytes go whole on rail 1 (shortest_queue): the caller does not permit stripes");
}

TEST(Epc, as_in_the_paper_never_stripes_nonblocking_calls_if_asked_so) {
    SchedConfig config = large_by(Policy::kEpc);
    config.epc_always_stripe = 0;
    Scheduler scheduler(config, rails_of(2));
    EXPECT_EQ(rails_of_messages(scheduler, 3, 64 * kMiB, Marker::kNonblocking), (Rails{0, 1, 0}));
}

}  // namespace
}  // namespace coop::sched
