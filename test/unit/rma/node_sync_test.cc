// SPDX-License-Identifier: BSD-3-Clause
// rma/node_sync.h: threads stand for the processes of a node.
#include "coop/rma/node_sync.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace coop::rma {
namespace {

struct Node {
    explicit Node(std::uint32_t count)
        : memory(static_cast<std::byte*>(std::aligned_alloc(NodeSync::kLine, NodeSync::bytes(count))), std::free) {
        NodeSync::prepare(memory.get(), count);
        for (std::uint32_t rank = 0; rank < count; ++rank) of.emplace_back(memory.get(), count, rank);
    }
    const std::unique_ptr<std::byte[], void (*)(void*)> memory;
    std::vector<NodeSync> of;  // by rank
};

TEST(RmaNodeSync, EachPostIsTakenOnce) {
    Node node(3);
    EXPECT_FALSE(node.of[1].has_post(0));
    node.of[0].post(1);
    EXPECT_TRUE(node.of[1].has_post(0));
    EXPECT_FALSE(node.of[1].has_post(2));
    EXPECT_FALSE(node.of[2].has_post(0));
    EXPECT_FALSE(node.of[0].has_post(1));
    node.of[0].post(1);  // again, before it was looked for
    node.of[1].take_post(0);
    EXPECT_TRUE(node.of[1].has_post(0));
    node.of[1].take_post(0);
    EXPECT_FALSE(node.of[1].has_post(0));
}

TEST(RmaNodeSync, AProcessPostsToItself) {
    Node node(1);
    const std::uint32_t group[] = {0};
    node.of[0].post(0);
    EXPECT_TRUE(node.of[0].has_post(0));
    node.of[0].take_post(0);
    EXPECT_FALSE(node.of[0].all_complete(group));
    node.of[0].complete(0);
    EXPECT_TRUE(node.of[0].all_complete(group));
    node.of[0].take_completes(group);
    EXPECT_FALSE(node.of[0].all_complete(group));
    node.of[0].begin_barrier();
    EXPECT_TRUE(node.of[0].passes_barrier());
}

TEST(RmaNodeSync, WaitEndsWhenAllOfTheGroupHaveCompleted) {
    Node node(4);
    const std::uint32_t group[] = {1, 3};
    EXPECT_TRUE(node.of[0].all_complete({}));
    node.of[1].complete(0);
    EXPECT_FALSE(node.of[0].all_complete(group));
    node.of[3].complete(0);
    EXPECT_TRUE(node.of[0].all_complete(group));
    EXPECT_FALSE(node.of[1].all_complete(group));
    node.of[0].take_completes(group);
    EXPECT_FALSE(node.of[0].all_complete(group));
}

// Processes enter in each order; nobody passes before the last one has begun.
TEST(RmaNodeSync, NobodyPassesTheBarrierBeforeTheLast) {
    for (std::uint32_t processes = 1; processes <= 5; ++processes) {
        Node node(processes);
        std::vector<std::uint32_t> order(processes);
        std::iota(order.begin(), order.end(), 0);
        do {
            for (std::uint32_t i = 0; i < processes; ++i) {
                node.of[order[i]].begin_barrier();
                for (std::uint32_t k = 0; k + 1 <= i && i + 1 < processes; ++k)
                    EXPECT_FALSE(node.of[order[k]].passes_barrier());
            }
            // Each step of one process may need a step of another one.
            std::vector<bool> passed(processes);
            for (std::uint32_t round = 0; round < processes + NodeSync::kMostSteps; ++round)
                for (const std::uint32_t rank : order)
                    if (!passed[rank]) passed[rank] = node.of[rank].passes_barrier();
            for (const std::uint32_t rank : order) EXPECT_TRUE(passed[rank]) << rank << " of " << processes;
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

TEST(RmaNodeSync, ThreadsPassManyBarriersTogether) {
    constexpr std::uint32_t kProcesses = 3, kRounds = 2000;
    Node node(kProcesses);
    std::vector<std::atomic<std::uint32_t>> come(kRounds);
    std::atomic<int> early{0};
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank)
        threads.emplace_back([&, rank] {
            NodeSync& own = node.of[rank];
            for (std::uint32_t round = 0; round < kRounds; ++round) {
                come[round].fetch_add(1, std::memory_order_relaxed);
                own.begin_barrier();
                while (!own.passes_barrier()) std::this_thread::yield();
                if (come[round].load(std::memory_order_relaxed) != kProcesses) ++early;
            }
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(early, 0);
}

TEST(RmaNodeSync, ThreadsExchangeEpochsInARing) {
    constexpr std::uint32_t kProcesses = 3, kRounds = 2000;
    Node node(kProcesses);
    std::vector<std::uint32_t> data(kProcesses);  // of each process: its left neighbour writes it
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank)
        threads.emplace_back([&, rank] {
            NodeSync& own = node.of[rank];
            const std::uint32_t right = (rank + 1) % kProcesses, left[] = {(rank + kProcesses - 1) % kProcesses};
            for (std::uint32_t round = 1; round <= kRounds; ++round) {
                own.post(left[0]);
                while (!own.has_post(right)) std::this_thread::yield();
                own.take_post(right);
                data[right] = round;
                own.complete(right);
                while (!own.all_complete(left)) std::this_thread::yield();
                own.take_completes(left);
                if (data[rank] != round) ++wrong;
            }
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace coop::rma
