// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/ranges.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace coop::coll {
namespace {

TEST(CollRanges, a_region_is_taken_until_it_is_full) {
    Ranges ranges(256);
    EXPECT_EQ(ranges.take(64), 0u);
    EXPECT_EQ(ranges.take(65), 64u);
    EXPECT_FALSE(ranges.take(65));
    EXPECT_EQ(ranges.take(1), 192u);
    EXPECT_FALSE(ranges.take(1));
    EXPECT_EQ(ranges.taken_bytes(), 256u);
}

TEST(CollRanges, a_region_that_is_too_small_gives_nothing) {
    EXPECT_FALSE(Ranges(0).take(1));
    EXPECT_FALSE(Ranges(63).take(1));
    EXPECT_FALSE(Ranges(128).take(129));
}

TEST(CollRanges, free_neighbours_are_joined) {
    for (int first = 0; first < 3; ++first)
        for (int second = 0; second < 3; ++second) {
            if (second == first) continue;
            Ranges ranges(192);
            for (int i = 0; i < 3; ++i) ASSERT_TRUE(ranges.take(64));
            for (const int each : {first, second, 3 - first - second})
                ranges.give_back(static_cast<std::uint64_t>(each) * 64, 64);
            EXPECT_EQ(ranges.taken_bytes(), 0u);
            EXPECT_EQ(ranges.take(192), 0u);
        }
}

TEST(CollRanges, ranges_come_and_go_without_overlap_or_trace) {
    constexpr std::uint64_t kBytes = 1 << 16;
    Ranges ranges(kBytes);
    std::map<std::uint64_t, std::uint64_t> taken;
    std::mt19937 random(11);
    for (int i = 0; i < 20000; ++i) {
        if (random() % 2 == 0) {
            const std::uint64_t bytes = 1 + random() % 5000;
            const auto offset = ranges.take(bytes);
            if (!offset) continue;
            const auto [here, fresh] = taken.emplace(*offset, bytes);
            ASSERT_TRUE(fresh);
            ASSERT_LE(*offset + bytes, kBytes);
            if (const auto next = std::next(here); next != taken.end()) {
                ASSERT_LE(*offset + bytes, next->first);
            }
            if (here != taken.begin()) {
                ASSERT_LE(std::prev(here)->first + std::prev(here)->second, *offset);
            }
        } else if (!taken.empty()) {
            const auto some = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
            ranges.give_back(some->first, some->second);
            taken.erase(some);
        }
    }
    for (const auto& [offset, bytes] : taken) ranges.give_back(offset, bytes);
    EXPECT_EQ(ranges.take(kBytes), 0u);
}

}  // namespace
}  // namespace coop::coll
