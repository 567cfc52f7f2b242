// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/chunk.h: how a long copy is cut.
#include "coop/rndv/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace coop::rndv {
namespace {

constexpr unsigned kRandomSeed = 4669;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::uint64_t kLargest = 512 * kKiB;

TEST(ChunkPlanOf, covers_every_byte_once_and_in_order) {
    std::mt19937_64 random(kRandomSeed);
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    for (int i = 0; i < 20000; ++i) {
        const ChunkPlan plan{random() >> (24 + random() % 40), 1 + random() % (1 + (random() >> (44 + random() % 20)))};
        const std::uint64_t count = plan.count();
        if (plan.total == 0) {
            EXPECT_EQ(count, 0u);
            continue;
        }
        ASSERT_GT(count, 0u);
        for (std::uint64_t index : {std::uint64_t{0}, count / 2, count - 1}) {
            ASSERT_EQ(plan.begin(index), index * plan.chunk);
            ASSERT_EQ(plan.bytes(index), index + 1 < count ? plan.chunk : plan.total - (count - 1) * plan.chunk);
            ASSERT_GT(plan.bytes(index), 0u);
        }
        ASSERT_EQ(plan.begin(count - 1) + plan.bytes(count - 1), plan.total);
    }
}

TEST(ChunkPlanOf, a_message_of_whole_chunks_has_no_empty_one_at_its_end) {
    const ChunkPlan plan{4 * kMiB, kMiB};
    EXPECT_EQ(plan.count(), 4u);
    EXPECT_EQ(plan.bytes(3), kMiB);
    EXPECT_EQ((ChunkPlan{4 * kMiB + 1, kMiB}).count(), 5u);
    EXPECT_EQ((ChunkPlan{4 * kMiB + 1, kMiB}).bytes(4), 1u);
    EXPECT_EQ((ChunkPlan{1, kMiB}).bytes(0), 1u);
    EXPECT_EQ((ChunkPlan{UINT64_MAX, UINT64_MAX}).count(), 1u);
    EXPECT_EQ((ChunkPlan{UINT64_MAX, 2}).count(), UINT64_MAX / 2 + 1) << "without an overflow";
}

TEST(ChunkBytes, are_whole_pages_and_within_the_largest) {
    for (std::uint64_t bytes = 1; bytes < 64 * kMiB; bytes += 1 + bytes / 7)
        for (std::uint64_t largest : {16 * kKiB, 256 * kKiB, kLargest, 64 * kMiB}) {
            const std::uint64_t chunk = chunk_bytes(bytes, largest);
            EXPECT_EQ(chunk % kPageBytes, 0u) << bytes;
            EXPECT_GE(chunk, kPageBytes) << bytes;
            EXPECT_LE(chunk, largest) << bytes;
        }
}

TEST(ChunkBytes, a_message_of_more_than_a_page_has_a_chunk_for_each_side) {
    for (std::uint64_t bytes = kPageBytes + 1; bytes < 64 * kMiB; bytes += 1 + bytes / 7) {
        const ChunkPlan plan{bytes, chunk_bytes(bytes, kLargest)};
        EXPECT_GE(plan.count(), 2u) << bytes;
    }
}

TEST(ChunkBytes, grow_with_the_message_up_to_the_largest) {
    std::uint64_t before = 0;
    for (std::uint64_t bytes = 1; bytes < 64 * kMiB; bytes += 1 + bytes / 7) {
        const std::uint64_t chunk = chunk_bytes(bytes, kLargest);
        EXPECT_GE(chunk, before) << bytes;
        before = chunk;
    }
    EXPECT_EQ(chunk_bytes(kChunksPerMessage * kLargest, kLargest), kLargest);
    EXPECT_EQ(chunk_bytes(kMiB * kMiB, kLargest), kLargest);
    EXPECT_EQ(chunk_bytes(kMiB * kMiB, 64 * kMiB), 64 * kMiB);
}

TEST(ChunkBytes, a_short_message_is_cut_in_two_not_in_eighths) {
    EXPECT_EQ(chunk_bytes(64 * kKiB, kLargest), 32 * kKiB);
    EXPECT_EQ(chunk_bytes(2 * kSmallestChunk, kLargest), kSmallestChunk);
    EXPECT_EQ(chunk_bytes(4 * kSmallestChunk, kLargest), kSmallestChunk);
    EXPECT_EQ(chunk_bytes(kChunksPerMessage * kSmallestChunk, kLargest), kSmallestChunk);
    EXPECT_EQ(chunk_bytes(kChunksPerMessage * (kSmallestChunk + 1), kLargest), kSmallestChunk + kPageBytes);
}

TEST(ChunkBytes, are_a_quarter_of_a_mebibyte_or_half_the_message_at_least_within_the_largest) {
    EXPECT_EQ(kSmallestChunk, 256 * kKiB);
    for (std::uint64_t bytes = 1; bytes < 64 * kMiB; bytes += 1 + bytes / 7)
        for (std::uint64_t largest : {16 * kKiB, kLargest})
            EXPECT_GE(chunk_bytes(bytes, largest), std::min({kSmallestChunk, bytes / 2, largest})) << bytes;
}

TEST(Halves, differ_by_a_byte_at_most_and_the_first_is_the_longer_one) {
    for (std::uint64_t bytes :
         {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, 64 * kKiB, kMiB + 1, UINT64_MAX}) {
        const ChunkPlan plan{bytes, half_bytes(bytes)};
        EXPECT_EQ(plan.count(), bytes == 1 ? 1u : 2u);
        if (bytes == 1) continue;
        EXPECT_EQ(plan.bytes(0) - plan.bytes(1), bytes % 2);
        EXPECT_EQ(plan.bytes(0) + plan.bytes(1), bytes);
    }
}

TEST(ChunkPlan, says_whether_its_chunks_have_numbers) {
    constexpr std::uint64_t kMost = UINT32_MAX;
    EXPECT_TRUE((ChunkPlan{0, 1}.is_countable()));
    EXPECT_TRUE((ChunkPlan{kMost, 1}.is_countable()));
    EXPECT_FALSE((ChunkPlan{kMost + 1, 1}.is_countable()));
    for (std::uint64_t total : {kMost, kMost + 1, 3 * kMost, 1000 * kMost + 17, UINT64_MAX}) {
        const std::uint64_t least = ChunkPlan{total, 1}.least_chunk();
        EXPECT_TRUE((ChunkPlan{total, least}.is_countable())) << total;
    }
}

}  // namespace
}  // namespace coop::rndv
