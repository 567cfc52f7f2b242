// SPDX-License-Identifier: BSD-3-Clause
// coll/blocks.h: the memory of ranges that wrap, and of blocks that are unequal or empty.
#include "coop/coll/blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace coop::coll {
namespace {

std::vector<Piece> pieces_of(const Blocks& blocks, Range range) {
    const Pieces pieces = blocks.pieces_of(range);
    return {pieces.begin(), pieces.end()};
}

using Ends = std::vector<std::uint64_t>;

TEST(CollBlocks, equal_blocks_lie_one_after_the_other) {
    const Blocks blocks(5, 10);
    EXPECT_EQ(blocks.processes(), 5u);
    EXPECT_EQ(blocks.bytes(), 50u);
    EXPECT_EQ(blocks.begin_of(3), 30u);
    EXPECT_EQ(blocks.bytes_of(4), 10u);
    EXPECT_EQ(pieces_of(blocks, {1, 3}), (std::vector<Piece>{{10, 30}}));
}

TEST(CollBlocks, results_of_more_than_4_gib_are_counted) {
    const Blocks blocks(70000, 1 << 20);
    EXPECT_EQ(blocks.begin_of(69999), std::uint64_t{69999} << 20);
    EXPECT_EQ(blocks.bytes(), std::uint64_t{70000} << 20);
}

TEST(CollBlocks, unequal_blocks_begin_where_the_one_before_ends) {
    const Ends ends{3, 3, 10, 11};
    const Blocks blocks{std::span(ends)};
    EXPECT_EQ(blocks.begin_of(0), 0u);
    EXPECT_EQ(blocks.bytes_of(0), 3u);
    EXPECT_EQ(blocks.bytes_of(1), 0u);
    EXPECT_EQ(blocks.begin_of(2), 3u);
    EXPECT_EQ(blocks.bytes_of(2), 7u);
    EXPECT_EQ(blocks.bytes_of(3), 1u);
    EXPECT_EQ(blocks.bytes(), 11u);
}

TEST(CollBlocks, a_range_that_ends_with_the_last_block_does_not_wrap) {
    EXPECT_EQ(pieces_of(Blocks(5, 10), {3, 2}), (std::vector<Piece>{{30, 20}}));
    EXPECT_EQ(pieces_of(Blocks(5, 10), {0, 5}), (std::vector<Piece>{{0, 50}}));
}

TEST(CollBlocks, a_range_that_wraps_has_two_pieces_the_last_blocks_first) {
    EXPECT_EQ(pieces_of(Blocks(5, 10), {3, 4}), (std::vector<Piece>{{30, 20}, {0, 20}}));
    const Ends ends{3, 3, 10, 11};
    EXPECT_EQ(pieces_of(Blocks{std::span(ends)}, {2, 3}), (std::vector<Piece>{{3, 8}, {0, 3}}));
}

TEST(CollBlocks, the_parts_of_blocks_make_up_the_blocks_and_begin_at_cache_lines_of_them) {
    const Ends ends{1000, 1000, 1063, 100000};
    const Blocks all[] = {Blocks(4, 4000), Blocks{std::span(ends)}};
    for (const Blocks& blocks : all)
        for (const std::uint32_t parts : {2, 3, 4})
            for (std::uint32_t block = 0; block < blocks.processes(); ++block) {
                std::uint64_t end = blocks.begin_of(block);
                for (std::uint32_t part = 0; part < parts; ++part)
                    for (const Piece& piece : pieces_of(blocks.of_part(part, parts), {block, 1})) {
                        EXPECT_EQ(piece.offset, end);
                        EXPECT_EQ((piece.offset - blocks.begin_of(block)) % 64, 0u);
                        end += piece.bytes;
                    }
                EXPECT_EQ(end, blocks.begin_of(block + 1)) << "block " << block << ", " << parts << " parts";
            }
}

TEST(CollBlocks, a_part_lies_in_the_memory_of_the_whole_result) {
    EXPECT_EQ(Blocks(4, 4000).of_part(1, 2).bytes(), 16000u);
    EXPECT_EQ(pieces_of(Blocks(4, 4000).of_part(1, 2), {3, 1}), (std::vector<Piece>{{13984, 2016}}));
}

TEST(CollBlocks, empty_pieces_are_left_out) {
    EXPECT_EQ(pieces_of(Blocks(5, 0), {3, 4}), std::vector<Piece>{});
    const Ends first_empty{0, 0, 4, 9}, last_empty{4, 9, 9, 9};
    EXPECT_EQ(pieces_of(Blocks{std::span(first_empty)}, {3, 3}), (std::vector<Piece>{{4, 5}}));
    EXPECT_EQ(pieces_of(Blocks{std::span(last_empty)}, {2, 3}), (std::vector<Piece>{{0, 4}}));
    EXPECT_EQ(pieces_of(Blocks{std::span(last_empty)}, {2, 2}), std::vector<Piece>{});
}

// All ranges, compared with a byte map of the blocks.
TEST(CollBlocks, the_pieces_of_any_range_hold_its_blocks_in_order) {
    const std::vector<Ends> all{{1}, {5, 5}, {0, 7}, {0, 0, 0}, {2, 9, 9, 30}, {1, 2, 3, 3, 3, 8, 8, 20, 21}};
    for (const Ends& ends : all) {
        const Blocks blocks{std::span(ends)};
        const auto p = static_cast<std::uint32_t>(ends.size());
        for (std::uint32_t first = 0; first < p; ++first)
            for (std::uint32_t count = 0; count <= p; ++count) {
                std::vector<std::uint64_t> expected, bytes;
                for (std::uint32_t i = 0; i < count; ++i) {
                    const std::uint32_t block = (first + i) % p;
                    for (auto at = block == 0 ? 0 : ends[block - 1]; at < ends[block]; ++at) expected.push_back(at);
                }
                const Pieces pieces = blocks.pieces_of({first, count});
                for (const Piece& piece : pieces) {
                    EXPECT_GT(piece.bytes, 0u);
                    for (std::uint64_t i = 0; i < piece.bytes; ++i) bytes.push_back(piece.offset + i);
                }
                EXPECT_EQ(bytes, expected) << "p " << p << " first " << first << " count " << count;
                EXPECT_EQ(pieces.bytes(), expected.size());
            }
    }
}

}  // namespace
}  // namespace coop::coll
