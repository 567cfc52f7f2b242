// SPDX-License-Identifier: BSD-3-Clause
//
// Settings, and the rails that a scheduler chooses, for its tests.
#pragma once

#include "coop/sched/scheduler.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched_sim.h"

namespace coop::sched::test {

using sim::kKiB;
using sim::kMiB;
using sim::rails_of;

using Rails = std::vector<int>;

inline SchedConfig small_by(Policy policy) {
    SchedConfig config;
    config.small_policy = policy;
    return config;
}

inline SchedConfig large_by(Policy policy) {
    SchedConfig config;
    config.large_policy = policy;
    return config;
}

// The rails of `count` messages, each sent whole.
inline Rails rails_of_messages(Scheduler& scheduler, std::size_t count, std::uint64_t bytes = 64,
                               Marker marker = Marker::kNone) {
    Rails rails;
    for (std::size_t i = 0; i < count; ++i) {
        const Schedule schedule = scheduler.make_schedule(bytes, marker, 0);
        EXPECT_EQ(schedule.size(), 1u);
        rails.push_back(schedule[0].rail);
    }
    return rails;
}

inline Rails rails_in(const Schedule& schedule) {
    Rails rails;
    for (const Stripe& stripe : schedule) rails.push_back(stripe.rail);
    return rails;
}

// The rails of a process that uses `first` first.
inline RailSet rails_from(std::size_t first, std::size_t count) {
    RailSet rails = rails_of(count);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = (first + i) % count;
    rails.set_order(order);
    return rails;
}

}  // namespace coop::sched::test
