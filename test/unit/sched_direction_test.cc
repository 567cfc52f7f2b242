// SPDX-License-Identifier: BSD-3-Clause
//
// What a process sends and what it reads: turns, queues and queue pairs of each direction.
#include <gtest/gtest.h>

#include "coop/sched/scheduler.h"
#include "sched_rails.h"

namespace coop::sched::test {
namespace {

constexpr std::uint64_t kSmall = 4 * kKiB;
constexpr auto kOut = Direction::kOut, kIn = Direction::kIn;

// `paths` paths with `qps` queue pairs each, numbered by paths first.
RailSet rails_with(std::size_t paths, std::size_t qps) {
    RailSet set;
    for (std::size_t qp = 0; qp < qps; ++qp)
        for (std::size_t path = 0; path < paths; ++path)
            EXPECT_TRUE(set.add({.hca = static_cast<std::uint16_t>(path), .qp = static_cast<std::uint8_t>(qp)}));
    return set;
}

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

TEST(Directions, have_queue_pairs_of_their_own_where_a_path_has_several) {
    const SchedConfig config;
    Scheduler scheduler(config, rails_with(2, 2));  // rails 2 and 3: second queue pairs
    EXPECT_EQ(scheduler.usable(kOut), 0b0011u);
    EXPECT_EQ(scheduler.usable(kIn), 0b1100u);
    EXPECT_EQ(post_small(scheduler, kOut), 0);
    EXPECT_EQ(post_small(scheduler, kIn), 2);
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kBlocking, 0, kOut)), (Rails{0, 1}));
    EXPECT_EQ(rails_in(scheduler.make_schedule(kMiB, Marker::kBlocking, 0, kIn)), (Rails{2, 3}));
    EXPECT_EQ(scheduler.make_whole(kMiB, 1, kIn)[0].rail, 3);
}

TEST(Directions, share_the_rails_if_told_to_or_if_one_has_none_left) {
    SchedConfig config;
    config.interleave = false;
    EXPECT_EQ(Scheduler(config, rails_with(2, 2)).usable(kIn), 0b1111u);
    config.interleave = true;
    EXPECT_EQ(Scheduler(config, rails_of(2)).usable(kIn), 0b11u);
    Scheduler scheduler(config, rails_with(2, 2));
    for (const RailIndex rail : {2, 3}) scheduler.set_state(rail, RailState::kDown);
    EXPECT_EQ(scheduler.usable(kIn), 0b0011u);
    for (const RailIndex rail : {2, 3}) scheduler.set_state(rail, RailState::kUp);
    for (const RailIndex rail : {0, 1}) scheduler.set_state(rail, RailState::kDown);
    EXPECT_EQ(scheduler.usable(kOut), 0b1100u);
}

TEST(Directions, say_what_is_queued_and_whether_reads_have_rails_of_their_own) {
    const SchedConfig config;
    EXPECT_FALSE(Scheduler(config, rails_of(2)).separates_reads());
    Scheduler scheduler(config, rails_with(2, 2));
    EXPECT_TRUE(scheduler.separates_reads());
    scheduler.on_posted(2, 100, kNotMeasured, kIn);
    scheduler.on_waiting(3, 20, kIn);
    scheduler.on_posted(0, 3, kNotMeasured, kOut);
    EXPECT_EQ(scheduler.backlog_bytes(kIn), 120u);
    EXPECT_EQ(scheduler.backlog_bytes(kOut), 3u);
    for (const RailIndex rail : {2, 3}) scheduler.set_state(rail, RailState::kDown);
    EXPECT_FALSE(scheduler.separates_reads()) << "reads share the rails that are left";
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
