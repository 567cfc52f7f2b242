// SPDX-License-Identifier: BSD-3-Clause
// rma/accumulate_queue.h: which RDMA operations short accumulates share, and that together they do what one after the other
// would do.
#include "coop/rma/accumulate_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace coop::rma {
namespace {

using Transfers = std::vector<Transfer>;
constexpr std::uint32_t kRoom = 8192;
constexpr std::uint8_t kType = 1, kSum = 3;

Transfers copy(std::span<const Transfer> transfers) { return {transfers.begin(), transfers.end()}; }

void add(AccumulateQueue& queue, const Run& run) {
    std::byte* const operand = queue.add({&run, 1}, kType, kSum);
    std::memset(operand, 1, run.bytes * run.repeat);
}
void add(AccumulateQueue& queue, std::uint64_t offset, std::uint64_t bytes) { add(queue, {offset, bytes, 0, 1}); }

TEST(RmaAccumulateQueue, KeepsOperandsAndOrder) {
    AccumulateQueue queue;
    const rma::Run first{8, 4, 0, 1}, second{64, 2, 10, 3};
    std::memcpy(queue.add({&first, 1}, 1, 2), "abcd", 4);
    std::memcpy(queue.add({&second, 1}, 3, 4), "efghij", 6);
    ASSERT_EQ(queue.entries().size(), 2u);
    const AccumulateQueue::Entry &one = queue.entries()[0], &two = queue.entries()[1];
    EXPECT_EQ(std::memcmp(queue.operand_of(one), "abcd", 4), 0);
    EXPECT_EQ(std::memcmp(queue.operand_of(two), "efghij", 6), 0);
    EXPECT_EQ(one.type, 1);
    EXPECT_EQ(one.operation, 2);
    EXPECT_EQ(two.type, 3);
    EXPECT_EQ(two.operation, 4);
    EXPECT_EQ(two.bytes, 6u);
    ASSERT_EQ(queue.blocks_of(two).size(), 3u);
    EXPECT_EQ(queue.blocks_of(two)[2].offset, 84u);
    queue.clear();
    EXPECT_TRUE(queue.entries().empty());
}

TEST(RmaAccumulateQueue, IsFullByBytesOrByBlocks) {
    EXPECT_TRUE(AccumulateQueue::suits(AccumulateQueue::kLongest, AccumulateQueue::kMostBlocksOfOne));
    EXPECT_FALSE(AccumulateQueue::suits(AccumulateQueue::kLongest + 1, 1));
    EXPECT_FALSE(AccumulateQueue::suits(128, AccumulateQueue::kMostBlocksOfOne + 1));
    AccumulateQueue queue;
    for (std::size_t bytes = 0; bytes < AccumulateQueue::kMostBytes; bytes += AccumulateQueue::kLongest) {
        EXPECT_TRUE(queue.has_room(AccumulateQueue::kLongest, 1));
        add(queue, 0, AccumulateQueue::kLongest);
    }
    EXPECT_FALSE(queue.has_room(1, 1));
    queue.clear();
    for (std::size_t blocks = 0; blocks < AccumulateQueue::kMostBlocks; ++blocks) add(queue, 100 * blocks, 8);
    EXPECT_FALSE(queue.has_room(8, 1));
}

TEST(RmaAccumulateQueue, TheSameElementsAreReadAndWrittenOnce) {
    AccumulateQueue queue;
    for (int i = 0; i < 64; ++i) add(queue, 160, 64);
    AccumulateBatch batch;
    EXPECT_EQ(batch.take(queue, 0, kRoom, 0), 64u);
    EXPECT_EQ(copy(batch.reads()), (Transfers{{160, 0, 64}}));
    EXPECT_EQ(copy(batch.writes()), (Transfers{{160, 0, 64}}));
    for (std::size_t block = 0; block < 64; ++block) EXPECT_EQ(batch.place(block), 0u);
}

TEST(RmaAccumulateQueue, NeighboursAndOverlapsAreWrittenAtOnce) {
    AccumulateQueue queue;
    add(queue, 32, 16);
    add(queue, 0, 16);
    add(queue, 16, 16);
    add(queue, 40, 32);
    AccumulateBatch batch;
    EXPECT_EQ(batch.take(queue, 0, kRoom, 0), 4u);
    EXPECT_EQ(copy(batch.writes()), (Transfers{{0, 0, 72}}));
    EXPECT_EQ(batch.place(0), 32u);
    EXPECT_EQ(batch.place(3), 40u);
}

TEST(RmaAccumulateQueue, GapsAreReadButNeverWritten) {
    AccumulateQueue queue;
    add(queue, {0, 8, 24, 3});
    add(queue, 4096, 8);
    AccumulateBatch batch;
    EXPECT_EQ(batch.take(queue, 0, kRoom, 0), 2u);
    EXPECT_EQ(copy(batch.reads()), (Transfers{{0, 0, 56}, {4096, 64, 8}}));
    EXPECT_EQ(copy(batch.writes()), (Transfers{{0, 0, 8}, {24, 24, 8}, {48, 48, 8}, {4096, 64, 8}}));
}

TEST(RmaAccumulateQueue, SomeOfTheWritesEndInsideOfOne) {
    AccumulateQueue queue;
    add(queue, {100, 8, 24, 2});
    add(queue, 300, 16);
    AccumulateBatch batch;
    EXPECT_EQ(batch.take(queue, 0, kRoom, 0), 2u);
    EXPECT_EQ(batch.end_of_written(0), 100u);
    EXPECT_EQ(batch.end_of_written(5), 105u);
    EXPECT_EQ(batch.end_of_written(8), 124u);
    EXPECT_EQ(batch.end_of_written(16), 300u);
    EXPECT_EQ(batch.end_of_written(31), 315u);
    EXPECT_EQ(batch.end_of_written(32), UINT64_MAX);
}

TEST(RmaAccumulateQueue, CopiesAreAlignedAsTheTargetIs) {
    AccumulateQueue queue;
    add(queue, 4, 4);
    add(queue, 1000, 8);
    AccumulateBatch batch;
    EXPECT_EQ(batch.take(queue, 0, kRoom, 0x1004), 2u);
    EXPECT_EQ(batch.place(0) % 16, (0x1004u + 4) % 16);
    EXPECT_EQ(batch.place(1) % 16, (0x1004u + 1000) % 16);
}

TEST(RmaAccumulateQueue, WhatDoesNotFitIsLeftForTheNextBatch) {
    AccumulateQueue queue;
    for (std::uint64_t i = 0; i < 8; ++i) add(queue, i * 100000, AccumulateQueue::kLongest);
    AccumulateBatch batch;
    std::size_t batches = 0;
    for (std::size_t done = 0; done < 8; ++batches) {
        const std::size_t next = batch.take(queue, done, kRoom, 0);
        ASSERT_GT(next, done);
        done = next;
    }
    EXPECT_EQ(batches, 4u);
}

TEST(RmaAccumulateQueue, OneAlwaysFits) {
    for (std::uint64_t base = 0; base < 16; ++base) {
        AccumulateQueue queue;
        const std::uint64_t blocks = AccumulateQueue::kMostBlocksOfOne;
        add(queue, {5, AccumulateQueue::kLongest / blocks, 5003, blocks});
        AccumulateBatch batch;
        EXPECT_EQ(batch.take(queue, 0, AccumulateQueue::kRoomOfOne, base), 1u);
    }
}

// Adds by batches, and one by one, and compares the memory of the target.
class Random {
public:
    explicit Random(unsigned seed) : random_(seed) {
        for (std::byte& each : batched_) each = static_cast<std::byte>(random_());
        single_ = batched_;
    }
    void fill(AccumulateQueue& queue) {
        for (int i = 0; i < 100; ++i) {
            const std::uint64_t bytes = 1 + random_() % 40, repeat = 1 + random_() % 8, span = random_() % 300;
            const Run run{random_() % (kBytes / 2), bytes, static_cast<std::int64_t>(bytes + span), repeat};
            if (!queue.has_room(bytes * repeat, repeat)) return;
            std::byte* operand = queue.add({&run, 1}, kType, kSum);
            for (RunCursor cursor({&run, 1}); !cursor.at_end();) {
                const Block block = cursor.next(UINT64_MAX);
                for (std::uint64_t k = 0; k < block.bytes; ++k, ++operand) {
                    *operand = static_cast<std::byte>(random_());
                    change(single_[block.offset + k], *operand);
                }
            }
        }
    }
    void execute(const AccumulateQueue& queue, std::uint32_t room) {
        AccumulateBatch batch;
        for (std::size_t done = 0; done < queue.entries().size();) {
            const std::size_t next = batch.take(queue, done, room, 0);
            ASSERT_GT(next, done);
            std::vector<std::byte> memory(room);
            for (const Transfer& each : batch.reads()) {
                ASSERT_LE(each.at + each.bytes, room);
                std::memcpy(&memory[each.at], &batched_[each.offset], each.bytes);
            }
            for (; done < next; ++done) compute(queue, batch, queue.entries()[done], memory);
            for (const Transfer& each : batch.writes())
                std::memcpy(&batched_[each.offset], &memory[each.at], each.bytes);
        }
    }
    bool agrees() const { return batched_ == single_; }

private:
    static constexpr std::size_t kBytes = 8192;
    // Depends on the order, so that a wrong one is noticed.
    static void change(std::byte& to, std::byte from) { to = static_cast<std::byte>(3 * int(to) + int(from)); }
    static void compute(const AccumulateQueue& queue, const AccumulateBatch& batch, const AccumulateQueue::Entry& entry,
                        std::vector<std::byte>& memory) {
        const std::byte* operand = queue.operand_of(entry);
        for (std::size_t i = 0; i < entry.blocks; ++i)
            for (std::size_t k = 0; k < queue.blocks_of(entry)[i].bytes; ++k)
                change(memory[batch.place(entry.first_block + i) + k], *operand++);
    }

    std::mt19937 random_;
    std::vector<std::byte> batched_ = std::vector<std::byte>(kBytes), single_;
};

TEST(RmaAccumulateQueue, BatchesDoWhatSingleAccumulatesDo) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        Random random(seed);
        AccumulateQueue queue;
        random.fill(queue);
        random.execute(queue, seed % 2 ? kRoom : AccumulateQueue::kRoomOfOne);
        EXPECT_TRUE(random.agrees()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace coop::rma
