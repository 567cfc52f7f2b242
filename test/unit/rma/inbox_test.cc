// SPDX-License-Identifier: BSD-3-Clause
// rma/inbox.h: frames in every order, twice, and too far ahead.
#include "coop/rma/inbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace coop::rma {
namespace {

using Numbers = std::vector<std::uint32_t>;

// An inbox and the numbers of the frames that it has executed. The frames tell their number, and leave their memory at
// once, as those of a transport do.
struct Received {
    Inbox inbox;
    Numbers executed;

    bool send(std::uint32_t sequence) {
        std::vector<std::byte> frame(sizeof sequence + sequence % 3);
        std::memcpy(frame.data(), &sequence, sizeof sequence);
        const bool known = inbox.on_frame(sequence, frame, [&](std::span<const std::byte> bytes) {
            std::uint32_t number = 0;
            ASSERT_GE(bytes.size(), sizeof number);
            std::memcpy(&number, bytes.data(), sizeof number);
            EXPECT_EQ(bytes.size(), sizeof number + number % 3);
            executed.push_back(number);
        });
        std::ranges::fill(frame, std::byte{0xEE});
        return known;
    }
};

Numbers numbers(std::uint32_t first, std::uint32_t count) {
    Numbers all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
}

// How many of the frames from `first` on have come without a gap.
std::uint32_t without_gap(const Numbers& came, std::uint32_t first) {
    std::uint32_t count = 0;
    while (std::ranges::find(came, first + count) != came.end()) ++count;
    return count;
}

// All orders, each frame twice in a row. After each frame exactly the frames without a gap are executed, at once.
void check_all_orders(std::uint32_t first) {
    Numbers order = numbers(0, 6);
    int orders = 0;
    do {
        Received received{.inbox = Inbox(first), .executed = {}};
        Numbers came;
        for (const std::uint32_t i : order) {
            const std::uint32_t sequence = first + i;
            came.push_back(sequence);
            ASSERT_TRUE(received.send(sequence));
            const std::uint32_t count = without_gap(came, first);
            ASSERT_EQ(received.executed, numbers(first, count)) << testing::PrintToString(order);
            ASSERT_EQ(received.inbox.held(), came.size() - count);
            for (const std::uint32_t before : came) ASSERT_FALSE(received.send(before));
            ASSERT_EQ(received.executed.size(), count);
            ASSERT_EQ(received.inbox.held(), came.size() - count);
        }
        ASSERT_EQ(received.executed.size(), order.size());
        ++orders;
    } while (std::ranges::next_permutation(order).found);
    EXPECT_EQ(orders, 720);
}

TEST(RmaInbox, all_orders_of_six_frames) { check_all_orders(0); }

TEST(RmaInbox, all_orders_of_six_frames_where_the_number_wraps) {
    for (std::uint32_t before = 0; before <= 6; ++before) check_all_orders(0u - before);
}

TEST(RmaInbox, frames_too_far_ahead_are_refused) {
    for (const std::uint32_t first : {0u, 5u, 0u - 1u, 0u - Inbox::kMostAhead, 0u - Inbox::kMostAhead / 2}) {
        Received received{.inbox = Inbox(first), .executed = {}};
        EXPECT_TRUE(received.send(first + Inbox::kMostAhead - 1));
        EXPECT_FALSE(received.send(first + Inbox::kMostAhead));
        EXPECT_FALSE(received.send(first + (1u << 31)));
        EXPECT_FALSE(received.send(first - 1));
        EXPECT_EQ(received.inbox.held(), 1u);
        EXPECT_TRUE(received.executed.empty());
        EXPECT_TRUE(received.send(first));
        EXPECT_TRUE(received.send(first + Inbox::kMostAhead));
        EXPECT_FALSE(received.send(first + Inbox::kMostAhead + 1));
        EXPECT_EQ(received.executed, Numbers{first});
    }
}

TEST(RmaInbox, as_many_frames_under_way_as_may_be) {
    Received received;
    for (std::uint32_t i = Inbox::kMostAhead - 1; i > 0; --i) ASSERT_TRUE(received.send(i));
    EXPECT_TRUE(received.executed.empty());
    EXPECT_EQ(received.inbox.held(), Inbox::kMostAhead - 1);
    EXPECT_TRUE(received.send(0));
    EXPECT_EQ(received.executed, numbers(0, Inbox::kMostAhead));
    EXPECT_EQ(received.inbox.held(), 0u);
}

TEST(RmaInbox, long_streams_with_some_disorder) {
    constexpr std::uint32_t kFrames = 20'000, kFirst = 0u - kFrames / 2;
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
        std::mt19937 random(seed);
        Numbers order = numbers(kFirst, kFrames);
        for (std::size_t i = 0; i < order.size(); i += 16)
            std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(i),
                         order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(i + 40, order.size())),
                         random);
        Received received{.inbox = Inbox(kFirst), .executed = {}};
        for (const std::uint32_t sequence : order) ASSERT_TRUE(received.send(sequence));
        EXPECT_EQ(received.executed, numbers(kFirst, kFrames));
        EXPECT_EQ(received.inbox.held(), 0u);
    }
}

}  // namespace
}  // namespace coop::rma
