// SPDX-License-Identifier: BSD-3-Clause
// rma/node_lock.h: the order of requests, many requests in random order against a model, and threads that stand for the
// processes of a node.
#include "coop/rma/node_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace coop::rma {
namespace {

using Request = NodeLock::Request;
constexpr LockType kShared = LockType::kShared, kExclusive = LockType::kExclusive;

Request request_of(LockType type, bool overtakes = false) {
    Request request;
    request.type = type;
    request.overtakes = overtakes;
    return request;
}

TEST(RmaNodeLock, SharedRequestsHoldItTogether) {
    NodeLock lock;
    Request one = request_of(kShared), other = request_of(kShared);
    EXPECT_TRUE(lock.ask(one));
    EXPECT_TRUE(lock.ask(other));
}

TEST(RmaNodeLock, AnExclusiveHolderExcludesEverybody) {
    NodeLock lock;
    Request holder = request_of(kExclusive), shared = request_of(kShared), exclusive = request_of(kExclusive);
    EXPECT_TRUE(lock.ask(holder));
    EXPECT_FALSE(lock.ask(shared));
    EXPECT_FALSE(lock.ask(exclusive));
    EXPECT_FALSE(lock.take(shared));
    lock.release(kExclusive);
    EXPECT_FALSE(lock.take(exclusive)) << "it is not its turn";
    EXPECT_TRUE(lock.take(shared));
    EXPECT_FALSE(lock.take(exclusive)) << "it is its turn, and there is a holder";
    lock.release(kShared);
    EXPECT_TRUE(lock.take(exclusive));
}

TEST(RmaNodeLock, ASharedRequestWaitsBehindAnExclusiveOneThatWaits) {
    NodeLock lock;
    Request holder = request_of(kShared), exclusive = request_of(kExclusive), shared = request_of(kShared);
    EXPECT_TRUE(lock.ask(holder));
    EXPECT_FALSE(lock.ask(exclusive));
    EXPECT_FALSE(lock.ask(shared));
    EXPECT_FALSE(lock.take(shared));
    lock.release(kShared);
    EXPECT_FALSE(lock.take(shared));
    EXPECT_TRUE(lock.take(exclusive));
    lock.release(kExclusive);
    EXPECT_TRUE(lock.take(shared));
}

TEST(RmaNodeLock, AnOvertakingRequestWaitsOnlyForTheHolder) {
    NodeLock lock;
    Request first = request_of(kExclusive), second = request_of(kExclusive), overtaking = request_of(kShared, true);
    EXPECT_TRUE(lock.ask(first));
    EXPECT_FALSE(lock.ask(second));
    EXPECT_FALSE(lock.ask(overtaking));
    EXPECT_FALSE(lock.take(overtaking));
    lock.release(kExclusive);
    EXPECT_TRUE(lock.take(overtaking));
    EXPECT_FALSE(lock.take(second));
    Request another = request_of(kShared, true);
    EXPECT_TRUE(lock.ask(another)) << "although an exclusive request waits";
    lock.release(kShared);
    lock.release(kShared);
    EXPECT_TRUE(lock.take(second));
}

// What a process saw before may be wrong in each part of the word.
TEST(RmaNodeLock, AWrongGuessDoesNoHarm) {
    NodeLock lock;
    Request old = request_of(kShared), waiting = request_of(kExclusive);
    EXPECT_TRUE(lock.ask(old));
    EXPECT_FALSE(lock.ask(waiting));
    lock.release(kShared);
    EXPECT_TRUE(lock.take(waiting));
    EXPECT_FALSE(lock.ask(old)) << "it saw a free lock";
    lock.release(kExclusive);
    EXPECT_TRUE(lock.take(old));
    waiting.type = kExclusive;
    EXPECT_FALSE(lock.ask(waiting)) << "it saw no shared holder";
    lock.release(kShared);
    EXPECT_TRUE(lock.take(waiting));
}

TEST(RmaNodeLock, TicketsBeginAgainAfterTheLast) {
    NodeLock lock;
    Request holder = request_of(kExclusive), next = request_of(kExclusive);
    ASSERT_TRUE(lock.ask(holder));
    for (int i = 0; i < 70000; ++i) {
        ASSERT_FALSE(lock.ask(next));
        lock.release(kExclusive);
        ASSERT_TRUE(lock.take(next)) << i;
        std::swap(holder, next);
    }
    lock.release(kExclusive);
    EXPECT_TRUE(lock.ask(next));
}

// Every request that does not overtake is granted in its order.
TEST(RmaNodeLock, RandomRequestsAreGrantedInTheirOrder) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        NodeLock lock;
        std::vector<Request> processes(6);
        std::deque<std::size_t> waiting, idle{0, 1, 2, 3, 4, 5}, holders;
        const auto pick = [&](std::deque<std::size_t>& from) {
            const std::size_t at = random() % from.size(), found = from[at];
            from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
            return found;
        };
        const auto may_hold = [&](LockType type) {
            return holders.empty() || (type == kShared && processes[holders.front()].type == kShared);
        };
        for (int step = 0; step < 3000; ++step) {
            if (random() % 2 == 0 && !idle.empty()) {
                const std::size_t who = pick(idle);
                processes[who].type = random() % 3 == 0 ? kExclusive : kShared;
                const bool expected = waiting.empty() && may_hold(processes[who].type);
                ASSERT_EQ(lock.ask(processes[who]), expected) << "seed " << seed << ", step " << step;
                (expected ? holders : waiting).push_back(who);
            } else if (!holders.empty()) {
                lock.release(processes[holders.front()].type);
                idle.push_back(pick(holders));
            }
            for (std::size_t i = 1; i < waiting.size(); ++i) ASSERT_FALSE(lock.take(processes[waiting[i]]));
            while (!waiting.empty()) {
                const std::size_t who = waiting.front();
                const bool expected = may_hold(processes[who].type);
                ASSERT_EQ(lock.take(processes[who]), expected) << "seed " << seed << ", step " << step;
                if (!expected) break;
                holders.push_back(who);
                waiting.pop_front();
            }
        }
    }
}

TEST(RmaNodeLock, ThreadsExcludeEachOther) {
    constexpr int kThreads = 3, kRounds = 3000;
    NodeLock lock;
    int written = 0;  // by exclusive holders
    std::atomic<int> readers{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            Request request;
            for (int round = 0; round < kRounds; ++round) {
                request.type = (round + thread) % 3 == 0 ? kExclusive : kShared;
                request.overtakes = request.type == kShared && round % 5 == 0;
                for (bool holds = lock.ask(request); !holds; holds = lock.take(request)) std::this_thread::yield();
                if (request.type == kExclusive) {
                    if (readers.load(std::memory_order_relaxed) != 0) ++wrong;
                    ++written;
                } else {
                    readers.fetch_add(1, std::memory_order_relaxed);
                    if (written < 0) ++wrong;  // a look, which ThreadSanitizer sees
                    readers.fetch_sub(1, std::memory_order_relaxed);
                }
                lock.release(request.type);
            }
        });
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(written, kThreads * kRounds / 3);
}

}  // namespace
}  // namespace coop::rma
