// SPDX-License-Identifier: BSD-3-Clause
// rma/pscw.h: posts and completes in any order, with and without waiting.
#include "coop/rma/pscw.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <vector>

namespace coop::rma {
namespace {

using Ranks = std::vector<std::uint32_t>;

// What a process does that starts an epoch on the group.
bool take_posts(Pscw& pscw, const Ranks& group) {
    for (const std::uint32_t rank : group)
        if (!pscw.has_post(rank)) return false;
    for (const std::uint32_t rank : group) pscw.take_post(rank);
    return true;
}

TEST(RmaPscw, a_post_is_of_its_peer) {
    Pscw pscw;
    pscw.on_post(5);
    pscw.on_post(2);
    EXPECT_TRUE(pscw.has_post(2));
    EXPECT_TRUE(pscw.has_post(5));
    EXPECT_FALSE(pscw.has_post(9));
    pscw.on_post(9);
    for (const std::uint32_t rank : {2u, 5u, 9u}) {
        EXPECT_TRUE(pscw.has_post(rank));
        pscw.take_post(rank);
        EXPECT_FALSE(pscw.has_post(rank));
    }
    EXPECT_EQ(pscw.peers(), 0u);
}

TEST(RmaPscw, posts_of_other_peers_stay) {
    Pscw pscw;
    pscw.on_post(1);
    pscw.on_post(2);
    EXPECT_TRUE(take_posts(pscw, Ranks{2}));
    EXPECT_TRUE(pscw.has_post(1));
    EXPECT_FALSE(pscw.has_post(2));
}

TEST(RmaPscw, a_second_post_counts_for_the_next_epoch) {
    Pscw pscw;
    pscw.on_post(3);
    pscw.on_post(3);
    EXPECT_TRUE(take_posts(pscw, Ranks{3}));
    EXPECT_TRUE(pscw.has_post(3));
    EXPECT_TRUE(take_posts(pscw, Ranks{3}));
    EXPECT_FALSE(pscw.has_post(3));
}

TEST(RmaPscw, a_post_taken_one_by_one_is_gone) {
    Pscw pscw;
    pscw.on_post(3);
    pscw.on_post(4);
    pscw.take_post(3);
    EXPECT_FALSE(pscw.has_post(3));
    EXPECT_FALSE(take_posts(pscw, Ranks{3, 4}));
    EXPECT_TRUE(pscw.has_post(4));
}

TEST(RmaPscw, a_post_taken_before_it_arrives_does_not_open_the_next_epoch) {
    Pscw pscw;
    pscw.take_post(7);  // start with MPI_MODE_NOCHECK
    pscw.take_post(7);  // and again
    EXPECT_FALSE(pscw.has_post(7));
    pscw.on_post(7);
    EXPECT_FALSE(pscw.has_post(7));
    pscw.on_post(7);
    EXPECT_FALSE(take_posts(pscw, Ranks{7}));
    EXPECT_EQ(pscw.peers(), 0u);
    pscw.on_post(7);
    EXPECT_TRUE(take_posts(pscw, Ranks{7}));
}

TEST(RmaPscw, completes_are_independent_of_posts) {
    Pscw pscw;
    pscw.on_post(1);
    EXPECT_FALSE(pscw.all_complete(Ranks{1}));
    pscw.on_complete(1);
    pscw.take_post(1);
    EXPECT_EQ(pscw.peers(), 1u);
    EXPECT_TRUE(pscw.all_complete(Ranks{1}));
    EXPECT_FALSE(pscw.has_post(1));
    pscw.take_completes(Ranks{1});
    EXPECT_FALSE(pscw.all_complete(Ranks{1}));
    EXPECT_EQ(pscw.peers(), 0u);
}

TEST(RmaPscw, asking_changes_nothing) {
    Pscw pscw;
    pscw.on_complete(1);
    EXPECT_FALSE(pscw.all_complete(Ranks{1, 2}));
    EXPECT_TRUE(pscw.all_complete(Ranks{1}));
    EXPECT_TRUE(pscw.all_complete(Ranks{1}));
    EXPECT_FALSE(pscw.has_post(2));
    EXPECT_EQ(pscw.peers(), 1u);
}

TEST(RmaPscw, an_empty_group_waits_for_nobody) {
    Pscw pscw;
    EXPECT_TRUE(take_posts(pscw, {}));
    EXPECT_TRUE(pscw.all_complete({}));
    pscw.take_completes({});
    EXPECT_EQ(pscw.peers(), 0u);
}

// Every process posts to all others and accesses all others, epoch after epoch, while packets of one pair stay in order
// and others overtake. A process may be one epoch ahead of another, so its packets come early.
class World {
public:
    explicit World(std::uint32_t seed) : random_(seed) {}

