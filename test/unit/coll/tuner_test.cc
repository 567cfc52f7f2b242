// SPDX-License-Identifier: BSD-3-Clause
// coll/tuner.h: which ways are tried, in which order, how often, and which one wins.
#include "coop/coll/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace coop::coll {
namespace {

constexpr std::uint64_t kRingMin = 1 << 16, kShort = 4096;
constexpr Way kBelow{std::nullopt};

Situation blocks_of(std::uint32_t processes, std::uint64_t bytes) {
    return {processes, processes * bytes, Wish::kAuto, kRingMin};
}

Plan plan_of(Tuner& tuner, Operation operation, const Situation& s) {
    return tuner.plan(operation, s.bytes / s.processes, s);
}

std::vector<Way> ways_of(std::uint32_t processes, std::uint64_t bytes) {
    const Trials trials(blocks_of(processes, bytes), kShort, 3);
    return {trials.ways().begin(), trials.ways().end()};
}

// Calls `body` for all trials with some numbers of processes, lengths of blocks and calls.
template <class Body>
void for_each_trials(Body body) {
    for (std::uint32_t p = 2; p <= 70; ++p)
        for (const std::uint64_t bytes : {0, 1, 100, 1023, 1024, 3000, 4096, 4097, 1 << 16, 1 << 20})
            for (std::uint32_t calls = 1; calls <= 25; ++calls) {
                SCOPED_TRACE("p " + std::to_string(p) + " bytes " + std::to_string(bytes) + " calls " +
                             std::to_string(calls));
                Trials trials(blocks_of(p, bytes), kShort, calls);
                body(trials, p, calls);
            }
}

// Makes all trials; time(way, number of its call).
template <class Time>
void make_trials(Trials& trials, Time time) {
    std::vector<std::size_t> calls(trials.ways().size());
    while (!trials.is_complete()) {
        const Plan plan = trials.plan();
        const auto way = static_cast<std::size_t>(std::find(trials.ways().begin(), trials.ways().end(), plan.way) -
                                                  trials.ways().begin());
        trials.add(time(way, calls[way]++));
    }
    trials.decide();
}

TEST(CollTuner, the_ways_are_those_of_the_number_of_processes_and_the_length) {
    const Way doubling{Algorithm::kRecursiveDoubling}, bruck{Algorithm::kBruck}, ring{Algorithm::kRing},
        neighbour{Algorithm::kNeighbour}, lower{Algorithm::kRecursiveDoubling, 4},
        doubling_in_packets{.algorithm = Algorithm::kRecursiveDoubling, .packets = true},
        bruck_in_packets{.algorithm = Algorithm::kBruck, .packets = true},
        four_rings{.algorithm = Algorithm::kRing, .rings = 4};
    EXPECT_EQ(ways_of(8, 8), (std::vector<Way>{doubling, kBelow}));
    EXPECT_EQ(ways_of(5, 8), (std::vector<Way>{bruck, kBelow}));
    EXPECT_EQ(ways_of(8, 1 << 15), (std::vector<Way>{doubling, kBelow, ring, neighbour, doubling_in_packets}));
    EXPECT_EQ(ways_of(5, 1 << 15), (std::vector<Way>{bruck, kBelow, ring, bruck_in_packets}));
    EXPECT_EQ(ways_of(8, 1 << 18), (std::vector<Way>{doubling, kBelow, ring, neighbour, four_rings}));
    EXPECT_EQ(ways_of(8, 1024), (std::vector<Way>{doubling, kBelow, ring, neighbour, lower}));
    EXPECT_EQ(ways_of(8, 1 << 16),
              (std::vector<Way>{doubling, kBelow, ring, neighbour, doubling_in_packets, four_rings}));
    EXPECT_EQ(ways_of(5, 1 << 16), (std::vector<Way>{ring, kBelow, bruck, bruck_in_packets, four_rings}));
    EXPECT_EQ(ways_of(6, 1 << 16), (std::vector<Way>{ring, kBelow, bruck, neighbour, bruck_in_packets, four_rings}));
    EXPECT_EQ(ways_of(64, 1 << 16),
              (std::vector<Way>{ring, kBelow, doubling, neighbour, doubling_in_packets, four_rings}));
}

TEST(CollTuner, a_lower_limit_is_tried_only_if_it_makes_a_short_step_long) {
    const Way lower{Algorithm::kRecursiveDoubling, 4};
    const auto is_tried = [&](std::uint64_t bytes) {
        const auto ways = ways_of(4, bytes);
        return std::find(ways.begin(), ways.end(), lower) != ways.end();
    };
    EXPECT_FALSE(is_tried(512));  // the longer step has 1024 bytes
    EXPECT_TRUE(is_tried(513));
    EXPECT_TRUE(is_tried(4096));
    EXPECT_FALSE(is_tried(4097));  // both steps are long anyway
}

TEST(CollTuner, no_way_is_tried_twice_and_each_one_fits) {
    for_each_trials([](Trials& trials, std::uint32_t p, std::uint32_t) {
        const auto ways = trials.ways();
        for (std::size_t i = 0; i < ways.size(); ++i) {
            EXPECT_TRUE(!ways[i].algorithm || fits(*ways[i].algorithm, p));
            EXPECT_EQ(std::find(ways.begin(), ways.end(), ways[i]) - ways.begin(), static_cast<std::ptrdiff_t>(i));
        }
        EXPECT_EQ(std::count(ways.begin(), ways.end(), kBelow), 1);
    });
}

TEST(CollTuner, the_first_way_is_that_of_choose) {
    for_each_trials([](Trials& trials, std::uint32_t, std::uint32_t) {
        EXPECT_EQ(trials.plan().way, trials.ways()[0]);
        EXPECT_EQ(trials.plan().reason, Reason::kTuning);
        EXPECT_EQ(trials.plan().trials, &trials);
    });
}

TEST(CollTuner, every_way_has_the_same_number_of_calls_at_most_20_in_all) {
    for_each_trials([](Trials& trials, std::uint32_t, std::uint32_t calls) {
        const std::size_t ways = trials.ways().size();
        const std::size_t each = std::min<std::size_t>(calls, 20 / ways);
        std::vector<std::size_t> made(ways);
        make_trials(trials, [&](std::size_t way, std::size_t) { return static_cast<std::int64_t>(++made[way]); });
        EXPECT_EQ(made, std::vector<std::size_t>(ways, each));
        EXPECT_LE(trials.total(), 20u);
        EXPECT_GE(20 / ways, 2u);
    });
}

TEST(CollTuner, each_round_has_every_way_twice_and_begins_with_another_one) {
    Trials trials(blocks_of(8, 1000), kShort, 5);
    const std::size_t ways = trials.ways().size();
    std::vector<Way> first;
    for (std::size_t round = 0; round < 3; ++round) {
        const int calls = round < 2 ? 2 : 1;
        std::vector<Way> tried;
        for (std::size_t i = 0; i < ways; ++i) {
            tried.push_back(trials.plan().way);
            for (int call = 0; call < calls; ++call) {
                EXPECT_EQ(trials.plan().way, tried.back());
                trials.add(1);
            }
        }
        EXPECT_TRUE(std::is_permutation(tried.begin(), tried.end(), trials.ways().begin()));
        EXPECT_EQ(std::count(first.begin(), first.end(), tried[0]), 0);
        first.push_back(tried[0]);
    }
    EXPECT_TRUE(trials.is_complete());
}

TEST(CollTuner, any_way_can_win) {
    for_each_trials([](Trials& trials, std::uint32_t, std::uint32_t calls) {
        const std::size_t fast = calls % trials.ways().size();
        make_trials(trials, [&](std::size_t way, std::size_t) { return way == fast ? 50 : 100; });
        const Plan plan = trials.plan();
        EXPECT_EQ(plan.way, trials.ways()[fast]);
        EXPECT_EQ(plan.reason == Reason::kMeasured, fast != 0);
        EXPECT_NE(plan.reason, Reason::kTuning);
        EXPECT_EQ(plan.trials, nullptr);
    });
}

TEST(CollTuner, the_shorter_half_of_the_calls_counts) {
    const auto winner = [](std::vector<std::int64_t> times_of_others) {
        Trials trials(blocks_of(8, 8), kShort, 5);
        make_trials(trials, [&](std::size_t way, std::size_t call) { return way == 0 ? 100 : times_of_others[call]; });
        EXPECT_EQ(trials.time_of(0), 100);
        return trials.plan().way;
    };
    EXPECT_EQ(winner({100000, 60, 90, 90, 100000}), kBelow);  // mean 80
    EXPECT_EQ(winner({100000, 60, 90, 100000, 100000}), Way{Algorithm::kRecursiveDoubling});
    EXPECT_EQ(winner({150, 110, 20, 150, 150}), kBelow);  // mean 93
    EXPECT_EQ(winner({150, 120, 50, 150, 150}), Way{Algorithm::kRecursiveDoubling});
}

TEST(CollTuner, the_choice_of_choose_stays_unless_another_way_is_clearly_faster) {
    const auto winner = [](std::int64_t usual, std::int64_t other) {
        Trials trials(blocks_of(8, 8), kShort, 2);
        make_trials(trials, [&](std::size_t way, std::size_t) { return way == 0 ? usual : other; });
        return trials.plan().way;
    };
    const Way usual{Algorithm::kRecursiveDoubling};
    EXPECT_EQ(winner(1000, 1000), usual);
    EXPECT_EQ(winner(1030, 1000), usual);
    EXPECT_EQ(winner(1031, 1000), kBelow);
    EXPECT_EQ(winner(0, 0), usual);
    EXPECT_EQ(winner(1, 0), kBelow);
}

TEST(CollTuner, of_equally_fast_ways_the_first_wins) {
    Trials trials(blocks_of(8, 1 << 16), kShort, 2);
    make_trials(trials, [&](std::size_t way, std::size_t) { return way < 2 ? 100 : 50; });
    EXPECT_EQ(trials.plan().way, trials.ways()[2]);
}

TEST(CollTuner, impossible_times_do_no_harm) {
    for (const std::int64_t odd : {INT64_MIN, INT64_MAX}) {
        Trials trials(blocks_of(8, 1 << 16), kShort, 2);
        make_trials(trials, [&](std::size_t way, std::size_t) { return way == 1 ? odd : 7; });
        EXPECT_EQ(trials.plan().way, trials.ways()[odd < 0 ? 1 : 0]);
    }
}

// Processes with times of their own call in the same order; after each class is complete they take the longest times.
TEST(CollTuner, all_processes_decide_the_same_for_arbitrary_times) {
    constexpr std::size_t kProcesses = 5;
    std::mt19937_64 random(7);
    std::vector<std::unique_ptr<Tuner>> tuners;
    for (std::size_t i = 0; i < kProcesses; ++i) tuners.push_back(std::make_unique<Tuner>(4));
    std::set<Reason> seen;
    for (int call = 0; call < 5000; ++call) {
        const auto operation = static_cast<Operation>(random() % kOperations);
        const Situation s{kProcesses, kProcesses * (random() % (std::uint64_t{1} << random() % 20)), Wish::kAuto,
                          50000};
        std::vector<Plan> plans;
        for (auto& tuner : tuners) plans.push_back(plan_of(*tuner, operation, s));
        seen.insert(plans[0].reason);
        std::vector<std::int64_t> longest(kMaxTrials, 0);
        for (const Plan& plan : plans) {
            EXPECT_EQ(plan.way, plans[0].way);
            EXPECT_EQ(plan.reason, plans[0].reason);
            ASSERT_EQ(plan.trials == nullptr, plans[0].trials == nullptr);
            if (!plan.trials) continue;
            plan.trials->add(static_cast<std::int64_t>(random() % 1000000));
            if (!plan.trials->is_complete()) continue;
            for (std::size_t i = 0; i < plan.trials->total(); ++i)
                longest[i] = std::max(longest[i], plan.trials->times()[i]);
        }
        if (!plans[0].trials || !plans[0].trials->is_complete()) continue;
        for (const Plan& plan : plans) {
            std::copy_n(longest.begin(), plan.trials->total(), plan.trials->times().begin());
            plan.trials->decide();
        }
    }
    EXPECT_EQ(seen, (std::set<Reason>{Reason::kAnyNumber, Reason::kLong, Reason::kTuning, Reason::kMeasured}));
}

// How many trials begin with calls of these blocks.
int classes(std::initializer_list<std::uint64_t> blocks) {
    Tuner tuner(3);
    std::set<Trials*> all;
    for (const std::uint64_t bytes : blocks)
        all.insert(plan_of(tuner, Operation::kAllgather, blocks_of(4, bytes)).trials);
    return static_cast<int>(all.size());
}

TEST(CollTuner, a_size_class_begins_at_a_power_of_two) {
    EXPECT_EQ(classes({1, 2, 4, 8}), 4);
    EXPECT_EQ(classes({1024, 1025, 2047}), 1);
    EXPECT_EQ(classes({1023, 1024, 2047, 2048}), 3);
    EXPECT_EQ(classes({std::uint64_t{1} << 46, std::uint64_t{1} << 60}), 1);
    Tuner tuner(3);
    const auto of_sum = [&](std::uint64_t sum) {
        return plan_of(tuner, Operation::kAllgatherv, {4, sum, Wish::kAuto, kRingMin}).trials;
    };
    EXPECT_EQ(of_sum(3), of_sum(1));  // less than a byte in the mean
    EXPECT_NE(of_sum(4), of_sum(3));
}

TEST(CollTuner, operations_are_tuned_by_themselves) {
    Tuner tuner(3);
    EXPECT_NE(plan_of(tuner, Operation::kAllgather, blocks_of(4, 8)).trials,
              plan_of(tuner, Operation::kAllgatherv, blocks_of(4, 8)).trials);
}

TEST(CollTuner, nothing_is_tried_if_the_algorithm_is_asked_for_or_without_calls) {
    Tuner tuner(3), never(0);
    Situation asked = blocks_of(4, 8);
    asked.wish = Wish::kBruck;
    EXPECT_EQ(plan_of(tuner, Operation::kAllgather, asked).reason, Reason::kAsked);
    EXPECT_EQ(plan_of(tuner, Operation::kAllgather, asked).trials, nullptr);
    EXPECT_EQ(plan_of(never, Operation::kAllgather, blocks_of(4, 8)).reason, Reason::kPowerOfTwo);
    EXPECT_EQ(plan_of(never, Operation::kAllgather, blocks_of(4, 8)).trials, nullptr);
}

TEST(CollTuner, shared_memory_is_tried_beside_the_component_below_and_the_usual_algorithm) {
    Situation situation = blocks_of(4, 4096);
    situation.shared_memory = true;
    Tuner tuner(2);
    Trials& trials = *tuner.plan(Operation::kAllgather, 4096, situation).trials;
    const std::vector<Way> ways(trials.ways().begin(), trials.ways().end());
    EXPECT_EQ(ways,
              (std::vector<Way>{{.shared_memory = true}, kBelow, {Algorithm::kRecursiveDoubling}, {Algorithm::kRing}}));
    EXPECT_EQ(trials.winner().reason, Reason::kSharedMemory);
    situation.one_node = true;
    EXPECT_EQ(tuner.plan(Operation::kAllgather, 2048, situation).trials->ways().size(), 3u);
    situation.wish = Wish::kNode;
    EXPECT_EQ(tuner.plan(Operation::kAllgather, 8, situation).reason, Reason::kAsked);
    EXPECT_EQ(tuner.plan(Operation::kAllgather, 8, situation).trials, nullptr);
}

TEST(CollTuner, a_call_that_cannot_be_measured_takes_what_is_known) {
    Tuner tuner(2);
    const auto plan = [&](std::uint64_t bytes) {
        return tuner.plan_without_trial(Operation::kAllgather, bytes, blocks_of(4, bytes));
    };
    EXPECT_EQ(plan(8).way, Way{Algorithm::kRecursiveDoubling});
    Trials& trials = *plan_of(tuner, Operation::kAllgather, blocks_of(4, 8)).trials;
    EXPECT_EQ(plan(8).way, Way{Algorithm::kRecursiveDoubling});
    EXPECT_EQ(plan(8).trials, nullptr);
    make_trials(trials, [&](std::size_t way, std::size_t) { return way == 1 ? 5 : 10; });
    EXPECT_EQ(plan(8).way, Way{Algorithm::kRecursiveDoubling}) << "the component below has no algorithm to offer";
    EXPECT_EQ(plan(8).reason, Reason::kPowerOfTwo);
    Trials& longer = *plan_of(tuner, Operation::kAllgather, blocks_of(4, 4096)).trials;
    make_trials(longer,
                [&](std::size_t way, std::size_t) { return longer.ways()[way] == Way{Algorithm::kRing} ? 5 : 10; });
    EXPECT_EQ(plan(4096).way, Way{Algorithm::kRing});
    EXPECT_EQ(plan(4096).reason, Reason::kMeasured);
    EXPECT_EQ(plan(4096).trials, nullptr);
    EXPECT_EQ(plan(16).way, Way{Algorithm::kRecursiveDoubling});
}

}  // namespace
}  // namespace coop::coll
