// SPDX-License-Identifier: BSD-3-Clause
//
// rail/rails.h: rails keep their numbers.
#include "coop/rail/rails.h"

#include <gtest/gtest.h>

namespace coop::rail {
namespace {

struct Plain {
    RailState state = RailState::kUp;
    int name = 0;
};

// Numbers 0 to 3: up, none, closed, up.
Rails<Plain> gapped() {
    Rails<Plain> rails;
    rails.put(std::make_unique<Plain>(Plain{RailState::kUp, 10}));
    rails.put(nullptr);
    rails.put(std::make_unique<Plain>(Plain{RailState::kClosed, 12}));
    rails.put(std::make_unique<Plain>(Plain{RailState::kUp, 13}));
    return rails;
}

std::vector<int> names_of_up(const Rails<Plain>& rails) {
    std::vector<int> names;
    for (const Plain& rail : rails) names.push_back(rail.name);
    return names;
}

TEST(Rails, number_every_path_also_one_without_a_rail) {
    const Rails<Plain> rails = gapped();
    EXPECT_EQ(rails.numbers(), 4u);
    EXPECT_EQ(rails[0].name, 10);
    EXPECT_EQ(rails.find(1), nullptr);
    EXPECT_EQ(rails[2].name, 12);
    EXPECT_EQ(rails[3].name, 13);
    EXPECT_EQ(rails.find(4), nullptr);
}

TEST(Rails, visit_the_ones_that_are_up) {
    const Rails<Plain> rails = gapped();
    EXPECT_EQ(rails.up(), 0b1001u);
    EXPECT_EQ(names_of_up(rails), (std::vector{10, 13}));
}

TEST(Rails, keep_their_numbers_when_another_fails_or_comes_up) {
    Rails<Plain> rails = gapped();
    rails.set_state(0, RailState::kFailed);
    EXPECT_EQ(names_of_up(rails), (std::vector{13}));
    EXPECT_EQ(rails[3].name, 13);
    EXPECT_EQ(rails[0].state, RailState::kFailed);
    rails.set_state(2, RailState::kUp);
    EXPECT_EQ(names_of_up(rails), (std::vector{12, 13}));
    EXPECT_EQ(rails[3].name, 13);
}

TEST(Rails, visit_a_rail_and_its_reader_but_none_that_could_not_be_made) {
    Rails<Plain> rails = gapped();
    const auto names_of = [&](sched::RailIndex number) {
        std::vector<int> names;
        rails.for_both(number, [&](const Plain& rail) { names.push_back(rail.name); });
        return names;
    };
    EXPECT_EQ(names_of(0), (std::vector{10}));
    EXPECT_EQ(names_of(1), (std::vector<int>{}));
    EXPECT_EQ(names_of(2), (std::vector{12})) << "closed";
    rails.put_reader(3, std::make_unique<Plain>(Plain{RailState::kUp, 23}));
    rails.put_reader(2, std::make_unique<Plain>(Plain{RailState::kClosed, 22}));
    EXPECT_EQ(names_of(3), (std::vector{13, 23}));
    EXPECT_EQ(names_of(2), (std::vector{12})) << "the reader did not open";
}

TEST(Rails, stay_where_they_are_as_others_are_put) {
    Rails<Plain> rails;
    Plain* const first = rails.put(std::make_unique<Plain>());
    for (std::size_t i = 1; i < sched::kMaxRails; ++i) rails.put(std::make_unique<Plain>());
    EXPECT_EQ(&rails[0], first);
    EXPECT_EQ(rails.up(), ~sched::RailMask{0});
}

}  // namespace
}  // namespace coop::rail
