// SPDX-License-Identifier: BSD-3-Clause
// rma/runs.h: layouts against the plain list of their blocks, and numbers at the ends of their types.
#include "coop/rma/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace coop::rma {

static void PrintTo(const Run& run, std::ostream* out) {
    *out << run.repeat << " x " << run.bytes << " at " << run.offset << ", stride " << run.stride;
}

namespace {

constexpr std::int64_t kMin = INT64_MIN, kMax = INT64_MAX;
constexpr std::uint64_t k2To63 = std::uint64_t{1} << 63;

using Runs = std::vector<Run>;
using Offsets = std::vector<std::uint64_t>;  // of each byte, in the order of the data

Runs built(const std::vector<Block>& blocks) {
    RunBuilder builder;
    for (const Block& block : blocks) builder.add(block);
    return {builder.runs().begin(), builder.runs().end()};
}

void append(Offsets& to, const Block& block) {
    for (std::uint64_t i = 0; i < block.bytes; ++i) to.push_back(block.offset + i);
}

// Reads with a different `most` in each step, and compares what left_of_block() has promised.
Offsets walked(std::span<const Run> runs, std::mt19937& random, std::uint64_t most) {
    Offsets offsets;
    for (RunCursor cursor(runs); !cursor.at_end();) {
        const std::uint64_t left = cursor.left_of_block(), part = 1 + random() % most;
        const Block block = cursor.next(part);
        EXPECT_EQ(block.bytes, std::min(left, part));
        append(offsets, block);
    }
    return offsets;
}

// Blocks as datatypes have them: neighbours, vectors forwards and backwards, single ones, empty ones, repeated ones.
std::vector<Block> random_blocks(std::mt19937& random) {
    std::vector<Block> blocks;
    for (std::uint32_t part = random() % 6; part > 0; --part) {
        const std::uint64_t start = 4000 + random() % 4000, bytes = random() % 12, count = 1 + random() % 9;
        const std::uint64_t stride = random() % 4 == 0   ? bytes
                                     : random() % 4 == 0 ? -std::uint64_t{random() % 64}
                                                         : random() % 64;
        for (std::uint64_t i = 0; i < count; ++i)
            blocks.push_back({start + i * stride, random() % 16 == 0 ? random() % 12 : bytes});
    }
    return blocks;
}

TEST(RmaRuns, neighbours_become_one_block) {
    EXPECT_EQ(built({{100, 8}, {108, 4}, {112, 1}}), (Runs{{100, 13, 0, 1}}));
    EXPECT_EQ(built({{100, 8}, {108, 8}, {116, 8}}), (Runs{{100, 24, 0, 1}}));
    // The data of a block in front comes later, so that it stays a block of its own.
    EXPECT_EQ(built({{108, 8}, {100, 4}}), (Runs{{108, 8, 0, 1}, {100, 4, 0, 1}}));
}

TEST(RmaRuns, equal_distances_become_a_stride) {
    EXPECT_EQ(built({{100, 8}, {124, 8}, {148, 8}}), (Runs{{100, 8, 24, 3}}));
    EXPECT_EQ(built({{148, 8}, {124, 8}, {100, 8}}), (Runs{{148, 8, -24, 3}}));
    EXPECT_EQ(built({{100, 8}, {92, 8}, {84, 8}}), (Runs{{100, 8, -8, 3}}));
    EXPECT_EQ(built({{100, 8}, {100, 8}, {100, 8}}), (Runs{{100, 8, 0, 3}}));
    EXPECT_EQ(built({{100, 8}, {102, 8}, {104, 8}}), (Runs{{100, 8, 2, 3}}));
    EXPECT_EQ(built({{0, 4}, {4, 4}, {24, 8}, {48, 8}}), (Runs{{0, 8, 24, 3}}));
}

TEST(RmaRuns, another_distance_or_length_begins_a_run) {
    EXPECT_EQ(built({{0, 8}, {24, 8}, {49, 8}}), (Runs{{0, 8, 24, 2}, {49, 8, 0, 1}}));
    EXPECT_EQ(built({{0, 8}, {24, 8}, {48, 7}}), (Runs{{0, 8, 24, 2}, {48, 7, 0, 1}}));
    EXPECT_EQ(built({{0, 8}, {24, 8}, {32, 8}}), (Runs{{0, 8, 24, 2}, {32, 8, 0, 1}}));
    EXPECT_EQ(built({{0, 8}, {24, 8}, {50, 8}, {76, 8}}), (Runs{{0, 8, 24, 2}, {50, 8, 26, 2}}));
}

TEST(RmaRuns, empty_blocks_leave_no_trace) {
    EXPECT_EQ(built({{5, 0}, {100, 8}, {7, 0}, {108, 8}, {0, 0}}), (Runs{{100, 16, 0, 1}}));
    RunBuilder builder;
    builder.add(3, 0);
    EXPECT_TRUE(builder.runs().empty());
    EXPECT_EQ(builder.bytes(), 0u);
    EXPECT_TRUE(RunCursor(builder.runs()).at_end());
}

TEST(RmaRuns, a_cleared_builder_begins_anew) {
    RunBuilder builder;
    builder.add(0, 8);
    builder.add(16, 8);
    EXPECT_EQ(builder.bytes(), 16u);
    builder.clear();
    EXPECT_EQ(builder.bytes(), 0u);
    builder.add(32, 8);
    EXPECT_EQ(Runs(builder.runs().begin(), builder.runs().end()), (Runs{{32, 8, 0, 1}}));
    EXPECT_EQ(builder.bytes(), 8u);
}

TEST(RmaRuns, a_single_block_is_known_as_such) {
    RunBuilder builder;
    EXPECT_FALSE(builder.single());
    builder.add(100, 8);
    builder.add(108, 8);
    ASSERT_TRUE(builder.single());
    EXPECT_EQ(builder.single()->offset, 100u);
    EXPECT_EQ(builder.single()->bytes, 16u);
    builder.add(132, 16);
    EXPECT_FALSE(builder.single()) << "a run of two blocks";
    for (std::uint64_t i = 0; i < 5; ++i) {
        builder.add(1000 * (i + 1), 3 + i);
        EXPECT_FALSE(builder.single());
        EXPECT_EQ(builder.runs().size(), i + 2);
    }
    builder.clear();
    builder.add(200, 4);
    EXPECT_TRUE(builder.single());
}

TEST(RmaRuns, random_layouts_keep_every_byte_in_order) {
    std::mt19937 random(1);
    std::size_t merged = 0;
    for (int round = 0; round < 3000 && !HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        const std::vector<Block> blocks = random_blocks(random);
        Offsets expected;
        RunBuilder builder;
        for (const Block& block : blocks) {
            append(expected, block);
            builder.add(block.offset, block.bytes);
        }
        EXPECT_EQ(builder.bytes(), expected.size());
        EXPECT_EQ(count_bytes(builder.runs()), expected.size());
        EXPECT_EQ(walked(builder.runs(), random, 1), expected);
        EXPECT_EQ(walked(builder.runs(), random, 20), expected);
        Offsets whole;
        for (RunCursor cursor(builder.runs()); !cursor.at_end();) append(whole, cursor.next(UINT64_MAX));
        EXPECT_EQ(whole, expected);
        // The first size that has all bytes is the one behind the last.
        const std::uint64_t end = expected.empty() ? 0 : *std::ranges::max_element(expected) + 1;
        EXPECT_TRUE(are_inside(builder.runs(), end));
        EXPECT_EQ(are_inside(builder.runs(), end - (end > 0)), expected.empty());
        merged += blocks.size() - builder.runs().size();
    }
    EXPECT_GT(merged, 10'000u);
}

TEST(RmaRuns, the_cursor_cuts_blocks_and_not_more) {
    const Runs runs = {{100, 8, 24, 2}, {7, 3, 0, 1}};
    RunCursor cursor(runs);
    const auto expect = [&](std::uint64_t most, std::uint64_t left, Block next) {
        EXPECT_EQ(cursor.left_of_block(), left);
        const Block block = cursor.next(most);
        EXPECT_EQ(block.offset, next.offset);
        EXPECT_EQ(block.bytes, next.bytes);
    };
    expect(5, 8, {100, 5});
    expect(5, 3, {105, 3});
    expect(8, 8, {124, 8});
    expect(1, 3, {7, 1});
    EXPECT_FALSE(cursor.at_end());
    expect(UINT64_MAX, 2, {8, 2});
    EXPECT_TRUE(cursor.at_end());
}

TEST(RmaRuns, random_runs_of_a_peer_are_inside_as_their_blocks_are) {
    std::mt19937 random(2);
    std::size_t inside = 0;
    for (int round = 0; round < 50'000; ++round) {
        Runs runs(random() % 3);
        const std::uint64_t size = random() % 40;
        bool all = true;
        unsigned __int128 bytes = 0;
        for (rma::Run& run : runs) {
            run = {random() % 40, random() % 12, static_cast<std::int64_t>(random() % 40) - 20, random() % 5};
            all &= run.repeat > 0 && run.bytes > 0;
            for (std::uint64_t i = 0; i < run.repeat; ++i) {
                const auto first = static_cast<std::int64_t>(run.offset) + run.stride * static_cast<std::int64_t>(i);
                all &= first >= 0 && first + static_cast<std::int64_t>(run.bytes) <= static_cast<std::int64_t>(size);
                bytes += run.bytes;
            }
        }
        ASSERT_EQ(are_inside(runs, size), all) << testing::PrintToString(runs) << " in " << size;
        ASSERT_EQ(count_bytes(runs), static_cast<std::uint64_t>(bytes));
        inside += all && !runs.empty();
    }
    EXPECT_GT(inside, 1000u);
}

bool is_inside(const Run& run, std::uint64_t size) { return are_inside({&run, 1}, size); }

TEST(RmaRuns, places_at_the_end_of_the_address_space) {
    EXPECT_TRUE(is_inside({UINT64_MAX - 8, 8, 0, 1}, UINT64_MAX));
    EXPECT_FALSE(is_inside({UINT64_MAX - 7, 8, 0, 1}, UINT64_MAX));
    EXPECT_FALSE(is_inside({UINT64_MAX, UINT64_MAX, 0, 1}, UINT64_MAX));
    EXPECT_TRUE(is_inside({0, UINT64_MAX, 0, 1}, UINT64_MAX));
    EXPECT_FALSE(is_inside({1, UINT64_MAX, 0, 1}, UINT64_MAX));
    EXPECT_TRUE(is_inside({0, 8, kMax, 2}, k2To63 + 7));
    EXPECT_FALSE(is_inside({0, 8, kMax, 2}, k2To63 + 6));
    EXPECT_TRUE(is_inside({k2To63, 8, kMin, 2}, k2To63 + 8));
    EXPECT_FALSE(is_inside({k2To63 - 1, 8, kMin, 2}, UINT64_MAX));
}

TEST(RmaRuns, products_that_exceed_64_bits_are_outside) {
    // Each of them is 0 or small in 64 bits.
    EXPECT_FALSE(is_inside({0, 8, std::int64_t{1} << 32, (std::uint64_t{1} << 32) + 1}, 4096));
    EXPECT_FALSE(is_inside({0, 8, 16, (std::uint64_t{1} << 60) + 1}, 4096));
    EXPECT_FALSE(is_inside({4096, 8, -16, (std::uint64_t{1} << 60) + 1}, 8192));
    EXPECT_FALSE(is_inside({0, 8, kMin, 3}, 4096));
    // The largest and the smallest sums that a run can name: beyond 127 bits.
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{4096}, k2To63, UINT64_MAX})
        for (const std::uint64_t offset : {std::uint64_t{0}, k2To63, UINT64_MAX})
            for (const std::uint64_t bytes : {std::uint64_t{1}, k2To63, UINT64_MAX})
                for (const std::int64_t stride : {kMin, kMin + 1, kMax - 1, kMax})
                    for (const std::uint64_t repeat : {k2To63, UINT64_MAX - 1, UINT64_MAX})
                        EXPECT_FALSE(is_inside({offset, bytes, stride, repeat}, size))
                            << testing::PrintToString(rma::Run{offset, bytes, stride, repeat}) << " in " << size;
    // All blocks are the same one.
    EXPECT_TRUE(is_inside({4088, 8, 0, UINT64_MAX}, 4096));
}

