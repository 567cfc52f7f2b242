// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/board.h: load, surplus and free slots.
#include "coop/rndv/board.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace coop::rndv {
namespace {

// --- load ----------------------------------------------------------------------------

TEST(Load, is_what_was_added_less_what_was_subtracted) {
    Board board;
    EXPECT_EQ(load_of(board), 0u);
    add_load(board, 100);
    add_load(board, 50);
    subtract_load(board, 30);
    EXPECT_EQ(load_of(board), 120u);
}

TEST(Load, never_falls_below_zero) {
    Board board;
    add_load(board, 10);
    subtract_load(board, 11);
    EXPECT_EQ(load_of(board), 0u);
    subtract_load(board, UINT64_MAX);
    EXPECT_EQ(load_of(board), 0u);
}

TEST(Load, of_several_threads_adds_up) {
    Board board;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            for (std::uint64_t i = 1; i <= 5000; ++i) {
                add_load(board, i);
                subtract_load(board, i - 1);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(load_of(board), 3u * 5000u);
}

// --- surplus --------------------------------------------------------------------------

TEST(Surplus, is_even_at_first_and_after_a_turn_of_each) {
    Board a, b;
    EXPECT_EQ(surplus_over(a, b), 0);
    count_turn(a, b, 100);
    EXPECT_EQ(surplus_over(a, b), 200);
    EXPECT_EQ(surplus_over(b, a), -200);
    count_turn(b, a, 100);
    EXPECT_EQ(surplus_over(a, b), 0);
}

TEST(Surplus, of_a_process_counts_its_turns_with_all_others) {
    Board a, b, c;
    count_turn(a, b, 100);
    count_turn(a, c, 100);
    EXPECT_EQ(surplus_over(a, b), 300);
    EXPECT_EQ(surplus_over(b, c), 0);
}

TEST(Surplus, survives_the_wrapping_of_its_words) {
    Board a, b;
    for (Board* board : {&a, &b}) board->surplus.store(UINT64_MAX - 10);
    count_turn(a, b, 1000);
    EXPECT_EQ(surplus_over(a, b), 2000);
    a.surplus.store(5);
    b.surplus.store(UINT64_MAX - 4);
    EXPECT_EQ(surplus_over(a, b), 10);
    EXPECT_EQ(surplus_over(b, a), -10);
}

TEST(Surplus, of_several_threads_adds_up) {
    Board a, b;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::uint64_t i = 1; i <= 5000; ++i) count_turn(t % 2 ? a : b, t % 2 ? b : a, i);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(surplus_over(a, b), 0);
}

// Whoever copied less so far copies: nobody is ever far from its half, in whatever order the messages come.
TEST(Surplus, keeps_each_of_many_at_its_half) {
    constexpr std::size_t kBoards = 8;
    constexpr std::int64_t kBytes = 1000;
    std::vector<Board> boards(kBoards);
    std::uint64_t random = 1;
    const auto pick = [&] { return (random = random * 6364136223846793005u + 1442695040888963407u) >> 33; };
    for (int n = 0; n < 10000; ++n) {
        Board& one = boards[pick() % kBoards];
        Board& other = boards[pick() % kBoards];
        if (&one == &other) continue;
        if (surplus_over(one, other) > 0) count_turn(other, one, kBytes);
        else count_turn(one, other, kBytes);
        for (const Board& board : boards)
            ASSERT_LE(std::abs(static_cast<std::int64_t>(board.surplus.load())), 4 * kBytes) << n;
    }
}

// --- slots ---------------------------------------------------------------------------

TEST(Slots, are_each_given_once_until_none_is_left) {
    SlotPool pool;
    std::set<std::uint32_t> given;
    for (std::uint32_t i = 0; i < kSlots; ++i) {
        const auto slot = pool.acquire();
        ASSERT_TRUE(slot);
        EXPECT_LT(*slot, kSlots);
        EXPECT_TRUE(given.insert(*slot).second);
    }
    EXPECT_FALSE(pool.acquire());
    pool.release(17);
    EXPECT_EQ(pool.acquire(), 17u);
    EXPECT_FALSE(pool.acquire());
}

}  // namespace
}  // namespace coop::rndv
