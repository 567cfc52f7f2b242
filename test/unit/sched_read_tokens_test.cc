// SPDX-License-Identifier: BSD-3-Clause
//
// sched/read_tokens.h: never more reads than the queue pair allows, and in order.
#include "coop/sched/read_tokens.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace coop::sched {
namespace {

constexpr unsigned kRandomSeed = 6011;

struct Read {
    int number = 0;
    ListNode node;
};

using Tokens = ReadTokens<Read, &Read::node>;

TEST(ReadTokens, a_read_has_a_token_while_there_is_one) {
    Tokens tokens(2);
    Read a, b, c;
    EXPECT_TRUE(tokens.take_or_queue(&a));
    EXPECT_TRUE(tokens.take_or_queue(&b));
    EXPECT_FALSE(tokens.take_or_queue(&c));
    EXPECT_EQ(tokens.outstanding(), 2u);
    EXPECT_TRUE(tokens.has_waiting());
}

TEST(ReadTokens, a_token_that_is_given_back_goes_to_the_one_that_waits_longest) {
    Tokens tokens(1);
    Read a, b, c;
    EXPECT_TRUE(tokens.take_or_queue(&a));
    EXPECT_FALSE(tokens.take_or_queue(&b));
    EXPECT_FALSE(tokens.take_or_queue(&c));
    EXPECT_EQ(tokens.give_back(), &b);
    EXPECT_EQ(tokens.outstanding(), 1u) << "the token changes hands";
    EXPECT_EQ(tokens.give_back(), &c);
    EXPECT_EQ(tokens.give_back(), nullptr);
    EXPECT_EQ(tokens.outstanding(), 0u);
}

TEST(ReadTokens, a_new_queue_pair_has_all_tokens) {
    Tokens tokens(1);
    Read a, b;
    EXPECT_TRUE(tokens.take_or_queue(&a));
    tokens.reset(3);
    EXPECT_EQ(tokens.outstanding(), 0u);
    EXPECT_EQ(tokens.limit(), 3u);
    EXPECT_TRUE(tokens.take_or_queue(&b));
}

TEST(ReadTokens, giving_back_too_often_makes_no_tokens) {
    Tokens tokens(1);
    EXPECT_EQ(tokens.give_back(), nullptr);
    EXPECT_EQ(tokens.outstanding(), 0u);
    Read a, b;
    EXPECT_TRUE(tokens.take_or_queue(&a));
    EXPECT_FALSE(tokens.take_or_queue(&b));
    EXPECT_EQ(tokens.give_back(), &b);
}

TEST(ReadTokens, any_traffic_stays_within_the_limit_and_starts_in_order) {
    std::mt19937 random(kRandomSeed);
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    for (std::uint32_t limit : {1u, 4u, 16u}) {
        Tokens tokens(limit);
        std::vector<Read> reads(2000);
        std::uint32_t under_way = 0;
        int next_to_start = 0;
        const auto start = [&](Read* read) {
            ASSERT_EQ(read->number, next_to_start++);
            ASSERT_LE(++under_way, limit);
        };
        std::size_t asked = 0;
        while (next_to_start < static_cast<int>(reads.size()) || under_way != 0) {
            if (asked < reads.size() && (under_way == 0 || random() % 2)) {
                reads[asked].number = static_cast<int>(asked);
                Read* read = &reads[asked++];
                if (tokens.take_or_queue(read)) start(read);
            } else {
                --under_way;
                if (Read* read = tokens.give_back()) start(read);
            }
            if (HasFatalFailure()) return;
            ASSERT_EQ(tokens.outstanding(), under_way);
        }
    }
}

}  // namespace
}  // namespace coop::sched
