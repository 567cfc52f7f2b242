// SPDX-License-Identifier: BSD-3-Clause
// rma/cover.h: which RDMA operations transfer scattered blocks.
#include "coop/rma/cover.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace coop::rma {
namespace {

using Transfers = std::vector<Transfer>;
using Pieces = std::vector<Piece>;
constexpr std::uint32_t kRoom = 4096;

struct Taken {
    Transfers transfers;
    Pieces pieces;
    std::uint32_t used;
};
Taken take(std::span<const Run> runs, bool reads, std::uint32_t at = 0, std::uint32_t room = kRoom) {
    RunCursor cursor(runs);
    Cover cover;
    const std::uint32_t used = cover.take(cursor, at, room, reads);
    return {{cover.transfers().begin(), cover.transfers().end()}, {cover.pieces().begin(), cover.pieces().end()}, used};
}

TEST(RmaCover, OneBlockIsOneTransfer) {
    const rma::Run run{100, 8, 0, 1};
    const Taken taken = take({&run, 1}, true, 64);
    EXPECT_EQ(taken.transfers, (Transfers{{100, 64, 8}}));
    EXPECT_EQ(taken.pieces, (Pieces{{64, 8}}));
    EXPECT_EQ(taken.used, 8u);
}

TEST(RmaCover, DenseBlocksAreReadAtOnce) {
    const rma::Run run{100, 8, 64, 4};  // exactly 1/8 is wanted, and a little more at the end
    const Taken taken = take({&run, 1}, true);
    EXPECT_EQ(taken.transfers, (Transfers{{100, 0, 200}}));
    EXPECT_EQ(taken.pieces, (Pieces{{0, 8}, {64, 8}, {128, 8}, {192, 8}}));
}

TEST(RmaCover, ThinBlocksAreReadOneByOne) {
    const rma::Run run{100, 8, 256, 3};
    EXPECT_EQ(take({&run, 1}, true).transfers, (Transfers{{100, 0, 8}, {356, 8, 8}, {612, 16, 8}}));
}

TEST(RmaCover, WritesNeverTouchGaps) {
    const rma::Run run{100, 8, 16, 3};
    EXPECT_EQ(take({&run, 1}, false).transfers, (Transfers{{100, 0, 8}, {116, 8, 8}, {132, 16, 8}}));
}

TEST(RmaCover, NeighboursAreWrittenAtOnce) {
    const rma::Run runs[] = {{100, 8, 0, 1}, {108, 24, 0, 1}, {140, 4, 0, 1}};
    const Taken taken = take(runs, false);
    EXPECT_EQ(taken.transfers, (Transfers{{100, 0, 32}, {140, 32, 4}}));
    EXPECT_EQ(taken.pieces, (Pieces{{0, 32}, {32, 4}}));
}

TEST(RmaCover, BlocksThatGoBackAreReadOneByOne) {
    const rma::Run run{100, 8, -16, 3};
    EXPECT_EQ(take({&run, 1}, true).transfers.size(), 3u);
}

TEST(RmaCover, ElementsAreNotCut) {
    const rma::Run run{100, 60, 64, 2};  // of elements of 12 bytes
    RunCursor cursor({&run, 1});
    Cover cover;
    EXPECT_EQ(cover.take(cursor, 0, 90, true, 12), 64u + 24);
    EXPECT_EQ(Pieces(cover.pieces().begin(), cover.pieces().end()), (Pieces{{0, 60}, {64, 24}}));
    EXPECT_EQ(cover.take(cursor, 0, 40, true, 12), 36u);
    EXPECT_EQ(Transfers(cover.transfers().begin(), cover.transfers().end()), (Transfers{{188, 0, 36}}));
    EXPECT_TRUE(cursor.at_end());
}

// Whatever the blocks and the room are, the pieces in order hold the bytes of the blocks in order.
TEST(RmaCover, PiecesHoldTheBytesOfTheBlocksInOrder) {
    std::mt19937 random(7);
    std::vector<std::byte> target(1 << 16);
    for (std::byte& each : target) each = static_cast<std::byte>(random());
    for (int round = 0; round < 2000; ++round) {
        std::vector<rma::Run> runs;
        std::vector<std::byte> expected;
        for (std::uint32_t n = 1 + random() % 5; n > 0; --n) {
            const std::uint64_t bytes = 1 + random() % 64, repeat = 1 + random() % 20;
            const auto stride = static_cast<std::int64_t>(bytes + random() % 600);
            const bool back = random() % 4 == 0;
            const std::uint64_t span = static_cast<std::uint64_t>(stride) * (repeat - 1);
            const std::uint64_t low = random() % (target.size() - span - bytes);
            runs.push_back({back ? low + span : low, bytes, back ? -stride : stride, repeat});
        }
        for (RunCursor cursor(runs); !cursor.at_end();) {
            const Block block = cursor.next(UINT64_MAX);
            expected.insert(expected.end(), target.begin() + static_cast<std::ptrdiff_t>(block.offset),
                            target.begin() + static_cast<std::ptrdiff_t>(block.offset + block.bytes));
        }
        const std::uint32_t at = random() % 100, room = 1 + random() % 2000;
        std::vector<std::byte> memory(at + room), found;
        Cover cover;
        for (RunCursor cursor(runs); !cursor.at_end();) {
            const std::uint32_t used = cover.take(cursor, at, room, random() % 2 == 0);
            ASSERT_LE(used, room);
            ASSERT_GT(used, 0u);
            std::uint32_t next = at;
            for (const Transfer& each : cover.transfers()) {
                ASSERT_EQ(each.at, next);
                next += each.bytes;
                ASSERT_LE(each.offset + each.bytes, target.size());
                std::memcpy(memory.data() + each.at, target.data() + each.offset, each.bytes);
            }
            ASSERT_EQ(next, at + used);
            std::uint64_t bytes = 0;
            for (const Piece& each : cover.pieces()) {
                found.insert(found.end(), memory.begin() + each.at, memory.begin() + each.at + each.bytes);
                bytes += each.bytes;
            }
            ASSERT_EQ(bytes, cover.bytes());
        }
        ASSERT_EQ(found, expected) << "round " << round;
    }
}

}  // namespace
}  // namespace coop::rma
