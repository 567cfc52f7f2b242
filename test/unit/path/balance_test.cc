// SPDX-License-Identifier: BSD-3-Clause
//
// path/balance.h, with the completions of a link that carries so many bytes per nanosecond over each path.
#include "coop/path/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace coop::path {
namespace {

constexpr std::uint32_t kBytes = 1 << 20;
constexpr std::uint64_t kSecond = 1'000'000'000, kSoon = 200;
constexpr double kLink = 1.0;  // bytes per ns

// A queue pair that moves as soon as it is asked to.
class QueuePair {
public:
    QueuePair(std::vector<double> rates, double link = kLink)
        : rate(std::move(rates)), balance(std::vector<double>(rate.size(), link)) {}

    // One request after the other, for so long.
    void run(std::uint64_t ns) {
        for (const std::uint64_t end = now + ns; now < end;) one(kBytes);
    }
    // So many requests at the same time. The process finds the last completion `late`.
    void several(unsigned count, std::uint32_t bytes, std::uint64_t late = kSoon) {
        for (unsigned i = 0; i < count; ++i) post(bytes);
        wait(std::uint64_t{count} * bytes);
        now += late;
        for (unsigned i = 0; i < count; ++i) complete(bytes, now - std::max(late, kSoon));
    }
    void one(std::uint32_t bytes, std::uint64_t late = kSoon) { several(1, bytes, late); }
    void wait(std::uint64_t bytes) { now += static_cast<std::uint64_t>(static_cast<double>(bytes) / rate[path]); }
    void post(std::uint32_t bytes) { balance.on_posted(bytes, now, port); }
    void complete(std::uint32_t bytes, std::uint64_t seen_before) {
        port += bytes;
        if (!balance.on_completed(bytes, now, seen_before, port)) return;
        ++asked;
        if (able) move((path + 1) % rate.size(), true);
    }
    void move(std::size_t to, bool was_asked) {
        path = to;
        ++moves;
        balance.on_moved(path, now, was_asked);
    }

