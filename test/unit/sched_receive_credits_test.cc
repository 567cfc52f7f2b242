// SPDX-License-Identifier: BSD-3-Clause
//
// sched/receive_credits.h: a sender that has credits finds a receive buffer.
#include "coop/sched/receive_credits.h"

#include <gtest/gtest.h>

#include <random>

namespace coop::sched {
namespace {

constexpr unsigned kRandomSeed = 9752;

TEST(Grant, travels_in_a_word) {
    for (RailIndex rail = 0; rail < kMaxRails; ++rail)
        for (std::uint32_t count : {0u, 1u, 60u, Grant::kMax}) {
            const std::uint32_t generation = (rail + count) % Grant::kGenerations;
            const Grant got = Grant::of(Grant{rail, count, generation}.word());
            EXPECT_EQ(got.generation, generation);
            EXPECT_EQ(got.rail, rail);
            EXPECT_EQ(got.count, count);
        }
    EXPECT_EQ((Grant{}.word()), 0);
}

TEST(SendCredits, begins_with_the_first_and_waits_then) {
    SendCredits credits;
    for (std::uint32_t i = 0; i < kFirstCredits; ++i) EXPECT_TRUE(credits.take());
    EXPECT_FALSE(credits.take());
    EXPECT_TRUE(credits.give(1));
    EXPECT_TRUE(credits.take());
    EXPECT_FALSE(credits.take());
}

TEST(SendCredits, refuses_more_than_any_receiver_has) {
    SendCredits credits;
    EXPECT_FALSE(credits.give(Grant::kMax));
    EXPECT_FALSE(credits.give(UINT32_MAX));
    EXPECT_EQ(credits.left(), kFirstCredits);
    EXPECT_TRUE(credits.give(Grant::kMax - kFirstCredits));
}

TEST(ReceiveCredits, owes_at_first_what_is_neither_first_nor_reserve) {
    EXPECT_EQ(ReceiveCredits(64).owed(), 64 - kReservedReceives - kFirstCredits);
    EXPECT_EQ(ReceiveCredits(kFirstCredits + kReservedReceives).owed(), 0u);
    EXPECT_EQ(ReceiveCredits(1).owed(), 0u);
}

TEST(ReceiveCredits, gives_no_more_than_a_message_can_carry_at_once) {
    ReceiveCredits receives(3 * Grant::kMax);
    EXPECT_EQ(receives.take_owed(), Grant::kMax);
    EXPECT_GT(receives.owed(), 0u);
}

// In any order of finishing messages and returning credits, no message finds all buffers in use.
TEST(Credits, random_traffic_never_finds_all_buffers_taken) {
    for (std::uint32_t buffers : {12u, 16u, 64u}) {
        SCOPED_TRACE("seed " + std::to_string(kRandomSeed) + ", buffers " + std::to_string(buffers));
        std::mt19937 random(kRandomSeed);
        SendCredits sender;
        ReceiveCredits receiver(buffers);
        std::uint32_t taken = 0, most = 0, sent = 0;
        while (sent < 50'000) {
            if (random() % 2 == 0 && sender.take()) {
                ++taken;
                ++sent;
            }
            most = std::max(most, taken);
            ASSERT_LE(taken, buffers - kReservedReceives);
            if (taken > 0 && random() % 3 == 0) {
                --taken;
                receiver.on_free();
            }
            if (receiver.owes_half() || random() % 20 == 0) {
                ASSERT_TRUE(sender.give(receiver.take_owed()));
            }
        }
        EXPECT_EQ(most, buffers - kReservedReceives);  // all but the reserve are used
    }
}

}  // namespace
}  // namespace coop::sched
