// SPDX-License-Identifier: BSD-3-Clause
//
// sched/split.h: how a message is cut.
#include "coop/sched/split.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace coop::sched {
namespace {

constexpr unsigned kRandomSeed = 4117;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

Shares shares_of(const std::vector<std::uint32_t>& weights) {
    Shares shares;
    for (std::uint32_t weight : weights) shares.add(static_cast<RailIndex>(shares.count), weight);
    return shares;
}

std::vector<std::uint64_t> lengths(std::uint64_t bytes, const std::vector<std::uint32_t>& weights,
                                   StripeLimits limits) {
    Schedule schedule;
    split(bytes, shares_of(weights), limits, schedule);
    std::vector<std::uint64_t> out;
    for (const Stripe& stripe : schedule) out.push_back(stripe.length_bytes);
    return out;
}

using Lengths = std::vector<std::uint64_t>;

TEST(Split, cuts_in_proportion_to_the_weights) {
    EXPECT_EQ(lengths(100, {62, 38}, {1, 1}), (Lengths{62, 38}));
    EXPECT_EQ(lengths(kMiB, {1, 1, 1, 1}, {8 * kKiB, 4 * kKiB}),
              (Lengths{256 * kKiB, 256 * kKiB, 256 * kKiB, 256 * kKiB}));
    EXPECT_EQ(lengths(400 * kKiB, {250, 100, 50}, {4 * kKiB, 2 * kKiB}), (Lengths{250 * kKiB, 100 * kKiB, 50 * kKiB}));
}

TEST(Split, ends_on_the_alignment_and_the_last_stripe_has_the_rest) {
    EXPECT_EQ(lengths(1000, {1, 1}, {64, 64}), (Lengths{448, 552}));
    EXPECT_EQ(lengths(8 * kKiB + 1, {1, 1}, {4 * kKiB, 4 * kKiB}), (Lengths{4 * kKiB, 4 * kKiB + 1}));
}

TEST(Split, a_message_below_two_minima_stays_whole) {
    EXPECT_EQ(lengths(0, {1, 1}, {64, 64}), (Lengths{0}));
    EXPECT_EQ(lengths(1, {1, 1}, {64, 64}), (Lengths{1}));
    EXPECT_EQ(lengths(127, {1, 1}, {64, 64}), (Lengths{127}));
    EXPECT_EQ(lengths(128, {1, 1}, {64, 64}), (Lengths{64, 64}));
}

TEST(Split, leaves_out_the_lightest_first_and_of_equal_ones_the_last) {
    Schedule schedule;
    split(1000, shares_of({10, 500, 1, 489}), {64, 1}, schedule);
    ASSERT_EQ(schedule.size(), 2u);
    EXPECT_EQ(schedule[0].rail, 1);
    EXPECT_EQ(schedule[1].rail, 3);
    EXPECT_EQ(schedule.batch_weight(), 989u) << "of the rails that have a stripe";
    EXPECT_EQ(lengths(192, {1, 1, 1, 1}, {64, 64}), (Lengths{64, 64, 64}));
}

TEST(Split, shares_of_huge_messages_do_not_overflow) {
    EXPECT_EQ(share_of(UINT64_MAX, kMaxWeight, kMaxWeight), UINT64_MAX);
    EXPECT_EQ(share_of(UINT64_MAX, 1, 2), UINT64_MAX / 2);
    EXPECT_EQ(share_of(UINT64_MAX, UINT32_MAX - 1, UINT32_MAX), UINT64_MAX - UINT64_MAX / UINT32_MAX);
}

TEST(Split, covers_any_message_exactly_with_aligned_stripes_of_at_least_the_minimum) {
    std::mt19937_64 random(kRandomSeed);
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    for (int i = 0; i < 50000; ++i) {
        const std::uint64_t bytes = random() >> (random() % 64);
        StripeLimits limits;
        limits.alignment = std::uint64_t{1} << (random() % 14);
        limits.min = limits.alignment * (1 + random() % 20);
        std::vector<std::uint32_t> weights(1 + random() % kMaxRails);
        for (std::uint32_t& weight : weights)
            weight = 1 + static_cast<std::uint32_t>(random() >> (44 + random() % 20)) % kMaxWeight;

        Schedule schedule;
        split(bytes, shares_of(weights), limits, schedule);
        ASSERT_GE(schedule.size(), 1u);
        std::uint64_t at = 0;
        std::uint64_t weight = 0;
        RailMask seen = 0;
        for (const Stripe& stripe : schedule) {
            ASSERT_EQ(stripe.offset_bytes, at) << i;
            ASSERT_EQ(at % limits.alignment, 0u) << i;
            ASSERT_TRUE(stripe.length_bytes >= limits.min || schedule.size() == 1) << i;
            ASSERT_EQ(seen & bit_of(stripe.rail), 0u) << i;
            seen |= bit_of(stripe.rail);
            at += stripe.length_bytes;
            weight += stripe.weight;
        }
        ASSERT_EQ(at, bytes) << i;
        ASSERT_EQ(weight, schedule.batch_weight()) << i;
    }
}

}  // namespace
}  // namespace coop::sched
