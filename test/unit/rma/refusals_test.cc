// SPDX-License-Identifier: BSD-3-Clause
// rma/refusals.h: which memory is not asked for, and for how long.
#include "coop/rma/refusals.h"

#include <gtest/gtest.h>

namespace coop::rma {
namespace {

TEST(RmaRefusals, NothingIsSkippedAtFirst) {
    Refusals refusals;
    EXPECT_FALSE(refusals.skips(0, UINT64_MAX));
}

TEST(RmaRefusals, TheSameMemoryAndMoreAroundItIsSkipped) {
    Refusals refusals;
    refusals.add(1000, 100);
    EXPECT_TRUE(refusals.skips(1000, 100));
    EXPECT_TRUE(refusals.skips(900, 200));
    EXPECT_TRUE(refusals.skips(0, UINT64_MAX));
    EXPECT_FALSE(refusals.skips(1000, 99));
    EXPECT_FALSE(refusals.skips(1001, 100));
    EXPECT_FALSE(refusals.skips(900, 199));
    EXPECT_FALSE(refusals.skips(1200, 100));
}

TEST(RmaRefusals, ItIsAskedForAgainAfterSomeCalls) {
    Refusals refusals;
    refusals.add(64, 64);
    for (std::uint32_t i = 0; i < Refusals::kSkips; ++i) ASSERT_TRUE(refusals.skips(64, 64));
    EXPECT_FALSE(refusals.skips(64, 64));
    EXPECT_FALSE(refusals.skips(64, 64));
    refusals.add(64, 64);
    EXPECT_TRUE(refusals.skips(64, 64));
}

TEST(RmaRefusals, TheOldestIsForgottenFirst) {
    Refusals refusals;
    for (std::uint64_t i = 0; i <= Refusals::kMost; ++i) refusals.add(i * 1000, 10);
    EXPECT_FALSE(refusals.skips(0, 10));
    for (std::uint64_t i = 1; i <= Refusals::kMost; ++i) EXPECT_TRUE(refusals.skips(i * 1000, 10));
}

}  // namespace
}  // namespace coop::rma
