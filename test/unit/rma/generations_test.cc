// SPDX-License-Identifier: BSD-3-Clause
// rma/generations.h: flushes against a model that knows each operation by name.
#include "coop/rma/generations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace coop::rma {
namespace {

using Number = Generations::Number;

TEST(RmaGenerations, a_flush_without_operations_is_over) {
    Generations generations;
    EXPECT_TRUE(generations.idle());
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(generations.is_over(generations.close()));
    const Number first = generations.close();
    const Number operation = generations.begin();
    EXPECT_TRUE(generations.is_over(first));
    EXPECT_FALSE(generations.idle());
    EXPECT_TRUE(generations.end(operation));
    EXPECT_TRUE(generations.idle());
}

TEST(RmaGenerations, a_flush_does_not_wait_for_later_operations) {
    Generations generations;
    const Number before = generations.begin();
    const Number flush = generations.close();
    const Number after = generations.begin();
    EXPECT_FALSE(generations.is_over(flush));
    EXPECT_TRUE(generations.end(before));
    EXPECT_TRUE(generations.is_over(flush));
    EXPECT_FALSE(generations.idle());
    EXPECT_TRUE(generations.end(after));
    EXPECT_TRUE(generations.is_over(flush));
    EXPECT_TRUE(generations.idle());
}

TEST(RmaGenerations, a_flush_waits_for_the_generations_before_it) {
    Generations generations;
    const Number a = generations.begin(), first = generations.close();
    const Number b = generations.begin(), second = generations.close();
    const Number third = generations.close();  // nothing has begun since the second one
    EXPECT_TRUE(generations.end(b));
    EXPECT_FALSE(generations.is_over(first));
    EXPECT_FALSE(generations.is_over(second));
    EXPECT_FALSE(generations.is_over(third));
    EXPECT_TRUE(generations.end(a));
    EXPECT_TRUE(generations.is_over(first));
    EXPECT_TRUE(generations.is_over(second));
    EXPECT_TRUE(generations.is_over(third));
}

TEST(RmaGenerations, flushes_without_new_operations_cost_nothing) {
    Generations generations;
    const Number first = generations.begin();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(generations.is_over(generations.close()));
    const Number second = generations.begin(), flush = generations.close(), later = generations.begin();
    EXPECT_TRUE(generations.end(first));
    EXPECT_FALSE(generations.is_over(flush));
    EXPECT_TRUE(generations.end(second));
    EXPECT_TRUE(generations.is_over(flush));
    EXPECT_TRUE(generations.end(later));
}

TEST(RmaGenerations, a_stray_end_is_reported_and_changes_nothing) {
    Generations generations;
    for (const Number number : {0u, 1u, 2u, 7u, 8u, 9u, 1u << 31, ~0u}) EXPECT_FALSE(generations.end(number)) << number;
    const Number operation = generations.begin();
    for (std::uint32_t distance = 1; distance <= 40; ++distance) {
        EXPECT_FALSE(generations.end(operation - distance)) << distance;
        EXPECT_FALSE(generations.end(operation + distance)) << distance;
    }
    const Number flush = generations.close();
    const Number other = generations.begin();
    EXPECT_FALSE(generations.is_over(flush));
    EXPECT_TRUE(generations.end(operation));
    EXPECT_FALSE(generations.end(operation));
    EXPECT_TRUE(generations.end(other));
    EXPECT_FALSE(generations.end(other));
    EXPECT_TRUE(generations.idle());
}

// Other threads begin operations all the time, and each of them ends only after the next has begun. A flush must not
// wait for them, however many flushes are under way.
TEST(RmaGenerations, a_flush_ends_though_others_never_pause) {
    Generations generations;
    std::vector<Number> before, flushes;
    for (int i = 0; i < 30; ++i) {
        before.push_back(generations.begin());
        flushes.push_back(generations.close());
    }
    Number running = generations.begin();
    const auto go_on = [&] {
        const Number next = generations.begin();
        EXPECT_TRUE(generations.end(running));
        running = next;
    };
    for (const Number operation : before) {
        go_on();
        EXPECT_FALSE(generations.is_over(flushes.back()));
        EXPECT_TRUE(generations.end(operation));
    }
    for (int i = 0; i < 10; ++i) go_on();
    for (const Number flush : flushes) EXPECT_TRUE(generations.is_over(flush));
    EXPECT_FALSE(generations.idle());
}

// Each operation by name. A flush must not be over before all operations that began before it have ended. It must be
// over then, if fewer than `kSure` flushes were under way, and in any case when nothing is.
class Model {
public:
    Model(std::uint32_t seed, Number first) : random_(seed), generations_(first) {}

