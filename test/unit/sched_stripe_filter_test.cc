// SPDX-License-Identifier: BSD-3-Clause
//
// sched/stripe_filter.h: a message is complete once, when all of its stripes are.
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

TEST(ArrivedStripes, are_complete_when_their_weights_are_those_of_the_batch) {
    ArrivedStripes stripes;
    EXPECT_EQ(stripes.on_start(100), Landed::kPartly);
    EXPECT_EQ(stripes.on_fin(1, 38), Landed::kPartly);
    EXPECT_EQ(stripes.on_fin(0, 62), Landed::kComplete);
    EXPECT_TRUE(stripes.complete());
}

TEST(ArrivedStripes, a_fin_may_be_faster_than_the_start) {
    ArrivedStripes stripes;
    EXPECT_EQ(stripes.on_fin(0, 62), Landed::kPartly);
    EXPECT_EQ(stripes.on_fin(1, 38), Landed::kPartly);
    EXPECT_FALSE(stripes.complete());
    EXPECT_EQ(stripes.on_start(100), Landed::kComplete);
}

TEST(ArrivedStripes, replays_of_a_fin_and_of_the_start_count_once) {
    ArrivedStripes stripes;
    EXPECT_EQ(stripes.on_start(100), Landed::kPartly);
    EXPECT_EQ(stripes.on_start(100), Landed::kAgain);
    EXPECT_EQ(stripes.on_fin(0, 50), Landed::kPartly);
    EXPECT_EQ(stripes.on_fin(0, 50), Landed::kAgain) << "the other half is missing";
    EXPECT_EQ(stripes.on_fin(1, 50), Landed::kComplete);
    EXPECT_EQ(stripes.on_fin(1, 50), Landed::kAgain);
    EXPECT_EQ(stripes.on_start(100), Landed::kAgain);
}

TEST(ArrivedStripes, what_cannot_be_changes_nothing) {
    ArrivedStripes stripes;
    EXPECT_EQ(stripes.on_start(0), Landed::kWrong);
    EXPECT_EQ(stripes.on_fin(0, 60), Landed::kPartly);
    EXPECT_EQ(stripes.on_start(59), Landed::kWrong) << "less than has arrived";
    EXPECT_EQ(stripes.on_start(100), Landed::kPartly);
    EXPECT_EQ(stripes.on_start(101), Landed::kWrong);
    EXPECT_EQ(stripes.on_fin(1, 41), Landed::kWrong);
    EXPECT_EQ(stripes.on_fin(1, UINT32_MAX), Landed::kWrong);
    EXPECT_EQ(stripes.on_fin(1, 0), Landed::kWrong);
    EXPECT_EQ(stripes.on_fin(kMaxRails, 40), Landed::kWrong);
    EXPECT_EQ(stripes.arrived_weight(), 60u);
    EXPECT_EQ(stripes.on_fin(1, 40), Landed::kComplete);

    ArrivedStripes early;
    EXPECT_EQ(early.on_fin(0, UINT32_MAX), Landed::kPartly);
    EXPECT_EQ(early.on_fin(1, 1), Landed::kWrong) << "without an overflow";
}

TEST(Stripes, of_any_message_with_replays_are_complete_exactly_once_at_both_ends) {
    std::mt19937 random(kRandomSeed);
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    for (int i = 0; i < 2000; ++i) {
        std::vector<std::uint32_t> weights(1 + random() % kMaxRails);
        for (std::uint32_t& weight : weights) weight = 1 + static_cast<std::uint32_t>(random()) % 1000000;
        std::vector<std::size_t> order(weights.size());
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t replays = random() % 4; replays != 0; --replays) order.push_back(random() % weights.size());
        std::shuffle(order.begin(), order.end(), random);

        SentStripes sent(weights.size());
        ArrivedStripes arrived;
        const std::size_t start_at = random() % order.size();
        int sent_complete = 0, arrived_complete = 0;
        for (std::size_t k = 0; k < order.size(); ++k) {
            if (k == start_at) arrived_complete += arrived.on_start(std::accumulate(weights.begin(), weights.end(), 0u)) == Landed::kComplete;
            sent_complete += sent.on_completed(order[k]) == Landed::kComplete;
            arrived_complete += arrived.on_fin(order[k], weights[order[k]]) == Landed::kComplete;
        }
        ASSERT_EQ(sent_complete, 1) << i;
        ASSERT_EQ(arrived_complete, 1) << i;
    }
}

}  // namespace
}  // namespace coop::sched