    std::vector<double> rate;
    Balance balance;
    std::uint64_t now = 5 * kSecond, port = 0;
    std::size_t path = 0;
    unsigned asked = 0, moves = 0;
    bool able = true;
};

// --- what is done about congestion -----------------------------------------------------------------------------------

TEST(Balance, stays_on_a_path_that_is_free) {
    QueuePair qp({0.6, 1});
    qp.run(30 * kSecond);
    EXPECT_EQ(qp.asked, 0u);
    EXPECT_NEAR(qp.balance.rate(0), 0.6, 0.01);
    EXPECT_EQ(qp.balance.rate(1), 0);
}

TEST(Balance, leaves_a_congested_path_after_two_windows) {
    QueuePair qp({0.4, 1});
    qp.run(2 * Balance::kWindowNs - 4'000'000);
    EXPECT_EQ(qp.moves, 0u);
    qp.run(8'000'000);
    EXPECT_EQ(qp.moves, 1u);
    qp.run(10 * kSecond);
    EXPECT_EQ(qp.path, 1u);
    EXPECT_EQ(qp.moves, 1u);
}

TEST(Balance, takes_no_notice_of_one_slow_window) {
    QueuePair qp({1, 1});
    for (int i = 0; i < 20; ++i) {
        qp.rate[0] = 0.3;
        qp.run(Balance::kWindowNs);
        qp.rate[0] = 1;
        qp.run(2 * Balance::kWindowNs);
    }
    EXPECT_EQ(qp.asked, 0u);
}

TEST(Balance, leaves_again_when_the_new_path_is_congested_later) {
    QueuePair qp({0.4, 1});
    qp.run(2 * kSecond);
    ASSERT_EQ(qp.path, 1u);
    qp.rate = {1, 0.2};
    qp.run(3 * kSecond);
    EXPECT_EQ(qp.path, 0u);
    EXPECT_EQ(qp.moves, 2u);
}

TEST(Balance, tries_all_paths_and_goes_to_the_best_if_all_are_congested) {
    QueuePair qp({0.1, 0.4, 0.2, 0.15});
    qp.run(kSecond);
    EXPECT_EQ(qp.path, 1u);
    EXPECT_EQ(qp.moves, 5u) << "three to try all paths, two from the last to the second one";
}

TEST(Balance, returns_to_where_it_began_if_no_path_is_much_better) {
    QueuePair qp({0.4, 0.45});
    qp.run(kSecond);
    EXPECT_EQ(qp.moves, 2u);
    EXPECT_EQ(qp.path, 0u);
}

TEST(Balance, searches_less_and_less_often) {
    QueuePair qp({0.4, 0.4});
    qp.run(kSecond);
    EXPECT_EQ(qp.moves, 2u) << "there and back";
    qp.run(300 * kSecond);
    // After 1, 2, 4, … 32, 60, 60 … seconds.
    EXPECT_GE(qp.moves, 18u);
    EXPECT_LE(qp.moves, 22u);
}

TEST(Balance, searches_soon_again_after_a_calm_time) {
    QueuePair qp({0.4, 0.4});
    qp.run(40 * kSecond);
    qp.rate = {1, 1};
    qp.run(60 * kSecond);
    qp.rate = {0.4, 0.4};
    const unsigned before = qp.moves;
    qp.run(kSecond);
    EXPECT_EQ(qp.moves, before + 2);
    qp.run(2 * kSecond);
    EXPECT_EQ(qp.moves, before + 4);
}

// Each path suits one of both directions, and both sides move the queue pair.
TEST(Balance, moves_seldom_if_the_two_sides_want_different_paths) {
    const double rate[2][2] = {{0.2, 1}, {1, 0.2}};
    Balance sides[2] = {Balance({kLink, kLink}), Balance({kLink, kLink})};
    std::size_t path = 0;
    unsigned moves = 0;
    std::uint64_t now = kSecond, next[2] = {now, now}, port[2] = {};
    for (Balance& side : sides) side.on_posted(kBytes, now, 0);
    while (now < 300 * kSecond) {
        const std::size_t i = next[0] <= next[1] ? 0 : 1;
        now = next[i];
        port[i] += kBytes;
        const bool asks = sides[i].on_completed(kBytes, now, now - kSoon, port[i]);
        sides[i].on_posted(kBytes, now, port[i]);
        next[i] = now + static_cast<std::uint64_t>(kBytes / rate[i][path]);
        if (!asks) continue;
        path = 1 - path;
        ++moves;
        for (std::size_t each : {0u, 1u}) sides[each].on_moved(path, now, each == i);
    }
    EXPECT_GE(moves, 4u);
    EXPECT_LE(moves, 10u);
}

TEST(Balance, asks_three_times_and_then_waits_if_the_queue_pair_does_not_move) {
    QueuePair qp({0.4, 1});
    qp.able = false;
    qp.run(kSecond);
    EXPECT_EQ(qp.asked, 3u);
    qp.run(100 * kSecond);
    EXPECT_LE(qp.asked, 3u * 8u);
    qp.able = true;
    qp.run(100 * kSecond);
    EXPECT_EQ(qp.path, 1u);
}

// The HCA has given the path up, or the peer has left it.
TEST(Balance, does_not_go_back_soon_to_a_path_that_it_has_left_for_another_reason) {
    QueuePair qp({1, 0.3});
    qp.run(kSecond);
    qp.move(1, false);
    qp.run(50 * kSecond);
    EXPECT_EQ(qp.asked, 0u);
    qp.run(120 * kSecond);
    EXPECT_EQ(qp.path, 0u);
}

TEST(Balance, ends_a_search_before_a_barred_path) {
    QueuePair qp({0.3, 0.2, 1});
    qp.move(2, true);
    qp.move(0, false);
    qp.run(30 * kSecond);
    EXPECT_EQ(qp.path, 1u);
    qp.run(120 * kSecond);
    EXPECT_EQ(qp.path, 2u);
}

TEST(Balance, bars_an_alternate_path_on_which_the_queue_pair_was_lost) {
    QueuePair qp({0.3, 1});
    qp.run(kSecond);
    ASSERT_EQ(qp.path, 1u);
    qp.post(kBytes);  // never completes
    qp.path = 0;
    qp.balance.on_replaced(0, qp.now);
    EXPECT_EQ(qp.balance.current(), 0u);
    qp.run(50 * kSecond);
    EXPECT_EQ(qp.moves, 1u);
    qp.run(150 * kSecond);
    EXPECT_EQ(qp.path, 1u);
}

TEST(Balance, bars_nothing_if_the_queue_pair_was_lost_on_its_first_path) {
    QueuePair qp({1, 1});
    qp.run(kSecond);
    qp.balance.on_replaced(0, qp.now);
    qp.rate[0] = 0.3;
    qp.run(2 * kSecond);
    EXPECT_EQ(qp.path, 1u);
}

TEST(Balance, expects_the_best_rate_so_far_if_that_of_the_link_is_unknown) {
    QueuePair qp({1, 0.9}, 0);
    qp.run(kSecond);
    EXPECT_EQ(qp.asked, 0u);
    qp.rate[0] = 0.6;
    qp.run(kSecond);
    EXPECT_EQ(qp.asked, 0u);
    qp.rate[0] = 0.4;
    qp.run(kSecond);
    EXPECT_EQ(qp.path, 1u);
}

TEST(Balance, knows_the_rate_of_each_link) {
    QueuePair qp({1, 0.3});
    qp.balance = Balance({1, 0.4});
    qp.move(1, true);
    qp.run(kSecond);
    EXPECT_EQ(qp.asked, 0u);
}

// --- what counts -----------------------------------------------------------------------------------------------------

TEST(Balance, does_not_count_requests_that_are_short) {
    QueuePair qp({0.1, 1});
    for (int i = 0; i < 10'000; ++i) qp.several(64, Balance::kLeastMean - 1);
    for (int i = 0; i < 100'000; ++i) qp.one(Balance::kLeastBytes - 1);
    EXPECT_EQ(qp.asked, 0u);
    EXPECT_EQ(qp.balance.rate(0), 0);
}

// The link carries several reads of a queue pair at once, and all of them end together.
TEST(Balance, counts_all_that_were_under_way_together) {
    QueuePair qp({1, 1});
    for (int i = 0; i < 1'000; ++i) qp.several(16, kBytes);
    EXPECT_EQ(qp.asked, 0u);
    EXPECT_NEAR(qp.balance.rate(0), 1, 0.01);
}

// The same, with the next ones under way already.
TEST(Balance, counts_all_that_were_under_way_together_without_a_pause) {
    QueuePair qp({1, 1});
    for (int i = 0; i < 16; ++i) qp.post(kBytes);
    for (int round = 0; round < 1'000; ++round) {
        for (int i = 0; i < 16; ++i) qp.post(kBytes);
        qp.wait(16 * kBytes);
        for (int i = 0; i < 16; ++i) qp.complete(kBytes, qp.now - kSoon);
    }
    EXPECT_EQ(qp.asked, 0u);
    EXPECT_NEAR(qp.balance.rate(0), 1, 0.05);
}

TEST(Balance, counts_short_and_long_requests_together) {
    QueuePair qp({0.4, 1});
    for (int i = 0; i < 100'000; ++i) {
        qp.post(32);
        qp.post(4 * Balance::kLeastMean);
        qp.wait(4 * Balance::kLeastMean);
        qp.complete(4 * Balance::kLeastMean, qp.now - kSoon);
        qp.complete(32, qp.now - kSoon);
    }
    EXPECT_EQ(qp.path, 1u);
    EXPECT_NEAR(qp.balance.rate(0), 0.4, 0.01);
}

// Two queue pairs share the port.
TEST(Balance, counts_what_others_carry_over_the_port) {
    QueuePair qp({0.3, 1});
    for (int i = 0; i < 1'000; ++i) {
        qp.post(kBytes);
        qp.wait(kBytes);
        qp.port += kBytes;
        qp.complete(kBytes, qp.now - kSoon);
    }
    EXPECT_EQ(qp.asked, 0u);
    EXPECT_NEAR(qp.balance.rate(0), 0.3, 0.01);
    qp.run(kSecond);
    EXPECT_EQ(qp.path, 1u);
}

// A sweep inside of another one has a later time, and the outer one goes on.
TEST(Balance, takes_completions_whose_time_is_before_the_last_one) {
    QueuePair qp({1, 1});
    for (int i = 0; i < 100; ++i) {
        for (int each = 0; each < 8; ++each) qp.post(kBytes);
        qp.wait(8 * kBytes);
        const std::uint64_t outer = qp.now, inner = outer + 1'000'000;
        qp.now = inner;
        for (int each = 0; each < 7; ++each) qp.complete(kBytes, inner - kSoon);
        qp.now = outer;
        qp.complete(kBytes, inner - kSoon);
        qp.now = inner;
    }
    EXPECT_EQ(qp.asked, 0u);
}

// A process that computes finds completions late.
TEST(Balance, does_not_count_a_last_completion_that_was_found_late) {
    QueuePair qp({1, 1});
    for (int i = 0; i < 2'000; ++i) qp.one(kBytes, 10'000'000);
    EXPECT_EQ(qp.balance.rate(0), 0);
}

TEST(Balance, counts_requests_that_were_found_late_while_others_were_under_way) {
    QueuePair qp({1, 1});
    qp.post(kBytes);
    for (int i = 0; i < 2'000; ++i) {
        const std::uint64_t before = qp.now;
        for (int each = 0; each < 8; ++each) qp.post(kBytes);
        qp.wait(8 * kBytes);
        for (int each = 0; each < 8; ++each) qp.complete(kBytes, i % 10 == 9 ? qp.now - kSoon : before);
    }
    EXPECT_NEAR(qp.balance.rate(0), 1, 0.05);
}

TEST(Balance, does_not_count_when_it_is_unknown_when_the_process_looked_before) {
    QueuePair qp({0.1, 1});
    for (int i = 0; i < 1'000; ++i) {
        qp.post(kBytes);
        qp.wait(kBytes);
        qp.complete(kBytes, qp.now + 1);
    }
    EXPECT_EQ(qp.balance.rate(0), 0);
}

TEST(Balance, does_not_count_pauses) {
    QueuePair qp({1, 1});
    for (int i = 0; i < 1'000; ++i) {
        qp.one(kBytes);
        qp.now += 10'000'000;
    }
    EXPECT_EQ(qp.asked, 0u);
    EXPECT_NEAR(qp.balance.rate(0), 1, 0.01);
}

}  // namespace
}  // namespace coop::path
