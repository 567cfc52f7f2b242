// SPDX-License-Identifier: BSD-3-Clause
//
// base/block_store.h
#include "coop/base/block_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace coop {
namespace {

TEST(BlockStore, has_a_block_for_each_length) {
    EXPECT_EQ(BlockStore::block_for(0), 384u);
    EXPECT_EQ(BlockStore::block_for(384), 384u);
    EXPECT_EQ(BlockStore::block_for(385), 448u);
    EXPECT_EQ(BlockStore::block_for(512 + 64), 512u + 64);
    EXPECT_EQ(BlockStore::block_for(4096 + 64), 4096u + 64);
    EXPECT_EQ(BlockStore::block_for(4096 + 65), 5120u + 64);
    EXPECT_EQ(BlockStore::block_for(BlockStore::kLongest), BlockStore::kLongest);
    EXPECT_EQ(BlockStore::block_for(BlockStore::kLongest + 1), BlockStore::kLongest + 1);
    for (std::size_t bytes = 384; bytes < 140000; ++bytes) {
        ASSERT_GE(BlockStore::block_for(bytes), bytes);
        ASSERT_LE(BlockStore::block_for(bytes), (bytes + 64) * 5 / 4);
    }
}

// The whole of each block is written: a sanitizer would see a block that is too short.
TEST(BlockStore, gives_a_returned_block_to_the_next_of_its_length) {
    BlockStore store(1 << 20);
    for (std::size_t bytes : {1ul, 300ul, 1000ul, 4160ul, 65600ul, 131136ul}) {
        void* block = store.take(bytes);
        ASSERT_NE(block, nullptr);
        std::memset(block, 1, bytes);
        store.give_back(block, bytes);
        EXPECT_EQ(store.idle_bytes(), BlockStore::block_for(bytes));
        void* again = store.take(BlockStore::block_for(bytes));
        EXPECT_EQ(again, block);
        EXPECT_EQ(store.idle_bytes(), 0u);
        std::memset(again, 2, BlockStore::block_for(bytes));
        store.give_back(again, bytes);
        void* other = store.take(BlockStore::block_for(bytes) + 1);
        EXPECT_NE(other, block);
        store.give_back(other, BlockStore::block_for(bytes) + 1);
        store.clear();
    }
}

TEST(BlockStore, keeps_no_more_than_its_limit) {
    BlockStore store(3 * BlockStore::block_for(1000));
    std::vector<void*> blocks;
    for (int i = 0; i < 5; ++i) blocks.push_back(store.take(1000));
    for (void* block : blocks) store.give_back(block, 1000);
    EXPECT_EQ(store.idle_bytes(), 3 * BlockStore::block_for(1000));
    void* one = store.take(1000);
    EXPECT_EQ(store.idle_bytes(), 2 * BlockStore::block_for(1000));
    store.give_back(one, 1000);
    EXPECT_EQ(store.idle_bytes(), 3 * BlockStore::block_for(1000));
}

TEST(BlockStore, makes_room_for_lengths_that_are_in_use) {
    BlockStore store(4 * BlockStore::block_for(1000));
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(store.take(1000));
    for (void* block : blocks) store.give_back(block, 1000);
    void* shorter = store.take(300);
    store.give_back(shorter, 300);
    EXPECT_EQ(store.idle_bytes(), 3 * BlockStore::block_for(1000) + BlockStore::block_for(300));
    EXPECT_EQ(store.take(300), shorter);
    store.give_back(shorter, 300);
    void* too_long = store.take(8000);
    store.give_back(too_long, 8000);
    EXPECT_EQ(store.idle_bytes(), 3 * BlockStore::block_for(1000) + BlockStore::block_for(300)) << "it never fits";
}

TEST(BlockStore, keeps_no_long_block) {
    BlockStore store(1 << 20);
    void* block = store.take(140000);
    std::memset(block, 1, 140000);
    store.give_back(block, 140000);
    EXPECT_EQ(store.idle_bytes(), 0u);
}

TEST(BlockStore, takes_null_back) {
    BlockStore store(1 << 20);
    store.give_back(nullptr, 1000);
    EXPECT_EQ(store.idle_bytes(), 0u);
}

TEST(BlockStoreThreads, give_no_block_twice) {
    constexpr int kThreads = 4, kRounds = 20000;
    BlockStore store(8 * BlockStore::block_for(1));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&store, t] {
            for (int round = 0; round < kRounds; ++round) {
                auto* a = static_cast<int*>(store.take(300));
                auto* b = static_cast<int*>(store.take(300));
                *a = t, *b = -t;
                ASSERT_EQ(*a, t);
                ASSERT_EQ(*b, -t);
                store.give_back(a, 300);
                store.give_back(b, 300);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace coop
