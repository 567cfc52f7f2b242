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
    SchedTrials() { trials.set_limits(kLimitNs, 0); }

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
    trials.set_limits(0, 0);
    EXPECT_EQ(run(1000, 1, 1, 2 * kBytes), 0u);
}

TEST_F(SchedTrials, never_goes_whole_where_a_single_rail_cannot_be_faster) {
    constexpr std::uint64_t kBytesPerS = 4'000'000'000;  // 16.4 us for the whole operation
    trials.set_limits(kLimitNs, kBytesPerS);
    EXPECT_EQ(run(1000, 16'000, 12'000), 0u);
    EXPECT_GT(run(1000, 17'000, 12'000, kBytes / 2), 0u) << "8.2 us for a whole one";
}

TEST_F(SchedTrials, tells_whether_the_links_decide) {
    EXPECT_TRUE(trials.links_matter(kBytes)) << "nothing is known yet";
    run(2 * StripeTrials::kFirst, 20'000, 21'000);
    EXPECT_FALSE(trials.links_matter(kBytes));
    EXPECT_TRUE(trials.links_matter(2 * kBytes)) << "longer ones may need the links";
    run(2 * StripeTrials::kFirst, 30'000, 60'000, 2 * kBytes);
    EXPECT_TRUE(trials.links_matter(2 * kBytes));
    EXPECT_FALSE(trials.links_matter(kBytes));
}

TEST_F(SchedTrials, tells_once_that_the_links_have_stopped_to_decide) {
    EXPECT_FALSE(trials.links_stop_mattering(kBytes)) << "nothing is known yet";
    run(2 * StripeTrials::kFirst, 20'000, 21'000);
    EXPECT_TRUE(trials.links_stop_mattering(kBytes));
    EXPECT_FALSE(trials.links_stop_mattering(kBytes)) << "told already";
    run(300, 20'000, 40'000);
    EXPECT_FALSE(trials.links_stop_mattering(kBytes)) << "they decide again";
    run(300, 20'000, 21'000);
    EXPECT_TRUE(trials.links_stop_mattering(kBytes));
    EXPECT_FALSE(trials.links_stop_mattering(~std::uint64_t{0}));
}

TEST_F(SchedTrials, tells_whether_the_links_decide_for_some_length) {
    EXPECT_FALSE(trials.links_matter_somewhere()) << "nothing is known yet";
    run(2 * StripeTrials::kFirst, 20'000, 21'000);
    EXPECT_FALSE(trials.links_matter_somewhere());
    run(StripeTrials::kFirst, 30'000, 60'000, 2 * kBytes);
    EXPECT_FALSE(trials.links_matter_somewhere()) << "the longer ones have not gone whole yet";
    run(StripeTrials::kFirst, 30'000, 60'000, 2 * kBytes);
    EXPECT_TRUE(trials.links_matter_somewhere());
}

TEST_F(SchedTrials, the_links_decide_where_stripes_take_longer_than_the_limit) {
    run(StripeTrials::kFirst, kLimitNs + 1, 1);
    EXPECT_TRUE(trials.links_matter_somewhere());
}

TEST_F(SchedTrials, saturated_links_decide) {
    trials.set_limits(kLimitNs, 4'000'000'000);
    run(2 * StripeTrials::kFirst, 9'000, 16'500);
    EXPECT_TRUE(trials.links_matter(kBytes)) << "faster than a single rail can be";
}

TEST_F(SchedTrials, a_small_difference_does_not_matter) {
    run(2 * StripeTrials::kFirst, 20'000, 19'000);
    EXPECT_EQ(run(StripeTrials::kEvery, 20'000, 19'000), 1u);
    EXPECT_EQ(trials.known(kBytes), Way::kWhole) << "beside others, stripes would be in vain";
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
    run(300, 25'000, 45'000);
    EXPECT_EQ(trials.known(kBytes), Way::kStriped);
}

TEST_F(SchedTrials, lengths_are_judged_by_themselves) {
    run(2 * StripeTrials::kFirst, 20'000, 12'000);
    EXPECT_EQ(trials.known(kBytes + kBytes - 1), Way::kWhole);
    EXPECT_EQ(trials.known(2 * kBytes), Way::kStriped);
    EXPECT_EQ(trials.known(kBytes - 1), Way::kStriped);
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{4095}, std::uint64_t{8} << 20, ~std::uint64_t{0}})
        EXPECT_EQ(run(100, 2, 1, bytes), 0u) << bytes;
}

}  // namespace
}  // namespace coop::sched
