// SPDX-License-Identifier: BSD-3-Clause
//
// sched/scheduler.h: which rails each policy takes, and how it says so.
#include "coop/sched/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "sched_sim.h"

namespace coop::sched {
namespace {

using sim::kKiB;
using sim::kMiB;
using sim::rails_of;

constexpr unsigned kRandomSeed = 5021;

using Rails = std::vector<int>;

SchedConfig small_by(Policy policy) {
    SchedConfig config;
    config.small_policy = policy;
    return config;
}

SchedConfig large_by(Policy policy) {
    SchedConfig config;
    config.large_policy = policy;
    return config;
}

// The rails of `count` messages that go whole.
Rails rails_of_messages(Scheduler& scheduler, std::size_t count, std::uint64_t bytes = 64, Marker marker = Marker::kNone) {
    Rails rails;
    for (std::size_t i = 0; i < count; ++i) {
        const Schedule schedule = scheduler.make_schedule(bytes, marker, 0);
        EXPECT_EQ(schedule.size(), 1u);
        rails.push_back(schedule[0].rail);
    }
    return rails;
}

Rails rails_in(const Schedule& schedule) {
    Rails rails;
    for (const Stripe& stripe : schedule) rails.push_back(stripe.rail);
    return rails;
}

// Those of a process that uses `first` before any other.
RailSet rails_from(std::size_t first, std::size_t count) {
    RailSet rails = rails_of(count);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = (first + i) % count;
    rails.set_order(order);
    return rails;
}

// Four rails, of which 0 and 2 have never opened.
RailSet with_two_open(std::size_t first) {
    RailSet rails;
    for (RailIndex rail = 0; rail < 4; ++rail) EXPECT_TRUE(rails.add(rails_of(1)[0].info, rail % 2 != 0 ? RailState::kUp : RailState::kDown));
    const std::vector<std::size_t> order{first, (first + 1) % 4, (first + 2) % 4, (first + 3) % 4};
    rails.set_order(order);
    return rails;
}

TEST(RailsThatNeverOpened, leave_the_others_their_numbers_and_weights) {
    SchedConfig config = large_by(Policy::kWeightedStriping);
    config.weights = {{40, 30, 20, 10}, 4};
    Scheduler scheduler(config, with_two_open(0));
    const Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(rails_in(schedule), (Rails{1, 3}));
    EXPECT_EQ(schedule[0].weight, 30u);
    EXPECT_EQ(schedule[1].weight, 10u);
    EXPECT_DOUBLE_EQ(scheduler.rails().share(1), 0.75);
    EXPECT_DOUBLE_EQ(scheduler.rails().share(3), 0.25);
    EXPECT_EQ(scheduler.rails().share(0), 0);
}

TEST(RailsThatNeverOpened, are_skipped_in_the_order_of_use) {
    const SchedConfig config = small_by(Policy::kBinding);
    for (const auto& [first, bound] : {std::pair{0u, 1}, {1u, 1}, {2u, 3}, {3u, 3}}) {
        Scheduler scheduler(config, with_two_open(first));
        EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails(2, static_cast<RailIndex>(bound)))) << first;
    }
}

TEST(RailsThatNeverOpened, are_no_paths_of_bss) {
    for (std::uint32_t paths = 0; paths <= 4; ++paths)
        for (std::uint32_t batch = 0; batch <= (paths != 0 ? paths : 4); ++batch) {
            SchedConfig config = large_by(Policy::kBss);
            config.bss_paths = paths;
            config.bss_batch = batch;
            Scheduler scheduler(config, with_two_open(0));
            const bool both = paths != 1 && batch != 1;
            EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (both ? Rails{1, 3} : Rails{1})) << paths << ' ' << batch;
        }
}

TEST(RailsThatNeverOpened, are_used_once_they_come_up) {
    SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, with_two_open(0));
    scheduler.set_state(2, RailState::kUp);
    EXPECT_EQ(scheduler.make_schedule(kMiB, Marker::kNone, 0).rails(), 0b1110u);
}

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
    for (Policy policy : {Policy::kBinding, Policy::kRoundRobin, Policy::kWindowRoundRobin, Policy::kWeightedRoundRobin}) {
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

TEST(Scheduler, counts_what_it_does_not_measure_as_under_way) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    const std::uint64_t least = scheduler.limits().min;
    scheduler.on_posted(1, least, kNotMeasured);
    EXPECT_EQ(scheduler.rails()[1].outstanding_bytes, least);
    EXPECT_EQ(scheduler.rails()[1].outstanding_stripes, 1u);
    scheduler.on_completed(1, least, kNotMeasured, 1000);
    EXPECT_EQ(scheduler.rails()[1].outstanding_bytes, 0u);
    EXPECT_EQ(scheduler.rails()[1].outstanding_stripes, 0u);
}

