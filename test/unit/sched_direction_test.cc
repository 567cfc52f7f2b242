// SPDX-License-Identifier: BSD-3-Clause
//
// What a process sends and what it reads: turns and queues of each direction.
#include <gtest/gtest.h>

#include "coop/sched/scheduler.h"
#include "sched_rails.h"

namespace coop::sched::test {
namespace {

constexpr std::uint64_t kSmall = 4 * kKiB;
constexpr auto kOut = Direction::kOut, kIn = Direction::kIn;

// Posts a small message and returns its rail.
RailIndex post_small(Scheduler& scheduler, Direction direction) {
    const RailIndex rail = scheduler.rail_of_small(kSmall, direction);
    scheduler.on_posted(rail, kSmall, kNotMeasured, direction);
    return rail;
}

// With one queue for both directions all puts would take one rail, and all gets the other.
TEST(Directions, spread_over_all_rails_when_they_alternate) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    Rails puts, gets;
    for (int i = 0; i < 4; ++i) {
        puts.push_back(post_small(scheduler, kOut));
        gets.push_back(post_small(scheduler, kIn));
    }
    EXPECT_EQ(puts, (Rails{0, 1, 0, 1}));
    EXPECT_EQ(gets, (Rails{0, 1, 0, 1}));
}

TEST(Directions, have_separate_backlogs) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(0, 8 * kMiB, 0, kOut);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kNone, 0, kOut)), (Rails{1}));
    const Schedule read = scheduler.make_schedule(kMiB, Marker::kNone, 0, kIn);
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].length_bytes, read[1].length_bytes);
    EXPECT_EQ(scheduler.rails()[0].in(kOut).backlog_bytes(), 8 * kMiB);
    EXPECT_EQ(scheduler.rails()[0].in(kIn).backlog_bytes(), 0u);
}

TEST(Directions, count_what_waits_and_what_is_aborted_separately) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(1));
    const Rail& rail = scheduler.rails()[0];
    scheduler.on_waiting(0, 100, kIn);
    EXPECT_EQ(rail.in(kIn).waiting_bytes, 100u);
    EXPECT_EQ(rail.in(kOut).waiting_bytes, 0u);
    scheduler.on_waited(0, 100, kIn);
    scheduler.on_posted(0, 100, kNotMeasured, kIn);
    scheduler.on_posted(0, 7, kNotMeasured, kOut);
    scheduler.on_aborted(0, 100, kNotMeasured, kIn);
    EXPECT_EQ(rail.in(kIn).backlog_bytes(), 0u);
    EXPECT_EQ(rail.in(kOut).backlog_bytes(), 7u);
    scheduler.on_completed(0, 7, kNotMeasured, 1, kOut);
    EXPECT_EQ(rail.in(kOut).outstanding_stripes, 0u);
}

// Writes that keep all rails busy do not hold a read back, nor the other way round.
TEST(Directions, wait_separately) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, 8 * kMiB, 0, kOut);
    EXPECT_TRUE(scheduler.may_wait(kMiB, Marker::kNone, kOut));
    EXPECT_FALSE(scheduler.may_wait(kMiB, Marker::kNone, kIn));
}

TEST(Directions, say_what_is_queued) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_of(2));
    scheduler.on_posted(1, 100, kNotMeasured, kIn);
    scheduler.on_waiting(0, 20, kIn);
    scheduler.on_posted(0, 3, kNotMeasured, kOut);
    EXPECT_EQ(scheduler.backlog_bytes(kIn), 120u);
    EXPECT_EQ(scheduler.backlog_bytes(kOut), 3u);
}

// Both directions run at once: the time in which a rail reads does not make its writes look slow.
TEST(Directions, are_measured_separately) {
    const SchedConfig config = large_by(Policy::kAdaptiveStriping);
    Scheduler scheduler(config, rails_of(2));
    const double before = scheduler.rails()[0].weight;
    for (std::uint64_t now = 0; now < 40 * kMiB; now += kMiB) {
        for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, kMiB, now, kOut);
        scheduler.on_posted(0, kMiB, now, kIn);  // only rail 0 reads, and ends just before its write
        scheduler.on_completed(0, kMiB, now, now + kMiB - 1000, kIn);
        for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_completed(rail, kMiB, now, now + kMiB, kOut);
    }
    EXPECT_NEAR(scheduler.rails()[0].weight, before, before / 100);
}

}  // namespace
}  // namespace coop::sched::test
