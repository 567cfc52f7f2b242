// SPDX-License-Identifier: BSD-3-Clause
//
// Every algorithm for every number of processes up to 64, executed block by block.
#include "coop/coll/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace coop::coll {

static void PrintTo(const Range& range, std::ostream* out) { *out << range.first << " +" << range.count; }

namespace {

constexpr Algorithm kAll[] = {Algorithm::kRecursiveDoubling, Algorithm::kBruck, Algorithm::kRing,
                              Algorithm::kNeighbour};
static_assert(std::size(kAll) == kAlgorithms);
constexpr std::uint32_t kMostProcesses = 64;

void for_each_case(const std::function<void(Algorithm, std::uint32_t)>& check) {
    for (const Algorithm algorithm : kAll)
        for (std::uint32_t p = 1; p <= kMostProcesses; ++p) {
            if (!fits(algorithm, p)) continue;
            SCOPED_TRACE(std::string(text(algorithm)) + ", " + std::to_string(p) + " processes");
            check(algorithm, p);
        }
}

void for_each_step(Algorithm algorithm, std::uint32_t p,
                   const std::function<void(std::uint32_t rank, std::uint32_t step, const Step&)>& check) {
    for (std::uint32_t step = 0; step < count_steps(algorithm, p); ++step)
        for (std::uint32_t rank = 0; rank < p; ++rank) check(rank, step, step_of(algorithm, p, rank, step));
}

std::vector<std::uint32_t> blocks_in(const Range& range, std::uint32_t p) {
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t i = 0; i < range.count; ++i) blocks.push_back((range.first + i) % p);
    return blocks;
}

TEST(CollSteps, partners_and_ranges_are_within_the_communicator) {
    for_each_case([](Algorithm algorithm, std::uint32_t p) {
        for_each_step(algorithm, p, [&](std::uint32_t rank, std::uint32_t step, const Step& mine) {
            EXPECT_LT(mine.to, p) << "rank " << rank << ", step " << step;
            EXPECT_LT(mine.from, p);
            EXPECT_NE(mine.to, rank);
            EXPECT_NE(mine.from, rank);
            for (const Range& range : {mine.send, mine.receive}) {
                EXPECT_LT(range.first, p);
                EXPECT_GE(range.count, 1u);
                EXPECT_LT(range.count, p);  // so that it wraps at most once
            }
        });
    });
}

TEST(CollSteps, each_send_is_the_receive_of_the_partner) {
    for_each_case([](Algorithm algorithm, std::uint32_t p) {
        for_each_step(algorithm, p, [&](std::uint32_t rank, std::uint32_t step, const Step& mine) {
            const Step theirs = step_of(algorithm, p, mine.to, step);
            EXPECT_EQ(theirs.from, rank) << "rank " << rank << ", step " << step;
            EXPECT_EQ(theirs.receive, mine.send) << "rank " << rank << ", step " << step;
        });
    });
}

TEST(CollSteps, ranks_send_blocks_that_they_have_and_receive_each_block_once) {
    for_each_case([](Algorithm algorithm, std::uint32_t p) {
        std::vector<std::vector<int>> copies(p, std::vector<int>(p, 0));  // [rank][block]
        for (std::uint32_t rank = 0; rank < p; ++rank) copies[rank][rank] = 1;
        for (std::uint32_t step = 0; step < count_steps(algorithm, p); ++step) {
            const auto before = copies;
            for (std::uint32_t rank = 0; rank < p; ++rank) {
                const Step mine = step_of(algorithm, p, rank, step);
                for (const std::uint32_t block : blocks_in(mine.send, p))
                    EXPECT_EQ(before[rank][block], 1) << "rank " << rank << ", step " << step << ", block " << block;
                for (const std::uint32_t block : blocks_in(mine.receive, p)) ++copies[rank][block];
            }
        }
        for (std::uint32_t rank = 0; rank < p; ++rank) EXPECT_EQ(copies[rank], std::vector<int>(p, 1)) << rank;
    });
}