TEST(RoundRobin, passes_by_what_is_down_and_uses_it_when_it_is_back) {
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

// A message of 12 KiB and one of 20 KiB, again and again: turns would give one rail all of the longer ones.
TEST(ShortestQueue, levels_messages_of_different_length) {
    const SchedConfig config = small_by(Policy::kShortestQueue);
    Scheduler scheduler(config, rails_of(2));
    for (int i = 0; i < 40; ++i) {
        const std::uint64_t bytes = (i % 2 == 0 ? 12 : 20) * kKiB;
        scheduler.on_posted(scheduler.rail_of_small(bytes), bytes, 0);
    }
    const auto queued = [&](RailIndex rail) { return static_cast<double>(scheduler.rails()[rail].backlog_bytes()); };
    EXPECT_NEAR(queued(0), queued(1), 20 * kKiB);
}

TEST(EvenStriping, gives_each_rail_the_same) {
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails_of(4));
    for (const Stripe& stripe : scheduler.make_schedule(kMiB, Marker::kNone, 0)) EXPECT_EQ(stripe.length_bytes, kMiB / 4);
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
    EXPECT_EQ(rails_in(other.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0, 1})) << "never 2 and 3, which are no paths of it";
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

TEST(Epc, as_in_the_paper_never_stripes_nonblocking_calls_if_asked_so) {
    SchedConfig config = large_by(Policy::kEpc);
    config.epc_always_stripe = 0;
    Scheduler scheduler(config, rails_of(2));
    EXPECT_EQ(rails_of_messages(scheduler, 3, 64 * kMiB, Marker::kNonblocking), (Rails{0, 1, 0}));
}

TEST(Backlog, counts_as_a_part_of_the_stripe) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, 512 * kKiB, 0);
    Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    ASSERT_EQ(schedule.size(), 2u);
    EXPECT_EQ(schedule[0].length_bytes, 768 * kKiB);
    EXPECT_EQ(schedule[1].length_bytes, 256 * kKiB);
    scheduler.on_posted(1, kMiB, 0);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0}));
}

// A long stripe is no news until it is complete. What it has by then is told by the rate.
TEST(Backlog, is_without_what_a_rail_has_probably_done) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, kMiB, 0);
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_completed(rail, kMiB, 0, kMiB);  // a byte in each ns
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, kMiB, kMiB);
    const Schedule after_half = scheduler.make_schedule(kMiB, Marker::kNone, kMiB + kMiB / 2);
    EXPECT_EQ(after_half[0].length_bytes, after_half[1].length_bytes);
    const Rail& rail = scheduler.rails()[0];
    EXPECT_NEAR(rail.left_bytes(kMiB + kMiB / 2), 0.5 * kMiB, 1);
    EXPECT_EQ(rail.left_bytes(kMiB), kMiB);
    EXPECT_EQ(rail.left_bytes(2 * kMiB), 0);
    EXPECT_EQ(rail.left_bytes(2 * kMiB + kMiB / 4), kMiB / 4) << "overdue";
    EXPECT_EQ(rail.left_bytes(9 * kMiB), kMiB) << "the rate is not what it was";
    scheduler.on_waiting(0, kMiB);
    EXPECT_EQ(rail.left_bytes(2 * kMiB), kMiB) << "what waits has nothing yet";
}

TEST(Backlog, lets_a_message_wait_once_each_rail_has_two_and_some_more) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone));
    scheduler.on_posted(0, 8 * kMiB, 0);
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone)) << "the other one has nothing";
    scheduler.on_posted(1, kMiB, 0);
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone));
    scheduler.on_waiting(1, 512 * kKiB);
    EXPECT_TRUE(scheduler.may_wait(kMiB, Marker::kNone));
    EXPECT_FALSE(scheduler.may_wait(2 * kMiB, Marker::kNone));
    scheduler.on_completed(0, 8 * kMiB, 0, 1000);
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone));
}

