// SPDX-License-Identifier: BSD-3-Clause
// rma/ready_targets.h: a target stays ready until its lock is given back or another epoch begins.
#include "coop/rma/ready_targets.h"

#include <gtest/gtest.h>

namespace coop::rma {
namespace {

TEST(RmaReadyTargets, NobodyIsReadyAtFirst) {
    const ReadyTargets ready(2);
    EXPECT_FALSE(ready.has(0));
    EXPECT_FALSE(ready.has(1));
}

TEST(RmaReadyTargets, EachTargetBecomesReadyByItself) {
    ReadyTargets ready(3);
    ready.add(1);
    EXPECT_FALSE(ready.has(0));
    EXPECT_TRUE(ready.has(1));
    EXPECT_FALSE(ready.has(2));
}

TEST(RmaReadyTargets, AnotherEpochEndsIt) {
    ReadyTargets ready(2);
    ready.add(0);
    ready.begin_epoch();
    EXPECT_FALSE(ready.has(0));
    ready.add(1);
    EXPECT_TRUE(ready.has(1));
    EXPECT_FALSE(ready.has(0));
}

TEST(RmaReadyTargets, ARemovedTargetIsNotReadyInALaterEpochEither) {
    ReadyTargets ready(2);
    ready.add(0);
    ready.add(1);
    ready.remove(0);
    EXPECT_FALSE(ready.has(0));
    EXPECT_TRUE(ready.has(1));
    ready.begin_epoch();
    EXPECT_FALSE(ready.has(0));
    ready.add(0);
    EXPECT_TRUE(ready.has(0));
}

}  // namespace
}  // namespace coop::rma