TEST(RmaRuns, no_sum_of_bytes_is_mistaken_for_a_small_one) {
    const auto bytes_of = [](Runs runs) { return count_bytes(runs); };
    EXPECT_EQ(bytes_of({}), 0u);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX, 0, 1}}), UINT64_MAX);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX - 1, 0, 1}}), UINT64_MAX - 1);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX - 8, 0, 1}, {0, 8, 0, 1}}), UINT64_MAX);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX - 8, 0, 1}, {0, 7, 0, 1}}), UINT64_MAX - 1);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX, 0, 1}, {0, 9, 0, 1}}), UINT64_MAX);
    EXPECT_EQ(bytes_of({{0, k2To63, 0, 2}, {0, 8, 0, 1}}), UINT64_MAX);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX, 0, UINT64_MAX}}), UINT64_MAX);
    EXPECT_EQ(bytes_of({{0, UINT64_MAX, 0, UINT64_MAX}, {0, UINT64_MAX, 0, UINT64_MAX}}), UINT64_MAX);
}

// Blocks so far apart that their distance has no sign: they may count as outside, never as inside where they are not.
TEST(RmaRuns, blocks_half_an_address_space_apart) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<Block> blocks;
        const std::uint64_t distance = k2To63 + random() % 5 - 2;
        std::uint64_t at = random() % 3 == 0 ? random() % 4 : random();
        for (std::uint64_t i = 0; i < 3; ++i, at += distance) blocks.push_back({at, 8});
        RunBuilder builder;
        for (const Block& block : blocks) builder.add(block);
        std::size_t i = 0;
        for (RunCursor cursor(builder.runs()); !cursor.at_end(); ++i)
            ASSERT_EQ(cursor.next(8).offset, blocks[i].offset) << "block " << i;
        ASSERT_EQ(i, blocks.size());
        const std::uint64_t size = random();
        bool inside = true;
        for (const Block& block : blocks) inside &= block.offset <= UINT64_MAX - 8 && block.offset + 8 <= size;
        ASSERT_LE(are_inside(builder.runs(), size), inside);
    }
}

TEST(RmaRuns, RunsAreAddedLikeTheirBlocks) {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        RunBuilder by_runs, by_blocks;
        std::uint64_t next = 1'000'000;
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t bytes = random() % 4, repeat = 1 + random() % 5;
            const auto stride = static_cast<std::int64_t>(random() % 9) - 4;
            if (random() % 2) next += random() % 3;
            by_runs.add(rma::Run{next, bytes, stride, repeat});
            for (std::uint64_t k = 0; k < repeat; ++k) {
                by_blocks.add(next, bytes);
                next += static_cast<std::uint64_t>(stride);
            }
        }
        EXPECT_EQ(by_runs.bytes(), by_blocks.bytes());
        EXPECT_EQ(walked(by_runs.runs(), random, 5), walked(by_blocks.runs(), random, 5));
    }
}

}  // namespace
}  // namespace coop::rma