TEST(Backlog, lets_none_wait_that_is_not_cut_by_what_was_measured) {
    for (Policy policy : {Policy::kEvenStriping, Policy::kWeightedStriping, Policy::kRoundRobin}) {
        const SchedConfig config = large_by(policy);
        Scheduler scheduler(config, rails_of(2));
        for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, 64 * kMiB, 0);
        EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone)) << name(policy);
    }
}

TEST(Backlog, of_rails_that_are_given_nothing_does_not_matter) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights.count = 2;
    config.weights.of[0] = 1'000'000;
    config.weights.of[1] = 1;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(0, 64 * kMiB, 0);
    EXPECT_TRUE(scheduler.may_wait(kMiB, Marker::kNone));
    SchedConfig two = large_by(Policy::kBss);
    two.bss_batch = 2;
    Scheduler best(two, rails_of(4));
    for (RailIndex rail = 0; rail < 2; ++rail) best.on_posted(rail, 64 * kMiB, 0);
    EXPECT_TRUE(best.may_wait(kMiB, Marker::kNone));
}

TEST(Backlog, does_not_count_if_asked_so) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.count_backlog = false;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, 64 * kMiB, 0);
    EXPECT_EQ(scheduler.make_schedule(kMiB, Marker::kNone, 0)[1].length_bytes, kMiB / 2);
}

TEST(RailStates, a_suspect_rail_is_used_only_while_no_other_is_up) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    scheduler.set_state(0, RailState::kSuspect);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
    scheduler.set_state(1, RailState::kDown);
    const Schedule schedule = scheduler.make_schedule(64, Marker::kNone, 0);
    EXPECT_EQ(rails_in(schedule), (Rails{0}));
    EXPECT_TRUE(schedule.header.suspect);
    scheduler.set_state(1, RailState::kUp);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
}

TEST(RailStates, without_a_rail_there_is_no_stripe) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.set_state(rail, RailState::kDown);
    for (std::uint64_t bytes : {std::uint64_t{64}, kMiB}) {
        EXPECT_TRUE(scheduler.make_schedule(bytes, Marker::kNone, 0).empty());
    }
    EXPECT_EQ(scheduler.describe_last_small(), "64 bytes go nowhere: no rail is left");
    EXPECT_EQ(scheduler.describe_last_large(), "1048576 bytes go nowhere: no rail is left");
    scheduler.set_state(1, RailState::kUp);
    EXPECT_EQ(rails_of_messages(scheduler, 2), (Rails{1, 1}));
}

TEST(Markers, survive_the_flags_of_an_operation_and_leave_the_others_alone) {
    for (const Marker marker : {Marker::kNone, Marker::kBlocking, Marker::kNonblocking, Marker::kCollective})
        for (const std::uint32_t others : {0u, 0x7fu, ~kMarkerBits}) {
            const std::uint32_t flags = others | flags_of(marker);
            EXPECT_EQ(marker_in(flags), marker);
            EXPECT_EQ(flags & ~kMarkerBits, others);
        }
}

TEST(Markers, a_collective_one_goes_before_who_waits) {
    EXPECT_EQ(marker_of(true, false), Marker::kCollective);
    EXPECT_EQ(marker_of(true, true), Marker::kCollective);
    EXPECT_EQ(marker_of(false, true), Marker::kBlocking);
    EXPECT_EQ(marker_of(false, false), Marker::kNonblocking);
}

TEST(RailSet, has_room_for_32) {
    RailSet rails = rails_of(kMaxRails);
    EXPECT_EQ(rails.size(), kMaxRails);
    EXPECT_FALSE(rails.add({}));
    EXPECT_EQ(rails.all(), UINT32_MAX);
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails);
    EXPECT_EQ(scheduler.make_schedule(kMiB, Marker::kNone, 0).size(), kMaxRails);
}

