// SPDX-License-Identifier: BSD-3-Clause
// rma/lock_queue.h: who gets the lock of a window, and in which order.
#include "coop/rma/lock_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace coop::rma {
namespace {

constexpr LockType kShared = LockType::kShared, kExclusive = LockType::kExclusive;

using Grants = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // source, cookie

// Collects the grants of one call. The cookie of a source is 100 times its rank.
class Asked {
    auto collect() {
        return [this](std::uint32_t source, std::uint64_t cookie) { grants_.emplace_back(source, cookie); };
    }
    Grants grants_;

public:
    Grants request(std::uint32_t source, LockType type) {
        grants_.clear();
        EXPECT_TRUE(queue.request(source, type, 100 * source, collect()));
        return grants_;
    }
    Grants release(std::uint32_t source) {
        grants_.clear();
        EXPECT_TRUE(queue.release(source, collect()));
        return grants_;
    }
    bool is_refused(std::uint32_t source, LockType type) {
        grants_.clear();
        return !queue.request(source, type, 0, collect()) && grants_.empty();
    }
    bool is_release_refused(std::uint32_t source) {
        grants_.clear();
        return !queue.release(source, collect()) && grants_.empty();
    }

    LockQueue queue;
};

Grants to(std::initializer_list<std::uint32_t> sources) {
    Grants all;
    for (const std::uint32_t source : sources) all.emplace_back(source, 100 * source);
    return all;
}

TEST(RmaLockQueue, a_free_lock_is_granted_at_once) {
    for (const LockType type : {kShared, kExclusive}) {
        Asked lock;
        EXPECT_TRUE(lock.queue.idle());
        EXPECT_EQ(lock.request(1, type), to({1}));
        EXPECT_FALSE(lock.queue.idle());
        EXPECT_EQ(lock.release(1), to({}));
        EXPECT_TRUE(lock.queue.idle());
    }
}

TEST(RmaLockQueue, shared_holders_do_not_exclude_each_other) {
    Asked lock;
    for (const std::uint32_t source : {4u, 2u, 3u}) EXPECT_EQ(lock.request(source, kShared), to({source}));
    for (const std::uint32_t source : {2u, 4u, 3u}) {
        EXPECT_FALSE(lock.queue.idle());
        EXPECT_EQ(lock.release(source), to({}));
    }
    EXPECT_TRUE(lock.queue.idle());
}

TEST(RmaLockQueue, an_exclusive_holder_excludes_all) {
    Asked lock;
    lock.request(1, kExclusive);
    EXPECT_EQ(lock.request(2, kShared), to({}));
    EXPECT_EQ(lock.request(3, kExclusive), to({}));
    EXPECT_EQ(lock.release(1), to({2}));
    EXPECT_EQ(lock.release(2), to({3}));
    EXPECT_EQ(lock.release(3), to({}));
    EXPECT_TRUE(lock.queue.idle());
}

TEST(RmaLockQueue, an_exclusive_request_waits_for_the_last_shared_holder) {
    Asked lock;
    lock.request(1, kShared);
    lock.request(2, kShared);
    EXPECT_EQ(lock.request(3, kExclusive), to({}));
    EXPECT_EQ(lock.release(2), to({}));
    EXPECT_EQ(lock.release(1), to({3}));
}

TEST(RmaLockQueue, a_shared_request_of_a_process_with_other_locks_overtakes_exclusive_ones) {
    Asked lock;
    std::vector<std::uint32_t> granted;
    const auto grant = [&](std::uint32_t source, std::uint64_t) { granted.push_back(source); };
    lock.request(1, kShared);
    lock.request(2, kExclusive);
    EXPECT_TRUE(lock.queue.request(3, kShared, 0, grant, true));
    EXPECT_EQ(granted, std::vector<std::uint32_t>{3});
    // It waits for an exclusive holder, and then comes first.
    EXPECT_EQ(lock.release(1), to({}));
    EXPECT_EQ(lock.release(3), to({2}));
    lock.request(4, kExclusive);
    granted.clear();
    EXPECT_TRUE(lock.queue.request(5, kShared, 500, grant, true));
    EXPECT_TRUE(granted.empty());
    EXPECT_EQ(lock.release(2), to({5}));
    EXPECT_EQ(lock.release(5), to({4}));
}

TEST(RmaLockQueue, an_exclusive_request_overtakes_nobody) {
    Asked lock;
    std::vector<std::uint32_t> granted;
    lock.request(1, kExclusive);
    lock.request(2, kExclusive);
    EXPECT_TRUE(lock.queue.request(
        3, kExclusive, 300, [&](std::uint32_t source, std::uint64_t) { granted.push_back(source); }, true));
    EXPECT_EQ(lock.release(1), to({2}));
    EXPECT_EQ(lock.release(2), to({3}));
}

TEST(RmaLockQueue, a_shared_request_does_not_overtake_an_exclusive_one) {
    Asked lock;
    lock.request(1, kShared);
    lock.request(2, kExclusive);
    EXPECT_EQ(lock.request(3, kShared), to({}));
    EXPECT_EQ(lock.release(1), to({2}));
    EXPECT_EQ(lock.release(2), to({3}));
}

TEST(RmaLockQueue, shared_requests_are_granted_together_up_to_the_next_exclusive_one) {
    Asked lock;
    lock.request(1, kExclusive);
    lock.request(2, kShared);
    lock.request(3, kShared);
    lock.request(4, kExclusive);
    lock.request(5, kShared);
    EXPECT_EQ(lock.release(1), to({2, 3}));
    EXPECT_EQ(lock.release(3), to({}));
    EXPECT_EQ(lock.release(2), to({4}));
    EXPECT_EQ(lock.release(4), to({5}));
}

TEST(RmaLockQueue, a_process_cannot_hold_or_wait_twice) {
    Asked lock;
    lock.request(1, kShared);
    EXPECT_TRUE(lock.is_refused(1, kShared));
    EXPECT_TRUE(lock.is_refused(1, kExclusive));
    lock.request(2, kExclusive);
    EXPECT_TRUE(lock.is_refused(2, kShared));
    EXPECT_EQ(lock.release(1), to({2}));  // with the first cookie
    EXPECT_EQ(lock.release(2), to({}));
    EXPECT_TRUE(lock.queue.idle());
    EXPECT_EQ(lock.request(1, kExclusive), to({1}));
}

TEST(RmaLockQueue, only_a_holder_can_release) {
    Asked lock;
    EXPECT_TRUE(lock.is_release_refused(1));
    lock.request(1, kExclusive);
    lock.request(2, kShared);
    EXPECT_TRUE(lock.is_release_refused(2));  // waits
    EXPECT_TRUE(lock.is_release_refused(3));
    EXPECT_EQ(lock.release(1), to({2}));
    EXPECT_TRUE(lock.is_release_refused(1));
}

TEST(RmaLockQueue, a_grant_may_release_and_request) {
    LockQueue queue;
    Grants grants;
    int rounds = 0;
    // Whoever is granted the lock releases it within the grant, and the first one asks again.
    struct Release {
        LockQueue& queue;
        Grants& grants;
        int& rounds;
        void operator()(std::uint32_t source, std::uint64_t cookie) const {
            grants.emplace_back(source, cookie);
            if (source == 0) return;
            EXPECT_TRUE(queue.release(source, *this));
            if (source != 1 || ++rounds == 3) return;
            EXPECT_TRUE(queue.request(1, kExclusive, 100, *this));
        }
    };
    const Release release{queue, grants, rounds};
    EXPECT_TRUE(queue.request(0, kExclusive, 0, release));
    EXPECT_TRUE(queue.request(1, kShared, 100, release));
    EXPECT_TRUE(queue.request(2, kShared, 200, release));
    EXPECT_TRUE(queue.request(3, kExclusive, 300, release));
    EXPECT_TRUE(queue.release(0, release));
    EXPECT_TRUE(queue.idle());
    EXPECT_EQ(grants, to({0, 1, 2, 3, 1, 1}));
}

// Against a model that only knows the order of requests: grants come in this order, never too early, never too late.
TEST(RmaLockQueue, long_random_programs) {
    struct Request {
        std::uint32_t source;
        LockType type;
        std::uint64_t cookie;
    };
    constexpr std::uint32_t kProcesses = 8;
    for (std::uint32_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        LockQueue queue;
        std::vector<Request> requests;           // all accepted ones
        std::size_t granted = 0;                 // of them
        std::map<std::uint32_t, LockType> held;  // by source
        std::set<std::uint32_t> waiting;
        const auto may_hold = [&](LockType type) {
            if (held.empty()) return true;
            return type == kShared && held.begin()->second == kShared;
        };
        const auto grant = [&](std::uint32_t source, std::uint64_t cookie) {
            ASSERT_LT(granted, requests.size());
            const Request& next = requests[granted++];
            EXPECT_EQ(source, next.source);
            EXPECT_EQ(cookie, next.cookie);
            EXPECT_TRUE(may_hold(next.type)) << "too early";
            held[source] = next.type;
            waiting.erase(source);
        };
        for (std::uint64_t i = 0; i < 5000 && !HasFailure(); ++i) {
            const std::uint32_t source = random() % kProcesses;
            if (random() % 4 == 0) {
                const Request request{source, random() % 3 ? kShared : kExclusive, i};
                const bool is_new = !held.count(source) && !waiting.count(source);
                if (is_new) requests.push_back(request), waiting.insert(source);
                EXPECT_EQ(queue.request(source, request.type, request.cookie, grant), is_new);
            } else {
                const bool holds = held.erase(source) > 0;
                EXPECT_EQ(queue.release(source, grant), holds);
            }
            if (granted < requests.size()) {
                EXPECT_FALSE(may_hold(requests[granted].type)) << "too late";
            }
            EXPECT_EQ(queue.idle(), held.empty() && waiting.empty());
        }
        EXPECT_GT(granted, 300u);
    }
}

}  // namespace
}  // namespace coop::rma
