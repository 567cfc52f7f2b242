// SPDX-License-Identifier: BSD-3-Clause
// rma/remote_lock.h: each step of each kind of request, and many requests in random order on one word.
#include "coop/rma/remote_lock.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace coop::rma {
namespace {

using What = AtomicStep::What;
constexpr LockType kShared = LockType::kShared, kExclusive = LockType::kExclusive;
constexpr std::uint64_t kHeldExclusively = RemoteLock::kExclusive, kOneWaits = RemoteLock::kWaiting;
constexpr AtomicStep kRead{.what = What::kAdd, .pause = true}, kDone{};
constexpr AtomicStep add(std::uint64_t operand) { return {.what = What::kAdd, .operand = operand}; }
constexpr AtomicStep swap(std::uint64_t expected, std::uint64_t value) {
    return {.what = What::kSwap, .operand = expected, .value = value};
}

TEST(RmaRemoteLock, SharedRequestHoldsAFreeLockAtOnce) {
    RemoteLock lock(kShared, false);
    EXPECT_EQ(lock.first(), add(1));
    EXPECT_EQ(lock.next(0), kDone);
}

TEST(RmaRemoteLock, SharedRequestJoinsSharedHolders) {
    RemoteLock lock(kShared, false);
    EXPECT_EQ(lock.next(5), kDone);
}

TEST(RmaRemoteLock, SharedRequestWaitsBehindTheExclusiveHolder) {
    RemoteLock lock(kShared, false);
    EXPECT_EQ(lock.next(kHeldExclusively), kRead);
    EXPECT_EQ(lock.next(kHeldExclusively + 1), kRead);
    EXPECT_EQ(lock.next(kOneWaits + 1), kDone) << "its place is before those that wait";
}

TEST(RmaRemoteLock, SharedRequestLetsAnExclusiveOnePassOnce) {
    RemoteLock lock(kShared, false);
    EXPECT_EQ(lock.next(kOneWaits + 1), add(~std::uint64_t{0}));
    EXPECT_EQ(lock.next(kOneWaits + 2), kRead);
    EXPECT_EQ(lock.next(kOneWaits + 1), kRead);
    EXPECT_EQ(lock.next(kHeldExclusively), add(1));
    EXPECT_EQ(lock.next(kHeldExclusively + kOneWaits), kRead);
    EXPECT_EQ(lock.next(kOneWaits + 1), kDone);
}

TEST(RmaRemoteLock, SharedRequestDoesNotLetASecondOnePass) {
    RemoteLock lock(kShared, false);
    lock.next(kOneWaits + 1);
    lock.next(kOneWaits + 2);
    EXPECT_EQ(lock.next(1), add(1)) << "the exclusive request has come and gone";
    EXPECT_EQ(lock.next(kOneWaits), kDone);
}

TEST(RmaRemoteLock, PatienceWithAnExclusiveRequestEnds) {
    RemoteLock lock(kShared, false);
    lock.next(kOneWaits + 1);
    AtomicStep step = lock.next(kOneWaits + 2);
    std::uint32_t reads = 0;
    for (; step == kRead && reads <= RemoteLock::kPatience; ++reads) step = lock.next(kOneWaits + 1);
    EXPECT_EQ(reads, RemoteLock::kPatience);
    EXPECT_EQ(step, add(1));
    EXPECT_EQ(lock.next(kOneWaits + 1), kDone);
}

TEST(RmaRemoteLock, OvertakingRequestWaitsOnlyForTheHolder) {
    RemoteLock free(kShared, true), held(kShared, true);
    EXPECT_EQ(free.next(kOneWaits + 1), kDone);
    EXPECT_EQ(held.next(kOneWaits + kHeldExclusively), kRead);
    EXPECT_EQ(held.next(kOneWaits + 1), kDone);
}

TEST(RmaRemoteLock, ExclusiveRequestTakesAFreeLock) {
    RemoteLock lock(kExclusive, false);
    EXPECT_EQ(lock.first(), swap(0, kHeldExclusively));
    EXPECT_EQ(lock.next(0), kDone);
}

TEST(RmaRemoteLock, ExclusiveRequestAnnouncesItselfAndEntersWhenNobodyHolds) {
    RemoteLock lock(kExclusive, false);
    EXPECT_EQ(lock.next(2), add(kOneWaits));
    EXPECT_EQ(lock.next(2), kRead);
    EXPECT_EQ(lock.next(kOneWaits + 1), kRead);
    EXPECT_EQ(lock.next(kOneWaits), swap(kOneWaits, kHeldExclusively));
    EXPECT_EQ(lock.next(kOneWaits), kDone);
}

TEST(RmaRemoteLock, ExclusiveRequestThatLosesTheSwapGoesOn) {
    RemoteLock lock(kExclusive, false);
    lock.next(1);
    EXPECT_EQ(lock.next(0), swap(kOneWaits, kHeldExclusively)) << "it became free meanwhile";
    EXPECT_EQ(lock.next(2 * kOneWaits), swap(2 * kOneWaits, kHeldExclusively + kOneWaits)) << "another one waits, too";
    EXPECT_EQ(lock.next(kHeldExclusively + kOneWaits), kRead) << "the other one was first";
    EXPECT_EQ(lock.next(kOneWaits), swap(kOneWaits, kHeldExclusively));
    EXPECT_EQ(lock.next(kOneWaits), kDone);
}

TEST(RmaRemoteLock, NothingFollowsWhenItIsHeld) {
    RemoteLock lock(kExclusive, false);
    lock.next(0);
    EXPECT_EQ(lock.next(kHeldExclusively), kDone);
}

TEST(RmaRemoteLock, ReleaseTakesBackWhatTheHolderAdded) {
    EXPECT_EQ(std::uint64_t{1} + RemoteLock::release(kShared), 0u);
    EXPECT_EQ(kHeldExclusively + kOneWaits + RemoteLock::release(kExclusive), kOneWaits);
}

// One process that takes the lock and gives it back, again and again.
struct Process {
    LockType type = kShared;
    std::optional<RemoteLock> lock;
    AtomicStep step;
    bool holds = false;
    int times = 0;
};

std::uint64_t execute(const AtomicStep& step, std::uint64_t& word) {
    const std::uint64_t old = word;
    if (step.what == What::kAdd) word += step.operand;
    else if (word == step.operand) word = step.value;
    return old;
}

TEST(RmaRemoteLock, ExcludesInEveryOrderAndEverybodyGetsItsTurn) {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        std::mt19937 random(seed);
        std::vector<Process> all(2 + random() % 5);
        std::uint64_t word = 0;
        constexpr int kTimes = 20;
        std::size_t left = all.size();
        for (std::uint64_t steps = 0; left > 0; ++steps) {
            ASSERT_LT(steps, 1'000'000u) << "seed " << seed << ": somebody waits for ever";
            Process& p = all[random() % all.size()];
            if (p.times == kTimes) continue;
            if (p.holds) {
                word += RemoteLock::release(p.type);
                p.holds = false;
                if (++p.times == kTimes) --left;
                continue;
            }
            if (!p.lock) {
                p.type = random() % 3 == 0 ? kExclusive : kShared;
                p.lock.emplace(p.type, random() % 4 == 0);
                p.step = p.lock->first();
            }
            p.step = p.lock->next(execute(p.step, word));
            if (p.step.what != What::kHeld) continue;
            p.lock.reset();
            p.holds = true;
            std::size_t exclusive = 0, holders = 0;
            for (const Process& each : all) {
                holders += each.holds;
                exclusive += each.holds && each.type == kExclusive;
            }
            ASSERT_TRUE(exclusive == 0 || holders == 1) << "seed " << seed;
        }
        ASSERT_EQ(word, 0u) << "seed " << seed;
    }
}