TEST(Describe, is_a_sentence_with_what_decided) {
    SchedConfig config = large_by(Policy::kWeightedStriping);
    config.weights = {{62, 38}, 2};
    Scheduler scheduler(config, rails_of(2));
    (void)scheduler.make_schedule(64, Marker::kNone, 0);
    EXPECT_EQ(scheduler.describe_last_small(), "64 bytes go whole on rail 0 (shortest_queue): below the striping threshold of 16384 bytes");
    (void)scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go in 2 stripes on rails 0, 1 by fixed weight 62/38 (weighted_striping): not below the striping threshold of 16384 bytes");
    config.large_policy = Policy::kEvenStriping;
    (void)scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go in 2 stripes on rails 0, 1, evenly (even_striping): not below the striping threshold of 16384 bytes");
    config.large_policy = Policy::kEpc;
    (void)scheduler.make_schedule(kMiB, Marker::kBlocking, 0);
    EXPECT_EQ(scheduler.describe_last_large(), "1048576 bytes go in 2 stripes on rails 0, 1 by measured weight 62/38 (epc: adaptive_striping): the call is blocking");
    scheduler.set_state(1, RailState::kDown);
    scheduler.set_state(0, RailState::kSuspect);
    (void)scheduler.make_schedule(kMiB, Marker::kNonblocking, 0);
    EXPECT_EQ(scheduler.describe_last_large(),
              "1048576 bytes go whole on rail 0 (epc: adaptive_striping): the call is nonblocking, but the message not below the limit of 131072 bytes"
              "; no rail is up, these are suspect");
}

TEST(Describe, keeps_the_last_small_and_the_last_large_message_apart) {
    const SchedConfig config = large_by(Policy::kEvenStriping);
    Scheduler scheduler(config, rails_of(2));
    (void)scheduler.make_schedule(config.striping_threshold, Marker::kNone, 0);
    EXPECT_TRUE(scheduler.last_small().empty());
    (void)scheduler.make_schedule(config.striping_threshold - 1, Marker::kNone, 0);
    EXPECT_EQ(scheduler.last_small().header.bytes, config.striping_threshold - 1);
    EXPECT_EQ(scheduler.last_large().header.bytes, config.striping_threshold);
}

TEST(Describe, names_a_rail_that_is_only_probed) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{1000000, 1}, 2};
    config.probe_every = 3;
    Scheduler scheduler(config, rails_of(2));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0}));
    const Schedule schedule = scheduler.make_schedule(kMiB, Marker::kNone, 0);
    EXPECT_EQ(rails_in(schedule), (Rails{0, 1}));
    EXPECT_EQ(schedule[1].length_bytes, 8 * kKiB);
    EXPECT_NE(scheduler.describe_last_large().find("; rail 1 only to be measured again"), std::string::npos);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0})) << "its turn is over";
}

TEST(Probes, do_not_queue_behind_what_is_under_way) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{1000000, 1}, 2};
    config.probe_every = 1;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, kMiB, 0);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0)), (Rails{0}));
    scheduler.on_completed(1, kMiB, 0, 1000);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 1000)), (Rails{0, 1}));
}

TEST(Probes, leave_a_message_that_is_too_short_to_be_cut_whole) {
    SchedConfig config = large_by(Policy::kAdaptiveStriping);
    config.weights = {{1000000, 1}, 2};
    config.probe_every = 1;
    config.min_stripe = 64 * kKiB;
    Scheduler scheduler(config, rails_of(2));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(rails_in(scheduler.make_schedule(128 * kKiB - 1, Marker::kNone, 0)), (Rails{0}));
    EXPECT_EQ(rails_in(scheduler.make_schedule(128 * kKiB, Marker::kNone, 0)), (Rails{0, 1}));
}

TEST(Describe, every_reason_has_a_text_of_its_own) {
    std::map<std::string, int> texts;
    for (std::size_t i = 0; i < kReasons; ++i) ++texts[text(static_cast<Reason>(i))];
    EXPECT_EQ(texts.size(), kReasons);
    EXPECT_EQ(texts.count("unknown"), 0u);
    EXPECT_STREQ(text(static_cast<Reason>(kReasons)), "unknown") << "kReasons counts them all";
}

// Any policies, rails, states and sizes, with completions that come and do not.
class AnyChannel {
public:
    explicit AnyChannel(std::mt19937_64& random) : random_(random), config_(any_config()), scheduler_(config_, rails_from(below(rails_), rails_)) {}

