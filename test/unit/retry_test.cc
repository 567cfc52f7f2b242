// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/retry.h"

#include <gtest/gtest.h>

namespace coop::node {
namespace {

TEST(Site05Retry, the_first_attempt_is_due_at_once) { EXPECT_TRUE(Retry().is_due(0)); }

TEST(Site05Retry, pauses_double_from_one_failure_to_the_next) {
    Retry retry;
    std::uint64_t now = 5'000'000'000, pause = Retry::kFirstPauseNs;
    for (int i = 0; i < 5; ++i, pause *= 2) {
        retry.failed(now);
        EXPECT_FALSE(retry.is_due(now));
        EXPECT_FALSE(retry.is_due(now + pause - 1));
        EXPECT_TRUE(retry.is_due(now += pause));
    }
}

TEST(Site05Retry, it_never_gives_up) {
    Retry retry;
    for (int i = 0; i < 100; ++i) retry.failed(7);
    EXPECT_FALSE(retry.is_due(7 + Retry::kLongestPauseNs - 1));
    EXPECT_TRUE(retry.is_due(7 + Retry::kLongestPauseNs));
}

}  // namespace
}  // namespace coop::node
