// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/timers.h"

#include <gtest/gtest.h>

#include <vector>

namespace coop::path {
namespace {

struct Machine {
    std::optional<std::uint64_t> listed;
    int looks = 0;
};

class Site24Timers : public ::testing::Test {
protected:
    void set(Machine& machine, std::optional<std::uint64_t> next) { timers.set(machine, machine.listed, next); }
    Timers<Machine> timers;
};

TEST_F(Site24Timers, only_machines_that_are_due_are_looked_at) {
    std::vector<Machine> machines(10'000);
    for (std::size_t i = 1; i < machines.size(); ++i) set(machines[i], 1'000'000 + i);
    for (std::uint64_t now = 0; now < 1000; now += 10) {
        set(machines[0], now);
        while (Machine* due = timers.due(now)) {
            ++due->looks;
            set(*due, std::nullopt);
        }
    }
    EXPECT_EQ(machines[0].looks, 100);
    for (std::size_t i = 1; i < machines.size(); ++i) EXPECT_EQ(machines[i].looks, 0);
    EXPECT_EQ(timers.size(), machines.size() - 1);
}

TEST_F(Site24Timers, the_earliest_is_due_first) {
    Machine a, b;
    set(a, 20);
    set(b, 10);
    EXPECT_EQ(timers.first(), 10u);
    EXPECT_TRUE(timers.is_first(b));
    EXPECT_EQ(timers.due(9), nullptr);
    EXPECT_EQ(timers.due(25), &b);
    set(b, 30);
    EXPECT_EQ(timers.due(25), &a);
}

TEST_F(Site24Timers, a_machine_without_a_next_moment_is_never_due) {
    Machine a;
    set(a, 10);
    set(a, std::nullopt);
    EXPECT_EQ(timers.first(), std::nullopt);
    EXPECT_EQ(timers.due(UINT64_MAX), nullptr);
}

}  // namespace
}  // namespace coop::path
