// SPDX-License-Identifier: BSD-3-Clause
//
// sched/scheduler.h, may_wait(): an operation waits only while the rails that it would use are busy.
#include <gtest/gtest.h>

#include <random>

#include "coop/sched/scheduler.h"
#include "sched_sim.h"

namespace coop::sched {
namespace {

using sim::kKiB;
using sim::kMiB;
using sim::rails_of;

constexpr unsigned kRandomSeed = 27182;

SchedConfig adaptive(std::uint64_t min_stripe) {
    SchedConfig config;
    config.large_policy = Policy::kAdaptiveStriping;
    config.min_stripe = min_stripe;
    return config;
}

RailMask idle_of(const RailSet& rails) {
    RailMask idle = 0;
    for (RailIndex rail : each(rails.usable()))
        if (rails[rail].in(Direction::kOut).backlog_bytes() == 0) idle |= bit_of(rail);
    return idle;
}

// Messages below two minima, which go whole over one rail, and longer ones. While all rails are idle, no completion
// would start a message that waits.
TEST(Site27Waiting, no_operation_waits_on_idle_rails_however_large_the_shortest_stripe) {
    for (std::uint64_t min_stripe : {8 * kKiB, kMiB, 64 * kMiB, 1024 * kMiB})
        for (std::uint64_t bytes : {16 * kKiB, 64 * kKiB, 16 * kMiB}) {
            const SchedConfig config = adaptive(min_stripe);
            Scheduler scheduler(config, rails_of(2));
            EXPECT_FALSE(scheduler.may_wait(bytes, Marker::kBlocking)) << min_stripe << ' ' << bytes;
        }
}

TEST(Site27Waiting, an_operation_takes_the_rail_that_is_idle_while_others_are_busy) {
    const SchedConfig config = adaptive(16 * kMiB);
    Scheduler scheduler(config, rails_of(32));
    for (RailIndex rail = 0; rail < 31; ++rail) {
        EXPECT_FALSE(scheduler.may_wait(16 * kMiB, Marker::kNone)) << +rail;
        const Schedule schedule = scheduler.make_schedule(16 * kMiB, Marker::kNone, 0);
        ASSERT_EQ(schedule.size(), 1u);
        EXPECT_EQ(scheduler.rails()[schedule[0].rail].in(Direction::kOut).outstanding_stripes, 0u);
        scheduler.on_posted(schedule[0].rail, 16 * kMiB, 0);
    }
}

TEST(Site27Waiting, a_long_queue_still_waits) {
    const SchedConfig config = adaptive(kMiB);
    Scheduler scheduler(config, rails_of(2));
    for (RailIndex rail = 0; rail < 2; ++rail) scheduler.on_posted(rail, 8 * kMiB, 0);
    EXPECT_TRUE(scheduler.may_wait(64 * kKiB, Marker::kNone));
    EXPECT_TRUE(scheduler.may_wait(2 * kMiB, Marker::kNone));
}

// With any settings: a waiting operation would have used busy rails, so a completion will come that lets it go.
TEST(Site27Waiting, with_random_settings_nothing_waits_that_could_go_to_an_idle_rail) {
    std::mt19937 random(kRandomSeed);
    const auto size = [&](unsigned most_bits) { return std::uint64_t{1} << random() % most_bits; };
    int waits = 0;
    for (int round = 0; round < 20000; ++round) {
        SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed << " round " << round);
        SchedConfig config = adaptive(size(30));
        if (random() % 3 == 0) config.large_policy = Policy::kBss;
        config.probe_every = 0;
        config.striping_threshold = 1;
        config.count_backlog = random() % 4 != 0;
        const std::size_t count = 1 + random() % 6;
        if (random() % 2 == 0) {
            config.weights.count = count;
            for (std::size_t i = 0; i < count; ++i)
                config.weights.of[i] = static_cast<std::uint32_t>(1 + random() % size(20));
        }
        Scheduler scheduler(config, rails_of(count));
        for (RailIndex rail = 0; rail < count; ++rail)
            if (random() % 2 == 0) scheduler.on_posted(rail, size(26), 0);
        const std::uint64_t bytes = size(28);
        if (!scheduler.may_wait(bytes, Marker::kNone)) continue;
        ++waits;
        const RailMask idle = idle_of(scheduler.rails());
        ASSERT_NE(idle, scheduler.rails().usable()) << "nothing would wake it";
        ASSERT_EQ(scheduler.make_schedule(bytes, Marker::kNone, 0).rails() & idle, 0u);
    }
    EXPECT_GT(waits, 100);
}

}  // namespace
}  // namespace coop::sched
