// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/long_way.h: when the other way is tried and kept, with every event in every state; ranges of lengths apart from each
// other; messages that cannot take the lane.
#include "coop/rndv/long_way.h"

#include <gtest/gtest.h>

namespace coop::rndv {
namespace {

using Way = LongWay::Way;
constexpr std::uint64_t kBytes = 100 * 1024;
constexpr unsigned kBlock = LongWay::kInBlock, kSkip = LongWay::kToSkip;

struct Costs {
    std::uint64_t kernel, lane;  // ns for a message
};

// Lets messages come. Returns how many of them came through the lane.
unsigned receive(LongWay& ways, unsigned messages, Costs costs, std::uint64_t bytes = kBytes) {
    unsigned by_lane = 0;
    for (unsigned i = 0; i < messages; ++i) {
        const Way way = ways.way(bytes);
        by_lane += way == Way::kLane;
        ways.on_ended(way, bytes, way == Way::kLane ? costs.lane : costs.kernel);
    }
    return by_lane;
}

// Until the way of the next message is another one. Returns how many came.
unsigned until_change(LongWay& ways, Costs costs, unsigned most = 100'000) {
    const Way before = ways.way(kBytes);
    unsigned messages = 0;
    while (ways.way(kBytes) == before && messages < most) messages += 1, receive(ways, 1, costs);
    return messages;
}

constexpr Costs kLaneIsBetter{1000, 900}, kKernelIsBetter{1000, 1100}, kAboutEqual{1000, 950};

TEST(LongWay, begins_with_the_kernel_and_tries_the_lane_after_two_blocks) {
    LongWay ways;
    EXPECT_EQ(ways.way_of_next(), Way::kKernel);
    EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + LongWay::kFirstWait * kBlock);
    EXPECT_EQ(ways.way(kBytes), Way::kLane);
    EXPECT_EQ(ways.way_of_next(), Way::kLane);
}

TEST(LongWay, keeps_the_lane_if_it_is_quicker_by_a_sixteenth) {
    for (const Costs costs : {kLaneIsBetter, kAboutEqual, kKernelIsBetter}) {
        LongWay ways;
        until_change(ways, costs);
        const unsigned trial = receive(ways, kSkip + kBlock, costs);
        EXPECT_EQ(trial, kSkip + kBlock);
        EXPECT_EQ(ways.way(kBytes), costs.lane * 16 < costs.kernel * 15 ? Way::kLane : Way::kKernel) << costs.lane;
    }
}

TEST(LongWay, tries_half_as_often_after_each_trial_in_vain) {
    LongWay ways;
    unsigned wait = LongWay::kFirstWait;
    for (int trial = 0; trial < 12; ++trial) {
        EXPECT_EQ(until_change(ways, kKernelIsBetter), kSkip + wait * kBlock) << trial;
        EXPECT_EQ(until_change(ways, kKernelIsBetter), kSkip + kBlock) << trial;
        wait = std::min(2 * wait, LongWay::kLongestWait);
    }
    EXPECT_EQ(wait, LongWay::kLongestWait);
}

TEST(LongWay, returns_to_the_kernel_when_that_is_quicker_again) {
    LongWay ways;
    receive(ways, 1000, kLaneIsBetter);
    EXPECT_GT(receive(ways, 10'000, kLaneIsBetter), 9'800u);
    receive(ways, 2000, kKernelIsBetter);
    EXPECT_LT(receive(ways, 10'000, kKernelIsBetter), 200u);
    receive(ways, 2000, kLaneIsBetter);
    EXPECT_GT(receive(ways, 10'000, kLaneIsBetter), 9'800u);
}

TEST(LongWay, does_not_mind_a_few_messages_that_were_held_up) {
    LongWay ways;
    for (int i = 0; i < 2000; ++i) {
        const Way way = ways.way(kBytes);
        const std::uint64_t usual = way == Way::kLane ? 900 : 1000;
        ways.on_ended(way, kBytes, i % 3 == 0 ? 1'000'000 : usual);
    }
    EXPECT_GT(receive(ways, 100, kLaneIsBetter), 80u);
}

TEST(LongWay, does_not_count_a_message_that_went_the_other_way) {
    LongWay ways;
    for (int i = 0; i < 1000; ++i) ways.on_ended(Way::kLane, kBytes, 1);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    until_change(ways, kLaneIsBetter);
    for (int i = 0; i < 1000; ++i) ways.on_ended(Way::kKernel, kBytes, 1);
    EXPECT_EQ(ways.way(kBytes), Way::kLane);
}

TEST(LongWay, knows_each_range_of_lengths_by_itself) {
    constexpr std::uint64_t kLengths[] = {LongWay::kShortest, 256 * 1024, 1024 * 1024, 4096 * 1024};
    LongWay ways;
    for (unsigned i = 0; i < 4; ++i) {
        receive(ways, 1000, i % 2 ? kKernelIsBetter : kLaneIsBetter, kLengths[i]);
        EXPECT_EQ(ways.way_of_next(), ways.way(kLengths[i]));
    }
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint64_t last = i < 3 ? kLengths[i + 1] - 1 : UINT64_MAX / 2;
        for (const std::uint64_t bytes : {kLengths[i], last})
            EXPECT_EQ(ways.way(bytes), i % 2 ? Way::kKernel : Way::kLane) << bytes;
    }
}

TEST(LongWay, stays_with_the_kernel_where_a_side_does_not_wait) {
    LongWay ways;
    unsigned wait = LongWay::kFirstWait;
    for (int trial = 0; trial < 12; ++trial) {
        EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + wait * kBlock) << trial;
        ways.on_declined(kBytes);
        EXPECT_EQ(ways.way(kBytes), Way::kKernel);
        wait = std::min(2 * wait, LongWay::kLongestWait);
    }
    receive(ways, 2000, kLaneIsBetter);
    ASSERT_EQ(ways.way(kBytes), Way::kLane) << "the lane is kept";
    ways.on_declined(kBytes);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    EXPECT_EQ(ways.way_of_next(), Way::kKernel);
}

TEST(LongWay, declines_a_message_in_a_trial_of_the_kernel) {
    LongWay ways;
    until_change(ways, kLaneIsBetter);
    receive(ways, kSkip + kBlock, kLaneIsBetter);
    EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + LongWay::kFirstWait * kBlock);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel) << "a trial";
    ways.on_declined(kBytes);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + 2 * LongWay::kFirstWait * kBlock);
}

}  // namespace
}  // namespace coop::rndv
