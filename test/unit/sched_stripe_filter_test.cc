// SPDX-License-Identifier: BSD-3-Clause
//
// sched/stripe_filter.h: a message completes exactly once, with the last of its stripes.
#include "coop/sched/stripe_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace coop::sched {
namespace {

constexpr unsigned kRandomSeed = 8009;

TEST(SentStripes, are_complete_with_the_last_in_any_order) {
    SentStripes stripes(3);
    EXPECT_EQ(stripes.on_completed(2), Landed::kPartly);
    EXPECT_EQ(stripes.on_completed(0), Landed::kPartly);
    EXPECT_EQ(stripes.missing(), 0b010u);
    EXPECT_FALSE(stripes.complete());
    EXPECT_EQ(stripes.on_completed(1), Landed::kComplete);
    EXPECT_TRUE(stripes.complete());
}

TEST(SentStripes, a_replayed_stripe_counts_once) {
    SentStripes stripes(2);
    EXPECT_EQ(stripes.on_completed(0), Landed::kPartly);
    EXPECT_EQ(stripes.on_completed(0), Landed::kAgain);
    EXPECT_EQ(stripes.on_completed(1), Landed::kComplete);
    EXPECT_EQ(stripes.on_completed(1), Landed::kAgain) << "the message is complete only once";
}

TEST(SentStripes, there_are_no_others) {
    SentStripes stripes(2);
    EXPECT_EQ(stripes.on_completed(2), Landed::kWrong);
    EXPECT_EQ(stripes.on_completed(SIZE_MAX), Landed::kWrong);
    EXPECT_EQ(stripes.missing(), 0b11u);
    EXPECT_EQ(SentStripes(kMaxRails).missing(), UINT32_MAX);
}

TEST(SentStripes, of_any_number_with_replays_are_complete_exactly_once) {
    std::mt19937 random(kRandomSeed);
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    for (int i = 0; i < 2000; ++i) {
        const std::size_t stripes = 1 + random() % kMaxRails;
        std::vector<std::size_t> order(stripes);
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t replays = random() % 4; replays != 0; --replays) order.push_back(random() % stripes);
        std::shuffle(order.begin(), order.end(), random);
        SentStripes sent(stripes);
        int complete = 0;
        for (std::size_t stripe : order) complete += sent.on_completed(stripe) == Landed::kComplete;
        ASSERT_EQ(complete, 1) << i;
    }
}

}  // namespace
}  // namespace coop::sched
