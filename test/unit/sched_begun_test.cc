// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/begun.h"

#include <gtest/gtest.h>

#include <array>

namespace coop::sched {
namespace {

TEST(Site25Begun, operations_that_begin_later_are_not_waited_for) {
    BegunOperations operations;
    std::array<Begun, 100> all;
    operations.begin(all[0], 1);
    operations.begin(all[1], 2);
    const std::uint64_t moment = 2;
    for (std::uint64_t i = 2; i < all.size(); ++i) operations.begin(all[i], i + 1);
    EXPECT_FALSE(operations.all_over(moment));
    operations.end(all[1]);
    operations.end(all[7]);
    EXPECT_FALSE(operations.all_over(moment)) << "the first goes on";
    operations.end(all[0]);
    EXPECT_TRUE(operations.all_over(moment)) << "although others have begun since";
    EXPECT_FALSE(operations.all_over(3));
}

TEST(Site25Begun, with_nothing_under_way_all_is_over) {
    BegunOperations operations;
    EXPECT_TRUE(operations.all_over(UINT64_MAX));
    Begun one;
    operations.begin(one, 1);
    EXPECT_TRUE(operations.all_over(0));
    operations.end(one);
    EXPECT_TRUE(operations.all_over(1));
}

}  // namespace
}  // namespace coop::sched
