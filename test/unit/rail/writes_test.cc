// SPDX-License-Identifier: BSD-3-Clause
// rail/writes.h: which rails need a signal, for several users of a channel.
#include "coop/rail/writes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace coop::rail {
namespace {

using sched::bit_of;

TEST(RailWrites, a_new_channel_has_carried_none) {
    const Writes writes;
    EXPECT_EQ(writes.now(), 0u);
    EXPECT_EQ(writes.since(0), 0u);
}

TEST(RailWrites, only_rails_that_carried_one_since_then_are_named) {
    Writes writes;
    writes.on_write(0);
    writes.on_write(31);
    EXPECT_EQ(writes.since(0), bit_of(0) | bit_of(31));
    const std::uint64_t moment = writes.now();
    EXPECT_EQ(writes.since(moment), 0u);
    writes.on_write(5);
    EXPECT_EQ(writes.since(moment), bit_of(5));
    EXPECT_EQ(writes.since(0), bit_of(0) | bit_of(5) | bit_of(31));
}

TEST(RailWrites, a_signal_of_one_user_takes_nothing_from_another) {
    Writes writes;
    writes.on_write(2);
    const std::uint64_t first_user = writes.now();
    EXPECT_EQ(writes.since(first_user), 0u);
    EXPECT_EQ(writes.since(0), bit_of(2));
}

TEST(RailWrites, agrees_with_a_model_that_keeps_every_write) {
    std::mt19937 random(7);
    Writes writes;
    std::map<std::uint64_t, sched::RailIndex> all;
    for (int round = 0; round < 2000; ++round) {
        const auto rail = static_cast<sched::RailIndex>(random() % sched::kMaxRails);
        writes.on_write(rail);
        all.emplace(writes.now(), rail);
        const std::uint64_t moment = random() % (writes.now() + 1);
        sched::RailMask expected = 0;
        for (auto each = all.upper_bound(moment); each != all.end(); ++each) expected |= bit_of(each->second);
        ASSERT_EQ(writes.since(moment), expected) << "since " << moment;
    }
}

}  // namespace
}  // namespace coop::rail
