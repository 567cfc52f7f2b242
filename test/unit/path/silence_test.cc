// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/silence.h"

#include <gtest/gtest.h>

namespace coop::path {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kRate = 1'000'000'000;
constexpr std::uint64_t kRetry = retry_time_ns(14, 7);
constexpr std::uint64_t kLimit = Silence::limit(0, false, kRetry, kRate);
constexpr Pending kIdle{.ended = 5};
constexpr Pending kBusy{.any = true, .ended = 5};

bool look(Silence& silence, const Pending& pending, std::uint64_t now) {
    return silence.look(pending, kRetry, kRate, now);
}

TEST(Silence, is_that_of_a_queue_pair_that_ends_nothing_within_its_retries) {
    EXPECT_EQ(kRetry, 536'870'912u);
    EXPECT_GT(kLimit, kRetry);
    Silence silence;
    EXPECT_FALSE(look(silence, kBusy, kSecond));
    EXPECT_FALSE(look(silence, kBusy, kSecond + kLimit));
    EXPECT_TRUE(look(silence, kBusy, kSecond + kLimit + 1));
    EXPECT_TRUE(look(silence, kBusy, kSecond + kLimit + 2));
}

TEST(Silence, begins_again_when_a_request_ends) {
    Silence silence;
    EXPECT_FALSE(look(silence, kBusy, 0));
    Pending pending = kBusy;
    pending.ended = 6;
    EXPECT_FALSE(look(silence, pending, kLimit + 1));
    EXPECT_FALSE(look(silence, pending, 2 * kLimit));
    EXPECT_TRUE(look(silence, pending, 2 * kLimit + 2));
}

TEST(Silence, of_a_queue_pair_without_requests_is_no_trouble) {
    Silence silence;
    EXPECT_FALSE(look(silence, kIdle, 0));
    EXPECT_FALSE(look(silence, kIdle, 1000 * kSecond));
    EXPECT_FALSE(look(silence, kBusy, 2000 * kSecond));  // posted since
    EXPECT_FALSE(look(silence, kIdle, 2000 * kSecond + kLimit / 2));
    EXPECT_FALSE(look(silence, kBusy, 2001 * kSecond + kLimit));
}

TEST(Silence, may_last_as_long_as_the_data_needs_on_a_busy_rail) {
    Silence silence;
    Pending pending = kBusy;
    pending.bytes = 100'000'000;  // 0.1 s, alone
    const std::uint64_t more = Silence::kSlower * kSecond / 10;
    EXPECT_FALSE(look(silence, pending, 0));
    EXPECT_FALSE(look(silence, pending, kLimit + more));
    EXPECT_TRUE(look(silence, pending, kLimit + more + 1));
    EXPECT_GT(Silence::limit(1'000'000, false, kRetry, 0), Silence::limit(1'000'000, false, kRetry, kRate));
    // A list of reads of gigabytes does not overflow.
    EXPECT_GT(Silence::limit(std::uint64_t{1} << 40, false, kRetry, kRate), 1000 * kSecond);
}

TEST(Silence, may_last_longer_while_a_message_waits_for_a_buffer_of_a_process_that_computes) {
    Silence silence;
    Pending pending = kBusy;
    pending.needs_buffer = true;
    EXPECT_FALSE(look(silence, pending, 0));
    EXPECT_FALSE(look(silence, pending, kLimit + Silence::kForBuffer));
    EXPECT_TRUE(look(silence, pending, kLimit + Silence::kForBuffer + 1));
    Silence heard;
    EXPECT_FALSE(look(heard, pending, 0));
    pending.heard = 1;
    EXPECT_FALSE(look(heard, pending, kLimit));
    EXPECT_TRUE(look(heard, pending, kLimit + 1));
}

}  // namespace
}  // namespace coop::path
