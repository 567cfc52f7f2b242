// SPDX-License-Identifier: BSD-3-Clause
// rma/sync_counters.h: the signals of several rails and origins in every order, and wrong ones.
#include "coop/rma/sync_counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace coop::rma {
namespace {

Signal signal(std::uint32_t epoch, std::uint32_t place, std::uint32_t signals, End end = End::kComplete,
              bool touched = false) {
    return {epoch, end, touched, static_cast<std::uint8_t>(place), static_cast<std::uint8_t>(signals)};
}

// A counter, and the epochs that it has reported.
struct Target {
    SyncCounter counter;
    std::vector<Signal> ended{};

    std::string take(const Signal& arrived) {
        const char* const why = counter.on_signal(arrived, [&](const Signal& each) { ended.push_back(each); });
        return why ? why : "";
    }
};

TEST(RmaSyncCounters, an_epoch_of_one_signal_is_over_when_it_comes) {
    Target target;
    for (std::uint32_t epoch = 0; epoch < 10; ++epoch) {
        EXPECT_EQ(target.counter.over(), epoch);
        EXPECT_EQ(target.take(signal(epoch, 0, 1)), "");
        ASSERT_EQ(target.ended.size(), epoch + 1);
        EXPECT_EQ(target.ended.back().epoch, epoch);
    }
}

TEST(RmaSyncCounters, the_end_of_each_epoch_is_told_as_its_signals_say) {
    Target target;
    EXPECT_EQ(target.take(signal(0, 1, 2, End::kFence, true)), "");
    EXPECT_EQ(target.take(signal(0, 0, 2, End::kFence, true)), "");
    EXPECT_EQ(target.take(signal(1, 0, 1, End::kComplete)), "");
    EXPECT_EQ(target.take(signal(2, 0, 1, End::kFence)), "");
    ASSERT_EQ(target.ended.size(), 3u);
    EXPECT_EQ(target.ended[0].end, End::kFence);
    EXPECT_EQ(target.ended[0].touched, 1);
    EXPECT_EQ(target.ended[1].end, End::kComplete);
    EXPECT_EQ(target.ended[2].end, End::kFence);
    EXPECT_EQ(target.ended[2].touched, 0);
}

// What arrives in one order, of some origins.
struct Arrival {
    std::size_t origin;
    Signal signal;
};

// Epochs are over exactly when all signals of them and of the earlier ones have come, and in their order.
void expect_counted(std::size_t origins, const std::vector<Arrival>& order, std::span<const std::uint32_t> signals) {
    std::vector<Target> targets(origins);
    std::vector<std::vector<std::uint32_t>> missing(origins, {signals.begin(), signals.end()});
    for (const auto& [origin, arrived] : order) {
        ASSERT_EQ(targets[origin].take(arrived), "");
        --missing[origin][arrived.epoch];
        for (std::size_t i = 0; i < origins; ++i) {
            const auto first_open = std::ranges::find_if(missing[i], [](std::uint32_t left) { return left > 0; });
            const auto over = static_cast<std::size_t>(first_open - missing[i].begin());
            ASSERT_EQ(targets[i].counter.over(), over);
            ASSERT_EQ(targets[i].ended.size(), over);
        }
    }
    for (const Target& target : targets)
        for (std::size_t i = 0; i < target.ended.size(); ++i) ASSERT_EQ(target.ended[i].epoch, i);
}

// All orders of the signals of two consecutive epochs of each origin, over `rails` rails.
void expect_every_order(std::size_t origins, std::uint32_t rails) {
    std::vector<Arrival> all;
    for (std::size_t origin = 0; origin < origins; ++origin)
        for (std::uint32_t epoch = 0; epoch < 2; ++epoch)
            for (std::uint32_t place = 0; place < rails; ++place) all.push_back({origin, signal(epoch, place, rails)});
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::uint32_t signals[] = {rails, rails};
    std::size_t orders = 0;
    do {
        std::vector<Arrival> arrivals;
        for (const std::size_t i : order) arrivals.push_back(all[i]);
        expect_counted(origins, arrivals, signals);
        if (testing::Test::HasFatalFailure()) return;
        ++orders;
    } while (std::ranges::next_permutation(order).found);
    std::size_t expected = 1;
    for (std::size_t i = 2; i <= all.size(); ++i) expected *= i;
    EXPECT_EQ(orders, expected);
}

TEST(RmaSyncCounters, one_origin_over_one_to_four_rails_in_every_order) {
    for (std::uint32_t rails = 1; rails <= 4; ++rails) expect_every_order(1, rails);
}
TEST(RmaSyncCounters, two_origins_over_one_and_two_rails_in_every_order) {
    for (std::uint32_t rails = 1; rails <= 2; ++rails) expect_every_order(2, rails);
}
TEST(RmaSyncCounters, three_origins_over_one_rail_in_every_order) { expect_every_order(3, 1); }

TEST(RmaSyncCounters, many_origins_rails_and_epochs_in_random_orders) {
    std::mt19937 random(11);
    for (int round = 0; round < 300; ++round) {
        const std::size_t origins = 1 + random() % 5;
        std::vector<std::uint32_t> signals(SyncCounter::kMostEpochs);
        for (std::uint32_t& each : signals) each = 1 + random() % SyncCounter::kMostSignals;
        std::vector<Arrival> order;
        for (std::size_t origin = 0; origin < origins; ++origin)
            for (std::uint32_t epoch = 0; epoch < signals.size(); ++epoch)
                for (std::uint32_t place = 0; place < signals[epoch]; ++place)
                    order.push_back({origin, signal(epoch, place, signals[epoch])});
        std::ranges::shuffle(order, random);
        expect_counted(origins, order, signals);
        if (HasFatalFailure()) return;
    }
}

// The numbers of epochs wrap around after 2^32. Many pass in a sliding order.
TEST(RmaSyncCounters, a_long_sequence_with_two_epochs_under_way) {
    Target target;
    std::mt19937 random(12);
    std::vector<Signal> under_way;
    std::uint32_t next = 0;
    for (int step = 0; step < 20'000; ++step) {
        if (next - target.counter.over() < 2)
            for (std::uint32_t place = 0, rails = 1 + random() % 3; place < rails; ++place)
                under_way.push_back(signal(next, place, rails));
        if (next - target.counter.over() < 2) ++next;
        const std::size_t which = random() % under_way.size();
        ASSERT_EQ(target.take(under_way[which]), "");
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        if (under_way.empty()) {
            ASSERT_EQ(target.counter.over(), next);
        }
    }
    EXPECT_GT(target.counter.over(), 5000u);
}

TEST(RmaSyncCounters, a_signal_that_comes_twice_is_refused_and_changes_nothing) {
    for (std::uint32_t twice = 0; twice < 3; ++twice) {
        Target target;
        for (std::uint32_t place = 0; place < 3; ++place) {
            if (place > twice) {
                ASSERT_EQ(target.take(signal(0, twice, 3)), "signal that came twice");
            }
            EXPECT_EQ(target.counter.over(), 0u);
            ASSERT_EQ(target.take(signal(0, place, 3)), "");
        }
        EXPECT_EQ(target.counter.over(), 1u);
        EXPECT_EQ(target.take(signal(0, twice, 3)), "signal of an epoch that is over");
        EXPECT_EQ(target.ended.size(), 1u);
    }
}

TEST(RmaSyncCounters, an_early_signal_that_comes_twice_is_refused) {
    Target target;
    EXPECT_EQ(target.take(signal(1, 1, 2)), "");
    EXPECT_EQ(target.take(signal(1, 1, 2)), "signal that came twice");
    EXPECT_EQ(target.take(signal(0, 0, 1)), "");
    EXPECT_EQ(target.take(signal(1, 1, 2)), "signal that came twice");
    EXPECT_EQ(target.take(signal(1, 0, 2)), "");
    EXPECT_EQ(target.counter.over(), 2u);
}

TEST(RmaSyncCounters, signals_that_contradict_earlier_ones_are_refused) {
    Target target;
    EXPECT_EQ(target.take(signal(0, 0, 3, End::kFence, true)), "");
    const std::string differ = "signals of an epoch that differ";
    EXPECT_EQ(target.take(signal(0, 1, 2, End::kFence, true)), differ);
    EXPECT_EQ(target.take(signal(0, 1, 4, End::kFence, true)), differ);
    EXPECT_EQ(target.take(signal(0, 1, 3, End::kComplete, true)), differ);
    EXPECT_EQ(target.take(signal(0, 1, 3, End::kFence, false)), differ);
    EXPECT_EQ(target.take(signal(0, 1, 3, End::kFence, true)), "");
    EXPECT_EQ(target.take(signal(0, 2, 3, End::kFence, true)), "");
    EXPECT_EQ(target.counter.over(), 1u);
}

TEST(RmaSyncCounters, absurd_numbers_are_refused) {
    Target target;
    for (const std::uint32_t signals : {0u, SyncCounter::kMostSignals + 1, 255u})
        EXPECT_EQ(target.take(signal(0, 0, signals)), "number of signals");
    for (const std::uint32_t place : {2u, 3u, 63u, 64u, 255u})
        EXPECT_EQ(target.take(signal(0, place, 2)), "place of a signal");
    for (const int end : {0, 3, 255}) {
        Signal wrong = signal(0, 0, 1);
        wrong.end = static_cast<End>(end);
        EXPECT_EQ(target.take(wrong), "kind of a signal");
    }
    Signal wrong = signal(0, 0, 1);
    wrong.touched = 2;
    EXPECT_EQ(target.take(wrong), "kind of a signal");
    for (const std::uint32_t epoch : {SyncCounter::kMostEpochs, 1000u, 0x7fffffffu})
        EXPECT_EQ(target.take(signal(epoch, 0, 1)), "signal of a distant epoch");
    for (const std::uint32_t epoch : {0x80000000u, ~0u})
        EXPECT_EQ(target.take(signal(epoch, 0, 1)), "signal of an epoch that is over");
    EXPECT_EQ(target.counter.over(), 0u);
    EXPECT_EQ(target.take(signal(0, 0, 1)), "");
}

TEST(RmaSyncCounters, an_epoch_may_have_as_many_signals_as_there_are_bits) {
    Target target;
    for (std::uint32_t place = SyncCounter::kMostSignals; place-- > 0;) {
        EXPECT_EQ(target.counter.over(), 0u);
        ASSERT_EQ(target.take(signal(0, place, SyncCounter::kMostSignals)), "");
    }
    EXPECT_EQ(target.counter.over(), 1u);
}

// --- fences ---

TEST(RmaFences, a_fence_is_passed_when_all_others_have_ended_it) {
    Fences fences(3);
    for (std::uint32_t number = 0; number < 5; ++number) {
        for (int other = 0; other < 3; ++other) {
            EXPECT_FALSE(fences.all_have_ended());
            EXPECT_EQ(fences.on_end(number, number == 2 && other == 1), nullptr);
        }
        EXPECT_TRUE(fences.all_have_ended());
        EXPECT_EQ(fences.others_have_touched(), number == 2);
        fences.pass();
    }
}

TEST(RmaFences, an_end_of_the_next_fence_waits_for_it) {
    Fences fences(2);
    EXPECT_EQ(fences.on_end(0, false), nullptr);
    EXPECT_EQ(fences.on_end(1, true), nullptr);
    EXPECT_FALSE(fences.all_have_ended());
    EXPECT_EQ(fences.on_end(0, false), nullptr);
    EXPECT_TRUE(fences.all_have_ended());
    EXPECT_FALSE(fences.others_have_touched());
    fences.pass();
    EXPECT_FALSE(fences.all_have_ended());
    EXPECT_EQ(fences.on_end(1, false), nullptr);
    EXPECT_TRUE(fences.all_have_ended());
    EXPECT_TRUE(fences.others_have_touched());
}

TEST(RmaFences, fences_that_cannot_be_are_refused) {
    Fences fences(1);
    EXPECT_STREQ(fences.on_end(2, false), "fence");
    EXPECT_STREQ(fences.on_end(~0u, false), "fence");
    EXPECT_EQ(fences.on_end(0, false), nullptr);
    fences.pass();
    EXPECT_STREQ(fences.on_end(0, false), "fence");
}

TEST(RmaFences, of_one_process_ends_at_once) {
    Fences fences(0);
    EXPECT_TRUE(fences.all_have_ended());
    EXPECT_FALSE(fences.others_have_touched());
}

}  // namespace
}  // namespace coop::rma
