// SPDX-License-Identifier: BSD-3-Clause
//
// node/lane_limit.h, node/lane_offer.h, node/kernel_copy.h: the lengths at which the kernel's copy is quicker, for a table
// of costs; their bounds; which messages count for the pace of a ring; the answer to an offer; and node/lane_traffic.h.
#include "coop/node/lane_limit.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "coop/node/lane_offer.h"
#include "coop/node/lane_parts.h"
#include "coop/node/lane_ring.h"
#include "coop/node/lane_traffic.h"

namespace coop::node {
namespace {

constexpr std::size_t kKiB = 1024, kNever = SIZE_MAX;
constexpr LaneBounds kBounds{8 * kKiB, 96 * kKiB, 128 * kKiB};

struct Case {
    KernelCopy kernel;
    double byte_ns;
    std::size_t shared_from, limit;
};

TEST(LaneLimit, is_the_break_even_of_the_costs) {
    const std::vector<Case> cases{
        // A byte costs the kernel as much as the lane, or more: its call and the handshake decide.
        {{2650, 0.044}, 0.052, kNever, 96 * kKiB},
        {{500, 0.1}, 0.1, kNever, 96 * kKiB},
        {{1000, 0.2}, 0.1, kNever, 128 * kKiB},
        // 2600 ns / 0.06 ns = 43333 bytes; the lane has a part more to copy.
        {{1600 + 0.14 * 8192, 0.08}, 0.14, kNever, 42 * kKiB},
        {{300, 0.08}, 0.14, kNever, 8 * kKiB},
        {{1, 0}, 0.14, kNever, 8 * kKiB},
        // Both sides copy one half, which takes 1500 ns more: 4100 ns / (0.14 ns - 0.08 ns / 2) = 41000 bytes.
        {{1600 + 0.14 * 8192, 0.08}, 0.14, 32 * kKiB, 40 * kKiB},
        {{650, 0.044}, 0.052, 32 * kKiB, 88 * kKiB},
        {{3050, 0.033}, 0.053, 32 * kKiB, 96 * kKiB},
        // A message that exceeds one packet needs a handshake, too, and its fragments take time.
        {{2500, 0.05}, 0.06, kNever, 96 * kKiB},
        {{3500, 0.05}, 0.05, kNever, 128 * kKiB},
    };
    for (const Case& c : cases)
        EXPECT_EQ(lane_limit(c.kernel, c.byte_ns, c.shared_from, kBounds), c.limit)
            << c.kernel.call_ns << ' ' << c.kernel.byte_ns << ' ' << c.byte_ns << ' ' << c.shared_from;
}

TEST(LaneLimit, stays_within_its_bounds) {
    const KernelCopy quick{1, 0}, slow{1e9, 1};
    for (const LaneBounds bounds : {kBounds, LaneBounds{64, 6000, 8000}, LaneBounds{6000, 6000, 8192}}) {
        EXPECT_EQ(lane_limit(quick, 2, 0, bounds), bounds.shortest);
        EXPECT_EQ(lane_limit(slow, 0.01, 0, bounds), bounds.longest);
    }
    // A ring that carries less than what always uses the lane.
    EXPECT_EQ(lane_limit(slow, 0.01, 0, {8192, 6000, 8000}), 8192u);
}

TEST(LaneLimit, is_all_that_the_ring_carries_where_the_kernel_denies_copies) {
    EXPECT_EQ(lane_limit({}, 100, 0, kBounds), kBounds.longest);
}

TEST(LaneLimit, grows_with_the_cost_of_the_kernel_and_falls_with_that_of_the_lane) {
    for (const std::size_t shared_from : {std::size_t{0}, 32 * kKiB, 100 * kKiB, kNever}) {
        std::size_t last = 0;
        for (double call = 100; call < 20000; call *= 1.1) {
            const std::size_t now = lane_limit({call, 0.05}, 0.11, shared_from, kBounds);
            EXPECT_GE(now, last);
            last = now;
        }
        EXPECT_EQ(last, kBounds.longest);
        last = 0;
        for (double byte = 0.001; byte < 1; byte *= 1.1) {
            const std::size_t now = lane_limit({1000, byte}, 0.11, shared_from, kBounds);
            EXPECT_GE(now, last);
            last = now;
        }
        EXPECT_EQ(last, kBounds.longest);
        last = SIZE_MAX;
        for (double byte = 0.001; byte < 1; byte *= 1.1) {
            const std::size_t now = lane_limit({1000, 0.05}, byte, shared_from, kBounds);
            EXPECT_LE(now, last);
            last = now;
        }
        EXPECT_EQ(last, kBounds.shortest);
    }
}

TEST(LaneLimit, of_a_message_alone_counts_two_copies) {
    // 1600 ns / (2 * 0.1 ns - 0.04 ns) = 10000 bytes.
    EXPECT_EQ(alone_limit({600, 0.04}, 0.1, {4 * kKiB, 96 * kKiB, 128 * kKiB}), 9 * kKiB);
    EXPECT_EQ(alone_limit({600, 0.04}, 0.1, kBounds), 9 * kKiB);
    EXPECT_EQ(alone_limit({600, 0.2}, 0.1, kBounds), kBounds.longest);
    EXPECT_EQ(alone_limit({1, 0}, 1, kBounds), kBounds.shortest);
    EXPECT_EQ(alone_limit({600, 0.2}, 0.1, {4 * kKiB, 96 * kKiB, 128 * kKiB, 32 * kKiB}), 32 * kKiB);
    EXPECT_EQ(alone_limit({600, 0.2}, 0.1, {4 * kKiB, 96 * kKiB, 16 * kKiB, 32 * kKiB}), 16 * kKiB);
    EXPECT_EQ(alone_limit({}, 1, {4 * kKiB, 96 * kKiB, 128 * kKiB, 32 * kKiB}), 32 * kKiB);
    EXPECT_EQ(alone_limit({}, 1, {4 * kKiB, 96 * kKiB, 128 * kKiB, 2 * kKiB}), 4 * kKiB);
    EXPECT_EQ(alone_limit({}, 1, kBounds), kBounds.longest);
}

TEST(LaneLimit, grows_with_the_handshake) {
    LaneBounds crowded = kBounds;
    crowded.handshake_ns = kCrowdedHandshakeNs;
    EXPECT_EQ(alone_limit({600, 0.04}, 0.1, crowded), 34 * kKiB);  // 5600 ns / 0.16 ns = 35000 bytes
    EXPECT_EQ(lane_limit({600, 0.04}, 0.1, kNever, kBounds), 12 * kKiB);
    EXPECT_EQ(lane_limit({600, 0.04}, 0.1, kNever, crowded), 77 * kKiB);  // (5600 - 819) ns / 0.06 ns = 79683 bytes
}

TEST(LaneRing, becomes_longer_on_a_crowded_node_when_handshakes_have_cost_as_much) {
    EXPECT_EQ(cost_of_more_ring_ns(15 * 4 * kKiB), 60000);
    EXPECT_EQ(saved_by_ring_ns(0), 5000);
    EXPECT_EQ(saved_by_ring_ns(8 * kKiB), 4000);
    EXPECT_EQ(saved_by_ring_ns(16 * kKiB), 3000);  // 20 messages for 15 pages
    EXPECT_EQ(saved_by_ring_ns(32 * kKiB), 1000);
    EXPECT_EQ(saved_by_ring_ns(64 * kKiB), 1000);
    for (std::size_t bytes = 0; bytes < 100 * kKiB; bytes += kKiB)
        EXPECT_GE(saved_by_ring_ns(bytes), saved_by_ring_ns(bytes + kKiB)) << bytes;
}

TEST(LaneOffers, are_the_lengths_at_which_one_copy_by_the_kernel_is_quicker) {
    const auto range = [](const KernelCopy& kernel, double byte_ns, const LaneBounds& bounds = kBounds,
                          std::size_t shared_from = kNever) {
        const LaneRange found = offer_range(kernel, byte_ns, shared_from, bounds);
        return std::pair(found.from, found.to);
    };
    const std::pair none(SIZE_MAX, std::size_t{0});
    // 600 ns / (2 * 0.1 ns - 0.05 ns) = 4000 bytes.
    EXPECT_EQ(range({600, 0.05}, 0.1), std::pair(4 * kKiB, 96 * kKiB));
    EXPECT_EQ(range({600, 0.05}, 0.1, {8 * kKiB, 96 * kKiB, 20 * kKiB}), std::pair(4 * kKiB, 20 * kKiB));
    EXPECT_EQ(range({1, 0.01}, 0.1), std::pair(kShortestOffer, 96 * kKiB));
    // The second copy takes 819 ns at most, which is less than the call; a byte costs the kernel as much as the lane.
    EXPECT_EQ(range({1000, 0.1}, 0.1), none);
    // A byte costs the kernel more, so the lane is quicker again from 8192 + (0.05 * 8192 - 300) / 0.05 bytes on.
    EXPECT_EQ(range({300, 0.15}, 0.1), std::pair(6 * kKiB, 10 * kKiB));
    // Both sides copy one half: 2500 ns / (0.1 ns / 2) = 50000 bytes.
    EXPECT_EQ(range({600, 0.1}, 0.2, kBounds, 32 * kKiB), std::pair(kShortestOffer, 48 * kKiB));
    EXPECT_EQ(range({}, 100), none);
}

TEST(LaneOffers, are_answered_one_by_one) {
    const LaneOffer first{0x1234, 1}, second{0x5678, 2};
    EXPECT_EQ(first.is_copied(0), std::nullopt);
    EXPECT_EQ(first.is_copied(first.answer(true)), std::optional(true));
    EXPECT_EQ(first.is_copied(first.answer(false)), std::optional(false));
    EXPECT_EQ(second.is_copied(first.answer(true)), std::nullopt);
    EXPECT_EQ(second.is_copied(second.answer(true)), std::optional(true));
    std::byte payload[sizeof first + 1];
    first.write(payload + 1);
    EXPECT_EQ(LaneOffer::read(payload + 1).address, first.address);
    EXPECT_EQ(LaneOffer::read(payload + 1).number, first.number);
}

TEST(LaneOffers, are_read_or_taken_back_but_not_both) {
    alignas(kLaneLine) std::byte ring[256]{};
    LaneParts<LaneMemory> parts({ring}, 64);
    std::atomic<std::uint64_t> reading{0};
    const LaneOffer first{0x1234, 1}, second{0x5678, 2};
    parts.begin();
    EXPECT_TRUE(first.begins_reading(parts, reading));
    EXPECT_FALSE(first.take_back(parts, reading));  // the reader answers
    parts.begin();
    EXPECT_TRUE(second.take_back(parts, reading));
    EXPECT_FALSE(second.begins_reading(parts, reading));
    EXPECT_EQ(parts.written(0, 100), 0u);  // nothing yet
    parts.tell(40);
    EXPECT_EQ(parts.written(0, 100), 40u);
    EXPECT_TRUE(parts.is_withdrawn());
}

std::uint64_t left_out(OfferBackoff& backoff) {
    std::uint64_t count = 0;
    while (backoff.leaves_out()) ++count;
    return count;
}

TEST(OfferBackoff, leaves_out_twice_as_many_after_each_late_answer_and_fewer_after_some_in_time) {
    OfferBackoff backoff;
    EXPECT_EQ(left_out(backoff), 0u);
    for (const std::uint64_t expected : {4u, 8u, 16u, 32u}) {
        backoff.answered_late(1000);
        EXPECT_EQ(left_out(backoff), expected);
    }
    backoff.answered_in_time();
    EXPECT_EQ(left_out(backoff), 0u);
    backoff.answered_late(1000);
    EXPECT_EQ(left_out(backoff), 56u);
    for (int i = 0; i < 100; ++i) backoff.answered_in_time();
    backoff.answered_late(1000);
    EXPECT_EQ(left_out(backoff), OfferBackoff::kFirst);
    for (int i = 0; i < 100; ++i) backoff.answered_late(1000);
    EXPECT_TRUE(backoff.leaves_out());
}

TEST(OfferBackoff, leaves_out_more_after_a_longer_wait) {
    OfferBackoff backoff;
    backoff.answered_late(1000 * OfferBackoff::kShare);
    EXPECT_EQ(left_out(backoff), 1000u);
    backoff.answered_late(1);
    EXPECT_EQ(left_out(backoff), 8u);
}

TEST(OfferBackoff, ends_if_one_answer_in_four_is_late_and_not_if_one_in_six_is) {
    for (const int in_time : {3, 5}) {
        OfferBackoff backoff;
        std::uint64_t last = 0;
        for (int round = 0; round < 25; ++round) {
            for (int i = 0; i < in_time; ++i) backoff.answered_in_time();
            backoff.answered_late(1);
            last = left_out(backoff);
        }
        if (in_time == 3) EXPECT_GT(last, 100u);
        else EXPECT_LE(last, 8u);
    }
}

// Adds messages until byte_ns() is new. Returns how many were left out before each of them.
std::size_t find(LanePace& pace, std::uint64_t usual_ns) {
    std::size_t before_each = 0;
    for (std::size_t i = 0; i < LanePace::kMessages; ++i) {
        std::size_t left_out = 0;
        while (pace.leaves_out()) ++left_out;
        if (i > 0) {
            EXPECT_EQ(left_out, before_each);
        }
        before_each = left_out;
        const std::uint64_t interrupted = 1'000'000, quick = 10;
        EXPECT_EQ(pace.add(10'000, i % 3 == 0   ? interrupted
                                   : i % 3 == 1 ? usual_ns
                                                : quick),
                  i + 1 == LanePace::kMessages);
    }
    return before_each;
}

TEST(LanePace, leaves_out_the_first_lap_and_takes_the_median) {
    LanePace pace(100'000);
    EXPECT_FALSE(pace.add(60'000, 1));
    EXPECT_FALSE(pace.add(60'000, 1));
    EXPECT_EQ(find(pace, 1000), 0u);
    EXPECT_DOUBLE_EQ(pace.byte_ns(), 0.1);
}

TEST(LanePace, follows_what_changes_later) {
    LanePace pace(0);
    find(pace, 1000);
    EXPECT_EQ(find(pace, 4000), LanePace::kBetween);
    EXPECT_DOUBLE_EQ(pace.byte_ns(), 0.4);
    EXPECT_EQ(find(pace, 500), LanePace::kBetween);
    EXPECT_DOUBLE_EQ(pace.byte_ns(), 0.05);
}

TEST(LanePace, is_found_again_after_many_messages_that_the_limit_has_left_out) {
    LanePace pace(30'000);
    const auto leave_out = [&](std::size_t messages) {
        for (std::size_t i = 0; i < messages; ++i) EXPECT_FALSE(pace.limit_leaves_out());
    };
    const auto skip_a_lap = [&] {
        for (int i = 0; i < 3; ++i) EXPECT_FALSE(pace.add(10'000, 1));
    };
    skip_a_lap();
    find(pace, 4000);
    leave_out(LanePace::kMostLeftOut - 1);
    EXPECT_TRUE(pace.limit_leaves_out());
    skip_a_lap();
    EXPECT_EQ(find(pace, 1000), 0u);
    EXPECT_DOUBLE_EQ(pace.byte_ns(), 0.1);
    leave_out(LanePace::kMostLeftOut - 1);
    find(pace, 1000);  // the limit is of now
    leave_out(LanePace::kMostLeftOut - 1);
}

TEST(LanePace, is_never_zero_once_it_is_found) {
    LanePace pace(0);
    find(pace, 0);
    EXPECT_GT(pace.byte_ns(), 0);
}

TEST(KernelCopy, costs_a_system_call_and_less_than_a_millisecond) {
    const KernelCopy cost = measure_kernel_copy();
    if (cost.is_denied()) GTEST_SKIP() << "the kernel denies copies here";
    EXPECT_GE(cost.call_ns, 1);
    EXPECT_LT(cost.call_ns, 1e6);
    EXPECT_GE(cost.byte_ns, 0);
    EXPECT_LT(cost.byte_ns, 100);
}

TEST(LaneTraffic, is_two_way_if_about_as_many_messages_come_as_go) {
    LaneTraffic traffic;
    for (int round = 0; round < 4; ++round) {
        EXPECT_EQ(traffic.is_two_way(), round > 0);
        for (int i = 0; i < 64; ++i) traffic.sent();
        EXPECT_EQ(traffic.is_two_way(), round > 0) << "a window goes out first";
        for (int i = 0; i < 64; ++i) traffic.arrived();
    }
}

TEST(LaneTraffic, is_one_way_if_few_messages_come) {
    LaneTraffic traffic;
    for (int i = 0; i < 1000; ++i) {
        traffic.sent();
        if (i % 8 == 0) traffic.arrived();
        EXPECT_FALSE(traffic.is_two_way()) << i;
    }
}

TEST(LaneTraffic, forgets_what_came_long_ago) {
    LaneTraffic traffic;
    for (int i = 0; i < 10'000; ++i) traffic.arrived();
    EXPECT_TRUE(traffic.is_two_way());
    for (std::uint32_t i = 0; i < 3 * LaneTraffic::kMost; ++i) traffic.sent();
    EXPECT_FALSE(traffic.is_two_way());
}

}  // namespace
}  // namespace coop::node