TEST(RmaTransfersUnderLock, OneInOrderIsTheOnlyOne) {
    TransfersUnderLock transfers;
    transfers.begin_epoch();
    EXPECT_TRUE(transfers.none());
    const auto put = transfers.begin();
    EXPECT_FALSE(transfers.none());
    EXPECT_FALSE(transfers.only_one_in_order()) << "the transport has not got it yet";
    transfers.is_in_order(put);
    EXPECT_TRUE(transfers.only_one_in_order());
    transfers.begin();
    EXPECT_FALSE(transfers.only_one_in_order());
}

TEST(RmaTransfersUnderLock, NothingOfAnEarlierEpochCounts) {
    TransfersUnderLock transfers;
    transfers.begin_epoch();
    transfers.is_in_order(transfers.begin());
    transfers.begin_epoch();
    EXPECT_TRUE(transfers.none());
    EXPECT_FALSE(transfers.only_one_in_order());
    transfers.begin();
    EXPECT_FALSE(transfers.only_one_in_order());
}

TEST(RmaTransfersUnderLock, LateReportDoesNotCountInTheNextEpoch) {
    TransfersUnderLock transfers;
    transfers.begin_epoch();
    const auto put = transfers.begin();
    transfers.begin_epoch();
    transfers.is_in_order(put);
    EXPECT_FALSE(transfers.only_one_in_order());
    transfers.begin();
    EXPECT_FALSE(transfers.only_one_in_order()) << "the report is of another transfer";
}

TEST(RmaTransfersUnderLock, LateReportFollowedByOneOfThisEpoch) {
    TransfersUnderLock transfers;
    transfers.begin_epoch();
    const auto earlier = transfers.begin();
    transfers.begin_epoch();
    const auto put = transfers.begin();
    transfers.is_in_order(earlier);
    transfers.is_in_order(put);
    EXPECT_TRUE(transfers.only_one_in_order());
}

}  // namespace
}  // namespace coop::rma
