// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/long_way.h: when the other way is tried and kept, with every event in every state; ranges of lengths apart from each
// other; messages that cannot take the lane.
#include "coop/rndv/long_way.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace coop::rndv {
namespace {

using Way = LongWay::Way;
constexpr std::uint64_t kBytes = 100 * 1024;
constexpr unsigned kBlock = LongWay::kInBlock, kSkip = LongWay::kToSkip;

struct Costs {
    std::uint64_t kernel, lane;  // ns for a message
};

// One message comes while no other one is under way.
void come(LongWay& ways, Way way, std::uint64_t bytes, std::uint64_t ns) {
    static std::uint64_t now = 1;
    ways.on_begun(now);
    now += ns;
    ways.on_ended(way, bytes, now, true);
    now += 12345;
}

// Lets messages come. Returns how many of them came through the lane.
unsigned receive(LongWay& ways, unsigned messages, Costs costs, std::uint64_t bytes = kBytes) {
    unsigned by_lane = 0;
    for (unsigned i = 0; i < messages; ++i) {
        const Way way = ways.way(bytes);
        by_lane += way == Way::kLane;
        come(ways, way, bytes, way == Way::kLane ? costs.lane : costs.kernel);
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
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + LongWay::kFirstWait * kBlock);
    EXPECT_EQ(ways.way(kBytes), Way::kLane);
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
        come(ways, way, kBytes, i % 3 == 0 ? 1'000'000 : usual);
    }
    EXPECT_GT(receive(ways, 100, kLaneIsBetter), 80u);
}

TEST(LongWay, does_not_count_a_message_that_went_the_other_way) {
    LongWay ways;
    for (int i = 0; i < 1000; ++i) come(ways, Way::kLane, kBytes, 1);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    until_change(ways, kLaneIsBetter);
    for (int i = 0; i < 1000; ++i) come(ways, Way::kKernel, kBytes, 1);
    EXPECT_EQ(ways.way(kBytes), Way::kLane);
}

TEST(LongWay, knows_each_range_of_lengths_by_itself) {
    LongWay ways;
    for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t first = LongWay::kShortest << i, last = i < 7 ? 2 * first - 1 : UINT64_MAX;
        receive(ways, 1000, i % 2 ? kKernelIsBetter : kLaneIsBetter, first);
        EXPECT_EQ(ways.way(last), ways.way(first)) << first;
    }
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(ways.way(LongWay::kShortest << i), i % 2 ? Way::kKernel : Way::kLane) << i;
}

// A window is one period, however its messages end. The last ones end with the others here, so that their own times say nothing.
void window(LongWay& ways, Way way, unsigned messages, std::uint64_t ns, bool both_waited = true) {
    static std::uint64_t now = 1;
    for (unsigned i = 0; i < messages; ++i) ways.on_begun(now + i);
    now += ns;
    for (unsigned i = 0; i < messages; ++i) ways.on_ended(way, kBytes, now, both_waited && i == messages / 2);
}

// So many windows are a block.
constexpr unsigned kWindows = kBlock / LongWay::kOfPeriod;

TEST(LongWay, times_a_window_as_a_whole) {
    for (const bool lane_is_better : {false, true}) {
        LongWay ways;
        for (unsigned i = 0; i < 1 + LongWay::kFirstWait * kWindows; ++i) {  // the first one is skipped
            EXPECT_EQ(ways.way(kBytes), Way::kKernel);
            window(ways, Way::kKernel, 64, 1000);
        }
        for (unsigned i = 0; i < 1 + kWindows; ++i) {
            EXPECT_EQ(ways.way(kBytes), Way::kLane);
            window(ways, Way::kLane, 64, lane_is_better ? 900 : 1100);
        }
        EXPECT_EQ(ways.way(kBytes), lane_is_better ? Way::kLane : Way::kKernel);
    }
}

