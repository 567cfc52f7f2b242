// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/offload.h: how many chunks an HCA is given; rndv/hca_load.h: the load of the
// HCAs of a node.
#include "coop/rndv/offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "coop/rndv/hca_load.h"

namespace coop::rndv {
namespace {

constexpr double kGB = 1e9;

// --- rates ---------------------------------------------------------------------------

TEST(Rate, the_first_measurement_is_believed_and_later_ones_move_it_by_a_quarter) {
    Rate rate;
    EXPECT_EQ(rate.bytes_per_s(), 0);
    rate.measured(1000, 1000);
    EXPECT_DOUBLE_EQ(rate.bytes_per_s(), kGB);
    rate.measured(2000, 1000);
    EXPECT_DOUBLE_EQ(rate.bytes_per_s(), 1.25 * kGB);
}

TEST(Rate, nothing_measured_says_nothing) {
    Rate rate;
    rate.measured(0, 10);
    rate.measured(10, 0);
    EXPECT_EQ(rate.bytes_per_s(), 0);
}

// --- chunks --------------------------------------------------------------------------

TEST(Offload, one_chunk_is_tried_while_a_rate_is_unknown) {
    EXPECT_EQ(chunks_to_offload(16, 0, 0, kGB), 1u);
    EXPECT_EQ(chunks_to_offload(16, 0, kGB, 0), 1u);
    EXPECT_EQ(chunks_to_offload(16, 1, 0, 0), 0u);
}

TEST(Offload, the_last_chunk_is_left_to_the_cpus) {
    EXPECT_EQ(chunks_to_offload(1, 0, 100 * kGB, kGB), 0u);
    EXPECT_EQ(chunks_to_offload(0, 0, kGB, kGB), 0u);
    for (std::uint32_t left = 2; left < 40; ++left) EXPECT_LT(chunks_to_offload(left, 0, 1000 * kGB, kGB), left);
}

TEST(Offload, half_of_its_share_is_kept_back_at_first) {
    EXPECT_EQ(chunks_to_offload(16, 0, kGB, kGB), 4u);
    EXPECT_EQ(chunks_to_offload(16, 0, kGB, 3 * kGB), 2u);
    EXPECT_EQ(chunks_to_offload(4, 0, kGB, kGB), 2u);
}

TEST(Offload, a_slow_hca_gets_nothing_of_a_short_message) {
    EXPECT_EQ(chunks_to_offload(16, 0, kGB, 31 * kGB), 0u);
    EXPECT_EQ(chunks_to_offload(32, 0, kGB, 31 * kGB), 1u);
}

TEST(Offload, what_is_under_way_counts) {
    EXPECT_EQ(chunks_to_offload(12, 4, kGB, kGB), 0u);
    EXPECT_EQ(chunks_to_offload(12, 3, kGB, kGB), 1u);
    EXPECT_LE(chunks_to_offload(100'000, 0, kGB, kGB), kMaxOffloaded);
}

// Simulates a message of `chunks` chunks. Before each chunk that the CPUs copy, the HCA gets the chunks that
// chunks_to_offload() returns, which it copies one after the other. Rates in chunks/s.
struct Race {
    std::uint32_t by_hca = 0;
    double end_s = 0;
};
Race race(std::uint32_t chunks, double hca, double cpu) {
    Race result;
    std::uint32_t left = chunks, under_way = 0;
    double cpu_free = 0, hca_free = 0;
    std::vector<double> ends;
    while (left > 0) {
        under_way = static_cast<std::uint32_t>(
            std::count_if(ends.begin(), ends.end(), [&](double end) { return end > cpu_free; }));
        for (std::uint32_t n = chunks_to_offload(left, under_way, hca, cpu); n > 0; --n, --left, ++result.by_hca)
            ends.push_back(hca_free = std::max(hca_free, cpu_free) + 1 / hca);
        cpu_free += 1 / cpu;
        --left;
    }
    result.end_s = std::max(cpu_free, hca_free);
    return result;
}

TEST(Offload, both_end_at_about_the_same_time) {
    for (const double hca : {0.25, 0.5, 1.0, 2.0, 4.0}) {
        const Race r = race(32, hca, 1.0);
        SCOPED_TRACE(hca);
        EXPECT_NEAR(r.by_hca, 32 * hca / (hca + 1), 3);
        EXPECT_LE(r.end_s, 1.15 * 32 / (hca + 1));
    }
}

TEST(Offload, an_hca_never_makes_it_slower) {
    for (const double hca : {0.01, 0.03, 0.1, 0.3, 1.0, 3.0})
        for (std::uint32_t chunks = 1; chunks < 70; ++chunks)
            EXPECT_LE(race(chunks, hca, 1.0).end_s, chunks) << hca << ' ' << chunks;
}

TEST(Offload, chunks_are_whole_pages_and_several) {
    for (std::uint64_t bytes = 1 << 17; bytes < 1u << 30; bytes = bytes * 3 / 2 + 1) {
        EXPECT_EQ(offload_chunk_bytes(bytes) % kPageBytes, 0u);
        EXPECT_GE(offload_chunk_bytes(bytes), kSmallestOffload);
        EXPECT_LE(offload_chunk_bytes(bytes), kLargestOffload);
    }
    EXPECT_EQ(offload_chunk_bytes(1 << 20), 64u * 1024);
    EXPECT_EQ(offload_chunk_bytes(4 << 20), 128u * 1024);
}

// --- load ----------------------------------------------------------------------------

TEST(HcaLoads, each_hca_has_one_place) {
    auto loads = std::make_unique<HcaLoads>();
    const auto a = place_of(*loads, 0xa), b = place_of(*loads, 0xb);
    ASSERT_TRUE(a && b);
    EXPECT_NE(*a, *b);
    EXPECT_EQ(place_of(*loads, 0xa), a);
    EXPECT_FALSE(place_of(*loads, 0));
}

TEST(HcaLoads, more_hcas_than_places_are_not_counted) {
    auto loads = std::make_unique<HcaLoads>();
    for (std::uint64_t guid = 1; guid <= HcaLoads::kMaxHcas; ++guid) ASSERT_TRUE(place_of(*loads, guid));
    EXPECT_FALSE(place_of(*loads, 1000));
    EXPECT_TRUE(place_of(*loads, 1));
}

TEST(HcaLoads, never_below_zero) {
    auto loads = std::make_unique<HcaLoads>();
    count_completed(*loads, 3);
    EXPECT_EQ(operations_on(*loads, 3), 0u);
    count_posted(*loads, 3);
    count_posted(*loads, 3);
    count_completed(*loads, 3);
    EXPECT_EQ(operations_on(*loads, 3), 1u);
    EXPECT_EQ(operations_on(*loads, 2), 0u);
}

TEST(HcaLoads, many_processes_find_the_same_places_and_lose_no_count) {
    auto loads = std::make_unique<HcaLoads>();
    constexpr int kThreads = 4, kRounds = 20'000;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&loads] {
            for (int i = 0; i < kRounds; ++i) {
                const auto place = place_of(*loads, 1 + static_cast<std::uint64_t>(i % 5));
                count_posted(*loads, *place);
                if (i % 2 == 0) count_completed(*loads, *place);
            }
        });
    for (std::thread& thread : threads) thread.join();
    std::uint32_t sum = 0, used = 0;
    for (std::uint32_t i = 0; i < HcaLoads::kMaxHcas; ++i) {
        sum += operations_on(*loads, i);
        used += loads->all[i].guid != 0;
    }
    EXPECT_EQ(sum, static_cast<std::uint32_t>(kThreads * kRounds / 2));
    EXPECT_EQ(used, 5u);
}

}  // namespace
}  // namespace coop::rndv