    void step(std::uint32_t eagerness) {
        const std::uint32_t what = random_() % 16;
        if (what < eagerness) begin();
        else if (what < 12) end();
        else if (what < 15) close();
        else stray();
        check();
    }
    void drain() {
        while (!running_.empty() && !testing::Test::HasFailure()) {
            end();
            check();
        }
        EXPECT_TRUE(generations_.idle());
        for (const Flush& flush : flushes_) EXPECT_TRUE(generations_.is_over(flush.generation));
        flushes_.clear();
    }
    std::size_t most_flushes() const { return most_flushes_; }

private:
    struct Operation {
        std::uint64_t name;
        Number generation;
    };
    struct Flush {
        std::uint64_t before;  // it waits for the names below
        Number generation;
        bool was_over = false;
    };

    void begin() { running_.push_back({names_++, generations_.begin()}); }
    void end() {
        if (running_.empty()) return;
        const auto which = static_cast<std::ptrdiff_t>(
            random_() % 2 == 0 ? 0 : random_() % running_.size());  // mostly in order
        EXPECT_TRUE(generations_.end((running_.begin() + which)->generation));
        running_.erase(running_.begin() + which);
    }
    void close() {
        const bool idle = running_.empty();
        flushes_.push_back({names_, generations_.close()});
        EXPECT_EQ(generations_.is_over(flushes_.back().generation), idle);
    }
    void stray() {
        std::set<Number> known;
        for (const Operation& operation : running_) known.insert(operation.generation);
        const Number number = (running_.empty() ? 0 : running_.back().generation) + random_() % 24 - 12;
        if (!known.count(number)) {
            EXPECT_FALSE(generations_.end(number));
        }
    }
    void check() {
        EXPECT_EQ(generations_.idle(), running_.empty());
        std::uint64_t oldest = names_;
        for (const Operation& operation : running_) oldest = std::min(oldest, operation.name);
        std::size_t open = 0;
        for (Flush& flush : flushes_) {
            const bool over = generations_.is_over(flush.generation);
            if (oldest < flush.before) {
                EXPECT_FALSE(over);
                ++open;
            }
            if (flush.was_over) {
                EXPECT_TRUE(over);
            }
            // Only where many flushes are under way may one wait for more than it must.
            if (oldest >= flush.before && most_at_once_ < kSure) {
                EXPECT_TRUE(over);
            }
            flush.was_over = over;
        }
        most_at_once_ = open == 0 && running_.empty() ? 0 : std::max(most_at_once_, open);
        most_flushes_ = std::max(most_flushes_, open);
        if (flushes_.size() > 100) std::erase_if(flushes_, [](const Flush& flush) { return flush.was_over; });
    }

    static constexpr std::size_t kSure = 8;
    std::mt19937 random_;
    Generations generations_;
    std::uint64_t names_ = 0;
    std::vector<Operation> running_;
    std::vector<Flush> flushes_;
    std::size_t most_at_once_ = 0, most_flushes_ = 0;
};

TEST(RmaGenerations, random_programs_with_few_and_with_many_flushes) {
    std::size_t most = 0;
    for (std::uint32_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        // Some pass the largest number.
        Model model(seed, seed % 3 == 0 ? 1 : 0u - seed % 40);
        for (int part = 0; part < 6; ++part) {
            const std::uint32_t eagerness = 3 + seed % 7;
            for (int i = 0; i < 150 && !HasFailure(); ++i) model.step(eagerness);
            model.drain();
        }
        most = std::max(most, model.most_flushes());
    }
    EXPECT_GT(most, 16u);
}

}  // namespace
}  // namespace coop::rma
