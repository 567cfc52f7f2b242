// SPDX-License-Identifier: BSD-3-Clause
// rma/rank_table.h: names of any kind, and the time that large groups take.
#include "coop/rma/rank_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <vector>

namespace coop::rma {
namespace {

void expect_found(const std::vector<std::uint64_t>& names) {
    const RankTable table(static_cast<std::uint32_t>(names.size()), [&](std::uint32_t rank) { return names[rank]; });
    EXPECT_EQ(table.empty(), names.empty());
    const std::map<std::uint64_t, std::uint32_t> known = [&] {
        std::map<std::uint64_t, std::uint32_t> ranks;
        for (std::uint32_t rank = 0; rank < names.size(); ++rank) ranks.emplace(names[rank], rank);
        return ranks;
    }();
    for (const std::uint64_t name : names)
        for (const std::uint64_t near : {name - 1, name, name + 1}) {
            const auto expected = known.find(near);
            const auto found = table.find(near);
            ASSERT_EQ(found.has_value(), expected != known.end()) << near;
            if (found) {
                ASSERT_EQ(*found, expected->second) << near;
            }
        }
    EXPECT_EQ(table.find(0).has_value(), known.contains(0));
    EXPECT_EQ(table.find(UINT64_MAX).has_value(), known.contains(UINT64_MAX));
}

constexpr std::uint64_t kJob = std::uint64_t{0x1234} << 32;

TEST(RmaRankTable, of_nobody_finds_nobody) {
    expect_found({});
    EXPECT_TRUE(RankTable().empty());
    EXPECT_FALSE(RankTable().find(0).has_value());
}
TEST(RmaRankTable, consecutive_names) { expect_found({kJob, kJob + 1, kJob + 2, kJob + 3}); }
TEST(RmaRankTable, ascending_names_with_gaps) { expect_found({kJob, kJob + 2, kJob + 3, kJob + 1000}); }
TEST(RmaRankTable, names_in_another_order) { expect_found({kJob + 3, kJob, kJob + 2, kJob + 1}); }
TEST(RmaRankTable, names_of_two_jobs) { expect_found({kJob, kJob + 1, 5, 6, 2 * kJob, 2 * kJob + 7}); }
TEST(RmaRankTable, extreme_names) { expect_found({UINT64_MAX, 0, UINT64_MAX - 5}); }

TEST(RmaRankTable, random_names) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint64_t> names(1 + random() % 50);
        for (std::uint64_t& name : names) name = round % 2 ? random() : kJob + random() % 100;
        std::ranges::sort(names);
        names.erase(std::unique(names.begin(), names.end()), names.end());
        std::ranges::shuffle(names, random);
        expect_found(names);
        if (HasFatalFailure()) return;
    }
}

// The shortest of several times to find a whole group of a window of so many processes.
std::chrono::nanoseconds time_to_find_all(std::uint32_t processes, bool in_order) {
    std::vector<std::uint64_t> names(processes);
    for (std::uint32_t rank = 0; rank < processes; ++rank) names[rank] = kJob + 3 * rank;
    if (!in_order) std::ranges::shuffle(names, std::mt19937(5));
    auto shortest = std::chrono::nanoseconds::max();
    for (int round = 0; round < 7; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        const RankTable table(processes, [&](std::uint32_t rank) { return names[rank]; });
        std::uint64_t sum = 0;
        for (const std::uint64_t name : names) sum += table.find(name).value_or(0);
        shortest = std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
        EXPECT_EQ(sum, std::uint64_t{processes} * (processes - 1) / 2);
    }
    return shortest;
}

// 32 times as many processes: linear time would be 32 times as long, with a search about 60 times, quadratic 1024 times.
TEST(RmaRankTable, the_time_does_not_grow_with_the_square_of_the_group) {
    for (const bool in_order : {true, false}) {
        const auto few = time_to_find_all(2048, in_order), many = time_to_find_all(65536, in_order);
        EXPECT_LT(many.count(), 256 * few.count()) << (in_order ? "in order" : "shuffled");
    }
}

}  // namespace
}  // namespace coop::rma