TEST(LongWay, does_not_let_one_window_decide) {
    LongWay ways;
    for (unsigned i = 0; i < 1 + LongWay::kFirstWait * kWindows; ++i)
        window(ways, Way::kKernel, 64, i % kWindows == 0 ? 100'000 : 1000);  // one of each block was held up
    for (unsigned i = 0; i < 1 + kWindows; ++i) window(ways, Way::kLane, 64, 1100);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
}

// A window of two lengths. Each message goes the way of its range.
void mixed_window(LongWay& ways) {
    const std::uint64_t lengths[] = {kBytes, 16 * kBytes};
    const Way way[] = {ways.way(lengths[0]), ways.way(lengths[1])};
    for (const auto bytes : lengths) ways.on_begun(bytes);
    for (int i = 0; i < 2; ++i) ways.on_ended(way[i], lengths[i], 100 * kBytes, true);
}

TEST(LongWay, does_not_stay_in_a_trial_because_windows_have_several_lengths) {
    LongWay ways;
    for (int i = 0; i < 1000; ++i) mixed_window(ways);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    EXPECT_EQ(ways.way(16 * kBytes), Way::kKernel);
    until_change(ways, kLaneIsBetter);
    ASSERT_EQ(ways.way(kBytes), Way::kLane);
    for (unsigned i = 0; i <= LongWay::kMostDeclined / LongWay::kDeclines; ++i) mixed_window(ways);
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
}

TEST(LongWay, does_not_count_a_period_in_which_no_sender_waited_or_both_ways_were_used) {
    LongWay ways;
    for (int i = 0; i < 1000; ++i) {
        window(ways, Way::kKernel, 4, 1000, false);
        ways.on_begun(1);
        ways.on_begun(2);
        ways.on_ended(Way::kKernel, kBytes, 3, true);
        ways.on_ended(Way::kLane, kBytes, 4, true);
    }
    EXPECT_EQ(ways.way(kBytes), Way::kKernel);
    EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + LongWay::kFirstWait * kBlock);
}

// So many messages in a row are declined until the lane is given up.
constexpr unsigned kDeclines = LongWay::kMostDeclined / LongWay::kDeclines + 1;

TEST(LongWay, tries_less_often_where_a_side_does_not_wait) {
    LongWay ways;
    unsigned wait = LongWay::kFirstWait;
    for (int trial = 0; trial < 12; ++trial) {
        EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + wait * kBlock) << trial;
        for (unsigned i = 0; i < kDeclines; ++i) {
            EXPECT_EQ(ways.way(kBytes), Way::kLane);
            ways.on_declined(kBytes);
        }
        EXPECT_EQ(ways.way(kBytes), Way::kKernel);
        wait = std::min(2 * wait, LongWay::kLongestWait);
    }
}

TEST(LongWay, gives_up_the_lane_where_a_side_does_not_wait_any_more_and_tries_it_soon) {
    LongWay ways;
    receive(ways, 10'000, kLaneIsBetter);
    if (ways.way(kBytes) == Way::kKernel) until_change(ways, kLaneIsBetter);  // the end of a trial of the kernel
    for (unsigned i = 0; i < kDeclines; ++i) {
        EXPECT_EQ(ways.way(kBytes), Way::kLane);
        ways.on_declined(kBytes);
    }
    EXPECT_EQ(until_change(ways, kLaneIsBetter), kSkip + LongWay::kFirstWait * kBlock);
}

TEST(LongWay, keeps_the_lane_if_one_message_in_five_is_declined) {
    LongWay ways;
    receive(ways, 1000, kLaneIsBetter);
    unsigned declined = 0, by_lane = 0;
    for (int i = 0; i < 10'000; ++i) {
        const Way way = ways.way(kBytes);
        if (way == Way::kLane && i % 5 == 0) {
            ++declined;
            ways.on_declined(kBytes);
            continue;
        }
        by_lane += way == Way::kLane;
        come(ways, way, kBytes, way == Way::kLane ? 900 : 1000);
    }
    EXPECT_GT(declined, 1500u);
    EXPECT_GT(by_lane, 7000u);
}

}  // namespace
}  // namespace coop::rndv