TEST(CollSteps, a_ring_in_any_order_sends_each_block_once_around) {
    std::mt19937 random(3);
    for (std::uint32_t p = 2; p <= kMostProcesses; ++p) {
        std::vector<std::uint32_t> rank_at(p);
        std::iota(rank_at.begin(), rank_at.end(), 0);
        std::shuffle(rank_at.begin(), rank_at.end(), random);
        std::vector<std::vector<int>> copies(p, std::vector<int>(p, 0));  // [rank][block]
        for (std::uint32_t rank = 0; rank < p; ++rank) copies[rank][rank] = 1;
        for (std::uint32_t step = 0; step + 1 < p; ++step) {
            const auto before = copies;
            for (std::uint32_t position = 0; position < p; ++position) {
                const Step mine = ring_step_of({rank_at, position}, step);
                EXPECT_EQ(mine.to, rank_at[(position + 1) % p]);
                EXPECT_EQ(mine.from, rank_at[(position + p - 1) % p]);
                EXPECT_EQ(before[rank_at[position]][mine.send.first], 1);
                EXPECT_EQ(ring_step_of({rank_at, (position + 1) % p}, step).receive, mine.send);
                ++copies[rank_at[position]][mine.receive.first];
            }
        }
        for (std::uint32_t rank = 0; rank < p; ++rank) EXPECT_EQ(copies[rank], std::vector<int>(p, 1)) << rank;
    }
}

TEST(CollSteps, all_ranks_move_the_same_number_of_blocks_in_a_step) {
    for_each_case([](Algorithm algorithm, std::uint32_t p) {
        for_each_step(algorithm, p, [&](std::uint32_t rank, std::uint32_t step, const Step& mine) {
            const std::uint32_t count = step_of(algorithm, p, 0, step).send.count;
            EXPECT_EQ(mine.send.count, count) << "rank " << rank << ", step " << step;
            EXPECT_EQ(mine.receive.count, count) << "rank " << rank << ", step " << step;
        });
    });
}

TEST(CollSteps, only_the_range_of_bruck_wraps) {
    for_each_case([](Algorithm algorithm, std::uint32_t p) {
        if (algorithm == Algorithm::kBruck) return;
        for_each_step(algorithm, p, [&](std::uint32_t rank, std::uint32_t step, const Step& mine) {
            EXPECT_LE(mine.send.first + mine.send.count, p) << "rank " << rank << ", step " << step;
        });
    });
    EXPECT_EQ(step_of(Algorithm::kBruck, 6, 5, 1).send, (Range{5, 2}));  // blocks 5 and 0
}

TEST(CollSteps, the_number_of_steps_is_that_of_the_table) {
    for (std::uint32_t p = 1; p <= kMostProcesses; ++p) {
        std::uint32_t doublings = 0;
        while (1u << doublings < p) ++doublings;
        if (std::has_single_bit(p)) {
            EXPECT_EQ(count_steps(Algorithm::kRecursiveDoubling, p), doublings) << p;
        }
        EXPECT_EQ(count_steps(Algorithm::kBruck, p), doublings) << p;
        EXPECT_EQ(count_steps(Algorithm::kRing, p), p - 1) << p;
        if (p % 2 == 0) {
            EXPECT_EQ(count_steps(Algorithm::kNeighbour, p), p / 2) << p;
        }
    }
}

TEST(CollSteps, rank_0_of_8_sends_what_the_table_says) {
    struct Send {
        std::uint32_t to;
        Range blocks;
    };
    const auto expect = [](Algorithm algorithm, const std::vector<Send>& sends) {
        for (std::uint32_t step = 0; step < sends.size(); ++step) {
            const Step mine = step_of(algorithm, 8, 0, step);
            EXPECT_EQ(mine.to, sends[step].to) << text(algorithm) << ", step " << step;
            EXPECT_EQ(mine.send, sends[step].blocks) << text(algorithm) << ", step " << step;
        }
    };
    expect(Algorithm::kRecursiveDoubling, {{1, {0, 1}}, {2, {0, 2}}, {4, {0, 4}}});
    expect(Algorithm::kBruck, {{7, {0, 1}}, {6, {0, 2}}, {4, {0, 4}}});
    expect(Algorithm::kRing, {{1, {0, 1}}, {1, {7, 1}}, {1, {6, 1}}});
    expect(Algorithm::kNeighbour, {{1, {0, 1}}, {7, {0, 2}}, {1, {6, 2}}});
}

TEST(CollSteps, doubling_needs_a_power_of_two_and_neighbour_an_even_number) {
    for (std::uint32_t p = 1; p <= kMostProcesses; ++p) {
        EXPECT_EQ(fits(Algorithm::kRecursiveDoubling, p), std::has_single_bit(p)) << p;
        EXPECT_EQ(fits(Algorithm::kNeighbour, p), p % 2 == 0) << p;
        EXPECT_TRUE(fits(Algorithm::kBruck, p)) << p;
        EXPECT_TRUE(fits(Algorithm::kRing, p)) << p;
    }
}

TEST(CollSteps, algorithms_have_the_names_of_the_parameters) {
    std::vector<std::string> names;
    for (const Algorithm algorithm : kAll) names.push_back(text(algorithm));
    EXPECT_EQ(names, (std::vector<std::string>{"doubling", "bruck", "ring", "neighbour"}));
}

}  // namespace
}  // namespace coop::coll