    bool run(std::uint32_t epochs) {
        for (std::uint32_t idle = 0; idle < 10'000; ++idle) {
            const std::uint32_t rank = random_() % kProcesses;
            if (random_() % 2 ? deliver(rank) : advance(rank, epochs)) idle = 0;
            if (all_ended(epochs)) return true;
        }
        return false;
    }
    std::size_t peers() const {
        std::size_t sum = 0;
        for (const Process& process : processes_) sum += process.pscw.peers();
        return sum;
    }

private:
    static constexpr std::uint32_t kProcesses = 5;
    enum class Packet : std::uint8_t { kPost, kComplete };
    struct Process {
        Pscw pscw;
        std::uint32_t epoch = 0;  // ended exposures and accesses
        bool posted = false, completed = false;
        std::array<std::deque<Packet>, kProcesses> from{};
    };

    static Ranks others(std::uint32_t rank) {
        Ranks all;
        for (std::uint32_t i = 0; i < kProcesses; ++i)
            if (i != rank) all.push_back(i);
        return all;
    }
    void send(std::uint32_t rank, Packet packet) {
        for (const std::uint32_t other : others(rank)) processes_[other].from[rank].push_back(packet);
    }
    bool deliver(std::uint32_t rank) {
        const std::uint32_t source = random_() % kProcesses;
        auto& packets = processes_[rank].from[source];
        if (packets.empty()) return false;
        if (packets.front() == Packet::kPost) processes_[rank].pscw.on_post(source);
        else processes_[rank].pscw.on_complete(source);
        packets.pop_front();
        return true;
    }
    // The next call of the process, if it can end now: post, start with complete, wait.
    bool advance(std::uint32_t rank, std::uint32_t epochs) {
        Process& process = processes_[rank];
        if (process.epoch == epochs) return false;
        if (!process.posted) {
            send(rank, Packet::kPost);
            process.posted = true;
            return true;
        }
        if (!process.completed) {
            if (!take_posts(process.pscw, others(rank))) return false;
            // All are exposed, and none has ended an epoch that this process has not completed.
            for (const std::uint32_t other : others(rank)) EXPECT_EQ(processes_[other].epoch, process.epoch);
            for (const std::uint32_t other : others(rank)) EXPECT_TRUE(processes_[other].posted);
            send(rank, Packet::kComplete);
            process.completed = true;
            return true;
        }
        if (!process.pscw.all_complete(others(rank))) return false;
        for (const std::uint32_t other : others(rank))
            EXPECT_TRUE(processes_[other].epoch > process.epoch || processes_[other].completed);
        process.pscw.take_completes(others(rank));
        ++process.epoch;
        process.posted = process.completed = false;
        return true;
    }
    bool all_ended(std::uint32_t epochs) const {
        for (const Process& process : processes_)
            if (process.epoch < epochs) return false;
        return true;
    }

    std::mt19937 random_;
    std::array<Process, kProcesses> processes_;
};

TEST(RmaPscw, no_epoch_begins_before_the_posts_or_ends_before_the_completes) {
    for (std::uint32_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
        World world(seed);
        EXPECT_TRUE(world.run(100)) << "stands still with seed " << seed;
        EXPECT_EQ(world.peers(), 0u);
    }
}

}  // namespace
}  // namespace coop::rma
