// SPDX-License-Identifier: BSD-3-Clause
#include "sim/workload.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/placement.h"
#include "sim/policies.h"

namespace coop::sim {
namespace {

constexpr Pattern kAll[] = {Pattern::kRing, Pattern::kAlltoall, Pattern::kAllgather, Pattern::kAllreduce,
                            Pattern::kShifts};

TEST(SimWorkload, each_send_has_a_receive) {
    for (const Pattern pattern : kAll)
        for (const std::uint32_t ranks : {2u, 3u, 24u, 32u, 48u, 64u}) {
            const Workload work{pattern, ranks, 65536, 1, 1, 3};
            for (std::uint32_t step = 0; step < steps_of(work); ++step)
                for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                    const Step mine = step_of(work, rank, 0, step);
                    if (mine.to == kNone) continue;
                    EXPECT_NE(mine.to, rank);
                    EXPECT_EQ(step_of(work, mine.to, 0, step).from, rank)
                        << name(pattern) << " " << ranks << " ranks, step " << step;
                }
        }
}

Workload allgather(coll::Algorithm algorithm, std::uint32_t ranks) {
    Workload work{Pattern::kAllgather, ranks, 1024, 1, 1, 1};
    work.algorithm = algorithm;
    return work;
}

TEST(SimWorkload, allgather_sends_the_blocks_of_the_step) {
    const Step third = step_of(allgather(coll::Algorithm::kRecursiveDoubling, 16), 5, 0, 2);
    EXPECT_EQ(third.to, 1u);
    EXPECT_EQ(third.from, 1u);
    EXPECT_EQ(third.bytes, 4u * 1024);
    EXPECT_EQ(step_of(allgather(coll::Algorithm::kBruck, 6), 1, 0, 2).bytes, 2u * 1024);  // the rest
}

TEST(SimWorkload, every_allgather_sends_all_blocks_but_one) {
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i) {
        const Workload work = allgather(static_cast<coll::Algorithm>(i), 32);
        std::uint64_t sent = 0;
        for (std::uint32_t step = 0; step < steps_of(work); ++step) {
            const Step mine = step_of(work, 7, 0, step);
            sent += mine.bytes;
            EXPECT_EQ(step_of(work, mine.to, 0, step).from, 7u) << coll::text(work.algorithm) << ", step " << step;
        }
        EXPECT_EQ(sent, 31u * 1024) << coll::text(work.algorithm);
    }
}

TEST(SimWorkload, algorithms_of_allgather_have_the_names_of_the_core) {
    EXPECT_EQ(algorithm_named("bruck"), coll::Algorithm::kBruck);
    EXPECT_EQ(algorithm_named("neighbour"), coll::Algorithm::kNeighbour);
    EXPECT_FALSE(algorithm_named("binomial"));
}

TEST(SimWorkload, alltoall_and_the_ring_reach_everybody_once) {
    for (const Pattern pattern : {Pattern::kAlltoall, Pattern::kRing})
        for (const std::uint32_t ranks : {24u, 48u, 64u}) {
            const Workload work{pattern, ranks, 65536, 1, 1, 1};
            std::set<std::uint32_t> reached;
            for (std::uint32_t step = 0; step < steps_of(work); ++step) reached.insert(step_of(work, 5, 0, step).to);
            EXPECT_EQ(reached.size(), ranks - 1);
        }
}

TEST(SimWorkload, recursive_doubling_sums_up_everything) {
    for (const std::uint32_t ranks : {3u, 6u, 24u, 48u}) {
        const Workload work{Pattern::kAllreduce, ranks, 1 << 20, 1, 1, 1};
        std::vector<std::set<std::uint32_t>> has(ranks);  // by rank: the ranks whose vectors are in its sum
        for (std::uint32_t rank = 0; rank < ranks; ++rank) has[rank] = {rank};
        for (std::uint32_t step = 0; step < steps_of(work); ++step) {
            const auto before = has;
            for (std::uint32_t rank = 0; rank < ranks; ++rank)
                if (const std::uint32_t to = step_of(work, rank, 0, step).to; to != kNone)
                    has[to].insert(before[rank].begin(), before[rank].end());
        }
        for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(has[rank].size(), ranks) << rank;
    }
}

TEST(SimWorkload, reduce_scatter_and_allgather_each_move_all_blocks_but_one) {
    const Workload work{Pattern::kAllreduce, 8, 1 << 20, 1, 1, 1};
    std::uint64_t sent = 0, reduced = 0;
    for (std::uint32_t step = 0; step < steps_of(work); ++step) {
        sent += step_of(work, 3, 0, step).bytes;
        reduced += step_of(work, 3, 0, step).reduced_bytes;
    }
    EXPECT_EQ(sent, 14u * (1 << 17));
    EXPECT_EQ(reduced, 7u * (1 << 17));
}

TEST(SimPlacement, random_mapping_takes_different_hosts_and_is_repeatable) {
    std::vector<NodeIndex> free(64);
    for (NodeIndex i = 0; i < 64; ++i) free[i] = i;
    const auto hosts = std::get<0>(place(Mapping::kRandom, 32, free, 5));
    EXPECT_EQ(std::set<NodeIndex>(hosts.begin(), hosts.end()).size(), 32u);
    EXPECT_EQ(hosts, std::get<0>(place(Mapping::kRandom, 32, free, 5)));
    EXPECT_NE(hosts, std::get<0>(place(Mapping::kRandom, 32, free, 6)));
    EXPECT_EQ(std::get<0>(place(Mapping::kSequential, 3, free, 5)), (std::vector<NodeIndex>{0, 1, 2}));
    EXPECT_EQ(std::get<0>(place(Mapping::kSequential, 5, free, 5, 2)), (std::vector<NodeIndex>{0, 0, 1, 1, 2}));
    EXPECT_EQ(std::get<1>(place(Mapping::kRandom, 65, free, 5)),
              "65 ranks do not fit: 64 hosts are free, and each takes one");
}

TEST(SimPolicies, a_word_is_a_setting_of_the_product) {
    const Scheduling bss = std::get<Scheduling>(parse_scheduling("bss:12,3"));
    EXPECT_EQ(bss.paths, 12u);
    EXPECT_EQ(bss.config.large_policy, sched::Policy::kBss);
    EXPECT_EQ(bss.config.bss_batch, 3u);
    EXPECT_EQ(std::get<Scheduling>(parse_scheduling("hsam:4")).config.large_policy, sched::Policy::kAdaptiveStriping);
    EXPECT_EQ(std::get<Scheduling>(parse_scheduling("original")).config.large_policy, sched::Policy::kBinding);
    EXPECT_EQ(std::get<Scheduling>(parse_scheduling("weighted_striping:2")).config.large_policy,
              sched::Policy::kWeightedStriping);
}

TEST(SimPolicies, an_unknown_or_impossible_policy_is_named) {
    const auto flaw = [](const char* word) { return std::get<std::string>(parse_scheduling(word)); };
    EXPECT_NE(flaw("fastest").find("there is no policy 'fastest' (original, hsam:N"), std::string::npos);
    EXPECT_NE(flaw("bss:4,5").find("n_batch: 5 is more than n_paths, which is 4"), std::string::npos);
    EXPECT_NE(flaw("hsam:33").find("must be in 1..32"), std::string::npos);
    EXPECT_NE(flaw("hsam:4,2").find("only bss has a second number"), std::string::npos);
    EXPECT_NE(flaw("hsam:x").find("must be in 1..32"), std::string::npos);
}

}  // namespace
}  // namespace coop::sim
