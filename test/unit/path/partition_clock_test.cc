// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/partition_clock.h"

#include <gtest/gtest.h>

namespace coop::path {
namespace {

constexpr std::uint64_t kMilli = 1'000'000, kSecond = 1000 * kMilli;

// Looks every 10 ms until `end`; returns that time.
std::uint64_t look_until(PartitionClock& clock, bool waits, std::uint64_t now, std::uint64_t end) {
    for (; now < end; now += 10 * kMilli) clock.look(waits, now);
    clock.look(waits, end);
    return end;
}

TEST(PartitionClock, counts_the_time_for_which_requests_wait) {
    PartitionClock clock;
    std::uint64_t now = look_until(clock, false, kSecond, 3 * kSecond);
    EXPECT_EQ(clock.waited(), 0u);
    now = look_until(clock, true, now, now + 5 * kSecond);
    EXPECT_EQ(clock.waited(), 5 * kSecond);
    now = look_until(clock, true, now, now + 2 * kSecond);
    EXPECT_EQ(clock.waited(), 7 * kSecond);
}

TEST(PartitionClock, begins_again_when_nothing_waits) {
    PartitionClock clock;
    std::uint64_t now = look_until(clock, true, 0, 5 * kSecond);
    clock.look(false, now);
    EXPECT_EQ(clock.waited(), 0u);
    // The time before the next request does not count.
    now += 60 * kMilli;
    clock.look(true, now);
    EXPECT_EQ(clock.waited(), 0u);
    look_until(clock, true, now, now + kSecond);
    EXPECT_EQ(clock.waited(), kSecond);
}

TEST(PartitionClock, counts_little_of_the_time_for_which_nobody_looks) {
    PartitionClock clock;
    const std::uint64_t now = look_until(clock, true, 0, kSecond);
    clock.look(true, now + 3600 * kSecond);  // the process has computed
    EXPECT_EQ(clock.waited(), kSecond + PartitionClock::kLongestLook);
}

TEST(PartitionClock, begins_again_when_the_peer_is_busy) {
    PartitionClock clock;
    const std::uint64_t now = look_until(clock, true, 0, 5 * kSecond);
    clock.hear();
    EXPECT_EQ(clock.waited(), 0u);
    look_until(clock, true, now, now + kSecond);
    EXPECT_EQ(clock.waited(), kSecond);
}

TEST(PartitionClock, survives_a_time_that_goes_back) {
    PartitionClock clock;
    clock.look(true, 5 * kSecond);
    clock.look(true, 4 * kSecond);
    EXPECT_EQ(clock.waited(), 0u);
    clock.look(true, 4 * kSecond + kMilli);
    EXPECT_EQ(clock.waited(), kMilli);
}

}  // namespace
}  // namespace coop::path
