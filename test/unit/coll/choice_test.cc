// SPDX-License-Identifier: BSD-3-Clause
// coll/choice.h: every wish with every number of processes, and blocks around ring_min.
#include "coop/coll/choice.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

namespace coop::coll {
namespace {

constexpr std::uint64_t kRingMin = 1 << 20;
constexpr std::uint64_t kSizes[] = {1, kRingMin - 1, kRingMin, kRingMin + 1, std::uint64_t{1} << 40};
constexpr Wish kWishes[] = {Wish::kAuto, Wish::kDoubling, Wish::kBruck, Wish::kRing, Wish::kNeighbour};

template <class Check>
void for_each_number_and_size(Check check) {
    for (std::uint32_t p = 2; p <= 70; ++p)
        for (const std::uint64_t bytes : kSizes) {
            SCOPED_TRACE("p " + std::to_string(p) + " bytes " + std::to_string(bytes));
            check(p, bytes);
        }
}

Choice automatic(std::uint32_t p, std::uint64_t bytes) { return choose({p, p * bytes, Wish::kAuto, kRingMin}); }

TEST(CollChoice, the_chosen_algorithm_always_fits) {
    for (const Wish wish : kWishes)
        for_each_number_and_size([&](std::uint32_t p, std::uint64_t bytes) {
            EXPECT_TRUE(fits(choose({p, p * bytes, wish, kRingMin}).algorithm, p)) << static_cast<int>(wish);
        });
}

TEST(CollChoice, a_wish_is_granted_where_it_fits) {
    constexpr struct {
        Wish wish;
        Algorithm algorithm;
    } kRows[] = {{Wish::kDoubling, Algorithm::kRecursiveDoubling},
                 {Wish::kBruck, Algorithm::kBruck},
                 {Wish::kRing, Algorithm::kRing},
                 {Wish::kNeighbour, Algorithm::kNeighbour}};
    for (const auto& row : kRows)
        for_each_number_and_size([&](std::uint32_t p, std::uint64_t bytes) {
            const Choice granted{row.algorithm, Reason::kAsked};
            EXPECT_EQ(choose({p, p * bytes, row.wish, kRingMin}),
                      fits(row.algorithm, p) ? granted : automatic(p, bytes));
        });
}

TEST(CollChoice, short_blocks_take_the_fewest_steps) {
    for_each_number_and_size([](std::uint32_t p, std::uint64_t bytes) {
        if (bytes >= kRingMin) return;
        EXPECT_EQ(automatic(p, bytes), std::has_single_bit(p)
                                           ? (Choice{Algorithm::kRecursiveDoubling, Reason::kPowerOfTwo})
                                           : (Choice{Algorithm::kBruck, Reason::kAnyNumber}));
    });
}

TEST(CollChoice, long_blocks_take_the_ring_unless_few_processes_can_double) {
    for_each_number_and_size([](std::uint32_t p, std::uint64_t bytes) {
        if (bytes < kRingMin) return;
        EXPECT_EQ(automatic(p, bytes), p == 2 || p == 4 || p == 8 || p == 16 || p == 32
                                           ? (Choice{Algorithm::kRecursiveDoubling, Reason::kPowerOfTwo})
                                           : (Choice{Algorithm::kRing, Reason::kLong}));
    });
}

TEST(CollChoice, a_limit_of_zero_makes_every_block_long) {
    EXPECT_EQ(choose({3, 1, Wish::kAuto, 0}), (Choice{Algorithm::kRing, Reason::kLong}));
    EXPECT_EQ(choose({64, 1, Wish::kAuto, 0}), (Choice{Algorithm::kRing, Reason::kLong}));
    EXPECT_EQ(choose({32, 1, Wish::kAuto, 0}), (Choice{Algorithm::kRecursiveDoubling, Reason::kPowerOfTwo}));
}

TEST(CollChoice, many_short_blocks_are_no_reason_for_the_ring) {
    EXPECT_EQ(choose({4096, 4096 * 256, Wish::kAuto, kRingMin}).algorithm, Algorithm::kRecursiveDoubling);
    EXPECT_EQ(choose({131071, 131071 * 8, Wish::kAuto, kRingMin}).algorithm, Algorithm::kBruck);
}

TEST(CollChoice, each_reason_has_a_text_of_its_own) {
    for (std::size_t i = 0; i < kReasons; ++i)
        for (std::size_t j = 0; j < i; ++j) EXPECT_STRNE(text(static_cast<Reason>(i)), text(static_cast<Reason>(j)));
}

}  // namespace
}  // namespace coop::coll