    void step() {
        ++now_ns_;
        if (below(20) == 0) scheduler_.set_state(rail(), static_cast<RailState>(below(3)));
        while (!under_way_.empty() && below(3) == 0) finish_one();
        const std::uint64_t bytes = random_() >> below(64);
        const RailMask usable = scheduler_.rails().usable();
        const Schedule schedule = scheduler_.make_schedule(bytes >> 2, static_cast<Marker>(below(kMarkers)), now_ns_);
        check(schedule, bytes >> 2, usable);
        for (const Stripe& stripe : schedule)
            if (under_way_.size() < 40) post(stripe);
    }

private:
    struct UnderWay {
        RailIndex rail;
        std::uint64_t bytes, posted_ns;
    };

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    RailIndex rail() { return static_cast<RailIndex>(below(rails_)); }

    SchedConfig any_config() {
        rails_ = 1 + below(kMaxRails);
        SchedConfig config;
        config.small_policy = static_cast<Policy>(below(5));
        config.large_policy = static_cast<Policy>(below(kPolicies));
        config.epc_striping = static_cast<Policy>(5 + below(4));
        config.epc_multiplexing = static_cast<Policy>(below(5));
        config.striping_threshold = below(1 << below(20));
        config.min_stripe = 1 + below(1 << below(16));
        config.alignment = below(2) ? 0 : 1u << below(13);
        config.window = static_cast<std::uint32_t>(1 + below(9));
        config.alpha_percent = static_cast<std::uint32_t>(1 + below(100));
        config.probe_every = static_cast<std::uint32_t>(below(5));
        config.count_backlog = below(2);
        config.bss_paths = static_cast<std::uint32_t>(below(rails_ + 1));
        config.bss_batch = static_cast<std::uint32_t>(below(bss_paths(config, rails_) + 1));
        if (below(2)) {
            config.weights.count = rails_;
            for (std::size_t i = 0; i < rails_; ++i) config.weights.of[i] = static_cast<std::uint32_t>(1 + below(1 + below(kMaxWeight)));
        }
        EXPECT_EQ(defect(config, rails_), std::nullopt);
        return config;
    }

    void post(const Stripe& stripe) {
        const std::uint64_t posted_ns = below(4) == 0 ? kNotMeasured : now_ns_;
        scheduler_.on_posted(stripe.rail, stripe.length_bytes, posted_ns);
        under_way_.push_back({stripe.rail, stripe.length_bytes, posted_ns});
    }

    void finish_one() {
        const std::size_t index = below(under_way_.size());
        const UnderWay done = under_way_[index];
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
        now_ns_ += below(2) * below(1 << below(30));
        if (below(10) == 0)
            scheduler_.on_aborted(done.rail, done.bytes, done.posted_ns);
        else
            scheduler_.on_completed(done.rail, done.bytes, done.posted_ns, now_ns_);
    }

    void check(const Schedule& schedule, std::uint64_t bytes, RailMask usable) {
        SCOPED_TRACE(describe(schedule, config_));
        ASSERT_EQ(schedule.empty(), usable == 0);
        const StripeLimits& limits = scheduler_.limits();
        std::uint64_t at = 0;
        RailMask seen = 0;
        for (const Stripe& stripe : schedule) {
            ASSERT_EQ(stripe.offset_bytes, at);
            ASSERT_TRUE(schedule.size() == 1 || (stripe.length_bytes >= limits.min && at % limits.alignment == 0));
            ASSERT_NE(usable & bit_of(stripe.rail), 0u) << "a rail that is down, or suspect beside one that is up";
            ASSERT_EQ(seen & bit_of(stripe.rail), 0u);
            ASSERT_GT(stripe.weight, 0u);
            seen |= bit_of(stripe.rail);
            at += stripe.length_bytes;
        }
        ASSERT_TRUE(schedule.empty() || at == bytes);
        double sum = 0;
        for (RailIndex rail : each(scheduler_.rails().all())) sum += scheduler_.rails()[rail].weight;
        ASSERT_NEAR(sum, kTotalWeight, 1);
    }

    std::mt19937_64& random_;
    std::size_t rails_ = 0;
    const SchedConfig config_;
    Scheduler scheduler_;
    std::vector<UnderWay> under_way_;
    std::uint64_t now_ns_ = 1;
};

TEST(AnySchedule, covers_its_message_exactly_on_rails_that_may_be_used) {
    for (unsigned seed = kRandomSeed; seed < kRandomSeed + 300; ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        std::mt19937_64 random(seed);
        AnyChannel channel(random);
        for (int i = 0; i < 200 && !::testing::Test::HasFatalFailure(); ++i) channel.step();
        if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace coop::sched
