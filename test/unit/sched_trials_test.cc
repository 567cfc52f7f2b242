// SPDX-License-Identifier: BSD-3-Clause
//
// sched/trials.h: when an operation that could be striped goes whole, because stripes have taken longer.
#include "coop/sched/trials.h"

#include <gtest/gtest.h>

namespace coop::sched {
namespace {

using Way = StripeTrials::Way;
constexpr std::uint64_t kBytes = 64 * 1024, kLimitNs = 32'000;

class SchedTrials : public testing::Test {
protected:
    SchedTrials() { trials.set_limit(kLimitNs); }

    // Operations one after the other, as long as these times say. Returns how many went whole.
    std::uint32_t run(std::uint32_t count, std::uint64_t striped_ns, std::uint64_t whole_ns,
                      std::uint64_t bytes = kBytes) {
        std::uint32_t whole = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const Way way = trials.choose(bytes);
            whole += way == Way::kWhole;
            trials.on_time(bytes, way, way == Way::kWhole ? whole_ns : striped_ns);
        }
        return whole;
    }

    StripeTrials trials;
};

TEST_F(SchedTrials, stripes_before_anything_has_been_measured) {
    EXPECT_EQ(trials.known(kBytes), Way::kStriped);
    EXPECT_EQ(run(StripeTrials::kFirst, 20'000, 12'000), 0u);
    EXPECT_EQ(trials.known(kBytes), Way::kStriped);
}

TEST_F(SchedTrials, goes_whole_where_stripes_take_longer_and_tries_them_again) {
    run(2 * StripeTrials::kFirst, 20'000, 12'000);
    EXPECT_EQ(trials.known(kBytes), Way::kWhole);
    EXPECT_EQ(run(StripeTrials::kEvery, 20'000, 12'000), StripeTrials::kEvery - 1);
}

TEST_F(SchedTrials, stripes_where_that_is_faster_and_tries_the_other_way_again) {
    run(2 * StripeTrials::kFirst, 17'000, 34'000);
    EXPECT_EQ(trials.known(kBytes), Way::kStriped);
    EXPECT_EQ(run(StripeTrials::kEvery, 17'000, 34'000), 1u);
}

TEST_F(SchedTrials, never_goes_whole_where_the_links_need_the_time) {
    EXPECT_EQ(run(1000, kLimitNs + 1, 1), 0u);
    trials.set_limit(0);
    EXPECT_EQ(run(1000, 1, 1, 2 * kBytes), 0u);
}

TEST_F(SchedTrials, a_small_difference_does_not_matter) {
    run(2 * StripeTrials::kFirst, 20'000, 19'000);
    EXPECT_EQ(trials.known(kBytes), Way::kStriped);
}

TEST_F(SchedTrials, an_interrupted_operation_does_not_decide) {
    run(2 * StripeTrials::kFirst, 20'000, 12'000);
    trials.on_time(kBytes, Way::kWhole, 5'000'000);
    EXPECT_EQ(trials.known(kBytes), Way::kWhole);
    trials.on_time(kBytes, Way::kStriped, 5'000'000);
    EXPECT_EQ(trials.known(kBytes), Way::kWhole) << "the time of stripes stays within the limit";
}

TEST_F(SchedTrials, follows_rails_that_become_slower) {
    run(2 * StripeTrials::kFirst, 20'000, 12'000);
    EXPECT_EQ(trials.known(kBytes), Way::kWhole);
    run(100, 25'000, 45'000);
    EXPECT_EQ(trials.known(kBytes), Way::kStriped);
}

TEST_F(SchedTrials, lengths_are_judged_by_themselves) {
    run(2 * StripeTrials::kFirst, 20'000, 12'000);
    EXPECT_EQ(trials.known(kBytes + kBytes - 1), Way::kWhole);
    EXPECT_EQ(trials.known(2 * kBytes), Way::kStriped);
    EXPECT_EQ(trials.known(kBytes - 1), Way::kStriped);
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{4095}, std::uint64_t{4} << 20, ~std::uint64_t{0}})
        EXPECT_EQ(run(100, 2, 1, bytes), 0u) << bytes;
}

}  // namespace
}  // namespace coop::sched
