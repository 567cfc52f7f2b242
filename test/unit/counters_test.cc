// SPDX-License-Identifier: BSD-3-Clause
//
// base/tally.h and base/counters.h: counting with and without threads, and the
// table of the performance variables.
#include "coop/base/counters.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace coop {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 20000;

template <class Work>
void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(work);
    for (auto& thread : threads) thread.join();
}

class Counting : public ::testing::TestWithParam<bool> {
protected:
    Counting() { counters.set_threads(GetParam()); }
    Counters counters;
};

INSTANTIATE_TEST_SUITE_P(Threads, Counting, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "several" : "one"; });

TEST_P(Counting, starts_at_zero) {
    for (const Variable& variable : kVariables) EXPECT_EQ(value_of(variable, counters), 0u) << variable.name;
}

TEST_P(Counting, a_counter_adds_up) {
    counters.count(Counter::kOutOfOrder);
    counters.count(Counter::kOutOfOrder, 41);
    EXPECT_EQ(counters.total(Counter::kOutOfOrder), 42u);
    EXPECT_EQ(counters.total(Counter::kRetryGet), 0u);
}

TEST_P(Counting, a_gauge_keeps_its_high_water_mark) {
    for (int i = 0; i < 3; ++i) counters.up(Gauge::kUnexpected);
    for (int i = 0; i < 2; ++i) counters.down(Gauge::kUnexpected);
    counters.up(Gauge::kUnexpected);
    EXPECT_EQ(counters.now(Gauge::kUnexpected), 2u);
    EXPECT_EQ(counters.high(Gauge::kUnexpected), 3u);
    EXPECT_EQ(counters.high(Gauge::kRendezvous), 0u);
}

TEST(Counters, several_threads_lose_no_count) {
    Counters counters;
    counters.set_threads(true);
    in_threads([&] {
        for (int i = 0; i < kRounds; ++i) counters.count(Counter::kRetrySendBusy);
    });
    EXPECT_EQ(counters.total(Counter::kRetrySendBusy), std::uint64_t{kThreads} * kRounds);
}

TEST(Counters, a_gauge_of_several_threads_returns_to_zero_and_never_passes_their_number) {
    Counters counters;
    counters.set_threads(true);
    in_threads([&] {
        for (int i = 0; i < kRounds; ++i) {
            counters.up(Gauge::kRendezvous);
            counters.down(Gauge::kRendezvous);
        }
    });
    EXPECT_EQ(counters.now(Gauge::kRendezvous), 0u);
    EXPECT_GE(counters.high(Gauge::kRendezvous), 1u);
    EXPECT_LE(counters.high(Gauge::kRendezvous), std::uint64_t{kThreads});
}

TEST(Counters, may_be_read_while_another_thread_counts_without_the_flag) {
    Counters counters;
    std::thread writer([&] {
        for (int i = 0; i < kRounds; ++i) counters.count(Counter::kRetryPut);
    });
    std::uint64_t last = 0;
    while (last < kRounds) {
        const std::uint64_t now = counters.total(Counter::kRetryPut);
        ASSERT_GE(now, last);
        last = now;
    }
    writer.join();
}

TEST(Tally, raise_to_never_lowers) {
    for (bool threads : {false, true}) {
        Tally tally;
        tally.raise_to(7, threads);
        tally.raise_to(3, threads);
        EXPECT_EQ(tally.read(), 7u);
        EXPECT_EQ(tally.add(2, threads), 9u);
        EXPECT_EQ(tally.subtract(4, threads), 5u);
        tally.set(1);
        EXPECT_EQ(tally.read(), 1u);
    }
}

TEST(Variables, each_shows_its_own_counter_or_gauge) {
    Counters counters;
    for (std::size_t i = 0; i < kCounterCount; ++i) counters.count(static_cast<Counter>(i), 100 + i);
    for (std::size_t g = 0; g < kGaugeCount; ++g) {
        for (std::size_t n = 0; n < 10 + g; ++n) counters.up(static_cast<Gauge>(g));
        counters.down(static_cast<Gauge>(g));
    }
    for (std::size_t i = 0; i < kCounterCount; ++i) EXPECT_EQ(value_of(kVariables[i], counters), 100 + i);
    for (std::size_t g = 0; g < kGaugeCount; ++g) {
        EXPECT_EQ(value_of(kVariables[kCounterCount + 2 * g], counters), 9 + g);
        EXPECT_EQ(value_of(kVariables[kCounterCount + 2 * g + 1], counters), 10 + g);
    }
}

TEST(Variables, have_names_of_their_own_and_a_description) {
    std::set<std::string> names;
    for (const Variable& variable : kVariables) {
        names.insert(variable.name);
        EXPECT_GT(std::string(variable.help).size(), 10u) << variable.name;
        EXPECT_EQ(std::string(variable.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos);
    }
    EXPECT_EQ(names.size(), kVariables.size());
}

TEST(Variables, an_unknown_kind_reads_as_zero) {
    Variable odd = kVariables[0];
    odd.kind = static_cast<VariableKind>(99);
    EXPECT_EQ(value_of(odd, Counters{}), 0u);
}

}  // namespace
}  // namespace coop
