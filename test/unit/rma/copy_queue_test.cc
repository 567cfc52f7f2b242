// SPDX-License-Identifier: BSD-3-Clause
// rma/copy_queue.h: which copies it accepts, when it is full, and that it returns what it was given.
#include "coop/rma/copy_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace coop::rma {
namespace {

TEST(RmaCopyQueue, AcceptsShortCopiesOnly) {
    EXPECT_FALSE(CopyQueue::suits(0));
    EXPECT_TRUE(CopyQueue::suits(1));
    EXPECT_TRUE(CopyQueue::suits(CopyQueue::kLongest));
    EXPECT_FALSE(CopyQueue::suits(CopyQueue::kLongest + 1));
    EXPECT_FALSE(CopyQueue::suits(UINT64_MAX));
}

TEST(RmaCopyQueue, KeepsCopiesInTheOrderOfTheCalls) {
    std::byte memory[32];
    CopyQueue queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(queue.copies().empty());
    queue.add(memory + 8, UINT64_MAX - 8, 8);
    queue.add(memory, 100, CopyQueue::kLongest);
    EXPECT_FALSE(queue.empty());
    ASSERT_EQ(queue.copies().size(), 2u);
    EXPECT_EQ(queue.copies()[0].here, memory + 8);
    EXPECT_EQ(queue.copies()[0].offset, UINT64_MAX - 8);
    EXPECT_EQ(queue.copies()[0].bytes, 8u);
    EXPECT_EQ(queue.copies()[1].here, memory);
    EXPECT_EQ(queue.copies()[1].offset, 100u);
    EXPECT_EQ(queue.copies()[1].bytes, CopyQueue::kLongest);
}

TEST(RmaCopyQueue, SortsByOffset) {
    std::byte memory[4];
    CopyQueue queue;
    queue.sort();
    for (const std::uint64_t offset : {30, 10, 20, 0}) queue.add(&memory[offset / 10], offset, 5);
    queue.sort();
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(queue.copies()[i].offset, i * 10);
        EXPECT_EQ(queue.copies()[i].here, &memory[i]);
    }
}

TEST(RmaCopyQueue, IsFullAndCanBeUsedAgain) {
    std::vector<std::byte> memory(CopyQueue::kMost);
    CopyQueue queue;
    for (int turn = 0; turn < 2; ++turn) {
        for (std::size_t i = 0; i < CopyQueue::kMost; ++i) {
            EXPECT_FALSE(queue.is_full());
            queue.add(&memory[i], i * 10, 1);
        }
        EXPECT_TRUE(queue.is_full());
        ASSERT_EQ(queue.copies().size(), CopyQueue::kMost);
        for (std::size_t i = 0; i < CopyQueue::kMost; ++i) {
            EXPECT_EQ(queue.copies()[i].here, &memory[i]);
            EXPECT_EQ(queue.copies()[i].offset, i * 10);
        }
        queue.clear();
        EXPECT_TRUE(queue.empty());
        EXPECT_FALSE(queue.is_full());
    }
}

}  // namespace
}  // namespace coop::rma
