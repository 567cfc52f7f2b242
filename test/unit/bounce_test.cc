// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/bounce.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <thread>

namespace coop::rndv {
namespace {

struct BounceTest : ::testing::Test {
    std::unique_ptr<BounceBuffers> buffers{new BounceBuffers};
    BouncePool pool;

    Bounce& at(const BouncePool::Taken& taken) { return buffers->all[taken.index]; }
};

TEST_F(BounceTest, hands_out_each_buffer_once) {
    std::set<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < kBounces; ++i) {
        const auto taken = pool.acquire(*buffers);
        ASSERT_TRUE(taken);
        EXPECT_LT(taken->index, kBounces);
        indices.insert(taken->index);
    }
    EXPECT_EQ(indices.size(), kBounces);
    EXPECT_FALSE(pool.acquire(*buffers)) << "all are in use";
}

TEST_F(BounceTest, hands_out_again_what_was_emptied_with_another_generation) {
    const auto first = pool.acquire(*buffers);
    for (std::uint32_t i = 1; i < kBounces; ++i) static_cast<void>(pool.acquire(*buffers));
    empty(at(*first), first->generation);
    const auto again = pool.acquire(*buffers);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->index, first->index);
    EXPECT_NE(again->generation, first->generation);
}

TEST_F(BounceTest, skips_buffers_whose_message_was_not_received) {
    static_cast<void>(pool.acquire(*buffers));
    static_cast<void>(pool.acquire(*buffers));
    for (std::uint32_t i = 0; i < 10 * kBounces; ++i) {
        const auto taken = pool.acquire(*buffers);
        ASSERT_TRUE(taken) << i;
        EXPECT_GE(taken->index, 2u);
        empty(at(*taken), taken->generation);
    }
}

TEST_F(BounceTest, shows_the_contents_of_the_generation_asked_for_alone) {
    const auto taken = pool.acquire(*buffers);
    const Bounce& bounce = at(*taken);
    EXPECT_EQ(contents(bounce, taken->generation), bounce.bytes);
    EXPECT_EQ(contents(bounce, taken->generation + 1), nullptr);
    EXPECT_EQ(contents(bounce, taken->generation - 1), nullptr);
    EXPECT_EQ(contents(bounce, UINT32_MAX), nullptr);
    empty(at(*taken), taken->generation);
    EXPECT_EQ(contents(bounce, taken->generation), nullptr) << "emptied: another message may use it at any time";
}

TEST_F(BounceTest, nothing_is_in_a_buffer_that_was_never_taken) {
    for (const Bounce& bounce : buffers->all) EXPECT_EQ(contents(bounce, 0), nullptr);
}

TEST_F(BounceTest, generations_wrap) {
    Bounce& bounce = buffers->all[0];
    bounce.taken = bounce.emptied = UINT32_MAX;
    const auto taken = pool.acquire(*buffers);
    EXPECT_EQ(taken->index, 0u);
    EXPECT_EQ(taken->generation, 0u);
    EXPECT_EQ(contents(bounce, 0), bounce.bytes);
    empty(bounce, 0);
    EXPECT_EQ(contents(bounce, 0), nullptr);
}

TEST_F(BounceTest, a_damaged_word_costs_a_buffer_and_no_more) {
    for (Bounce& bounce : buffers->all) bounce.emptied = 0xdeadbeef;
    EXPECT_FALSE(pool.acquire(*buffers));
    buffers->all[3].emptied = 0;
    std::optional<BouncePool::Taken> taken;
    for (std::uint32_t i = 0; i < kBounces && !taken; ++i) taken = pool.acquire(*buffers);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->index, 3u);
}

TEST_F(BounceTest, messages_pass_between_threads_unharmed) {
    constexpr int kMessages = 20000;
    std::atomic<std::uint64_t> mail{0};  // in place of the RTS: generation, index + 1
    std::thread receiver([&] {
        for (int n = 0; n < kMessages; ++n) {
            std::uint64_t word;
            while ((word = mail.exchange(0, std::memory_order_acquire)) == 0) std::this_thread::yield();
            const auto index = static_cast<std::uint32_t>(word) - 1,
                       generation = static_cast<std::uint32_t>(word >> 32);
            const unsigned char* bytes = contents(buffers->all[index], generation);
            ASSERT_NE(bytes, nullptr);
            int seen[2];
            std::memcpy(&seen[0], bytes, sizeof(int));
            std::memcpy(&seen[1], bytes + 1000, sizeof(int));
            ASSERT_EQ(seen[0], n);
            ASSERT_EQ(seen[1], n);
            empty(buffers->all[index], generation);
        }
    });
    for (int n = 0; n < kMessages; ++n) {
        std::optional<BouncePool::Taken> taken;
        while (!(taken = pool.acquire(*buffers))) std::this_thread::yield();
        std::memcpy(at(*taken).bytes, &n, sizeof n);
        std::memcpy(at(*taken).bytes + 1000, &n, sizeof n);
        while (mail.load(std::memory_order_acquire) != 0) std::this_thread::yield();
        mail.store((std::uint64_t{taken->generation} << 32) | (taken->index + 1), std::memory_order_release);
    }
    receiver.join();
}

}  // namespace
}  // namespace coop::rndv
