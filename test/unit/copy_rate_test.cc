// SPDX-License-Identifier: BSD-3-Clause
//
// node/copy_rate.h: a plausible speed.
#include "coop/node/copy_rate.h"

#include <gtest/gtest.h>

namespace coop::node {
namespace {

TEST(CopyRate, is_more_than_a_disk_and_less_than_a_register) {
    const std::uint64_t rate = measure_copy_rate();
    EXPECT_GT(rate, std::uint64_t{10'000'000});
    EXPECT_LT(rate, std::uint64_t{10'000'000'000'000});
}

}  // namespace
}  // namespace coop::node
