// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/pace.h: fragments on slow links, RDMA on fast ones, whatever the ports say.
#include "coop/rndv/pace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>

namespace coop::rndv {
namespace {

using Way = Pace::Way;

constexpr std::uint64_t kMB = 1'000'000, kCopies = 16'000 * kMB;  // bytes per second
constexpr std::uint64_t kBytes = 16 * 1024;

// Messages one after the other over a link that moves them at a rate that depends on their way, some of them under way.
class RndvPace : public testing::Test {
protected:
    // Returns how many went in fragments.
    std::uint32_t run(std::uint32_t messages, const std::function<double(Way)>& mb_per_s, std::size_t under_way = 16) {
        std::deque<Way> sent;
        std::uint32_t fragments = 0;
        for (std::uint32_t begun = 0; begun < messages || !sent.empty();) {
            for (; begun < messages && sent.size() < under_way; ++begun) {
                sent.push_back(pace.way());
                fragments += pace.way() == Way::kFragments;
                pace.on_begun(now_ns);
            }
            now_ns += static_cast<std::uint64_t>(1e3 * kBytes / mb_per_s(sent.front()));
            pace.on_ended(sent.front(), kBytes, now_ns);
            sent.pop_front();
        }
        now_ns += 1'000'000'000;  // the application does something else
        return fragments;
    }
    static std::function<double(Way)> always(double rdma, double fragments) {
        return [=](Way way) { return way == Way::kRdma ? rdma : fragments; };
    }

    Pace pace;
    std::uint64_t now_ns = 1;
};

constexpr std::uint32_t kUntilTrial = Pace::kFirstWait * Pace::kInBlock, kLong = 100 * Pace::kInBlock;

TEST_F(RndvPace, uses_fragments_before_anything_is_known) {
    EXPECT_FALSE(pace.is_started());
    EXPECT_EQ(pace.way(), Way::kFragments);
}

TEST_F(RndvPace, starts_as_the_ports_say) {
    for (const auto& [link, expected] : {std::pair{0 * kMB, Way::kFragments}, std::pair{250 * kMB, Way::kFragments},
                                         std::pair{kCopies / 16 - 1, Way::kFragments},
                                         std::pair{kCopies / 16, Way::kRdma}, std::pair{12'000 * kMB, Way::kRdma}}) {
        Pace fresh;
        fresh.start(link, kCopies);
        EXPECT_TRUE(fresh.is_started());
        EXPECT_EQ(fresh.way(), expected) << link;
    }
}

TEST_F(RndvPace, without_a_rate_of_copies_a_known_link_is_fast) {
    pace.start(250 * kMB, 0);
    EXPECT_EQ(pace.way(), Way::kRdma);
    EXPECT_EQ(run(kLong, always(200, 240)), 0u) << "nothing can contradict that";
}

TEST_F(RndvPace, keeps_fragments_on_a_slow_link) {
    pace.start(250 * kMB, kCopies);
    EXPECT_EQ(run(kLong, always(195, 243)), kLong);
}

TEST_F(RndvPace, keeps_rdma_on_a_fast_link) {
    pace.start(12'000 * kMB, kCopies);
    EXPECT_EQ(run(kLong, always(3000, 1300)), 0u);
}

TEST_F(RndvPace, finds_that_a_link_of_unknown_speed_is_fast) {
    pace.start(0, kCopies);
    const std::uint32_t fragments = run(kLong, always(3000, 1300));
    EXPECT_GE(fragments, kUntilTrial);
    EXPECT_LE(fragments, kUntilTrial + 2 * Pace::kInBlock);
    EXPECT_EQ(pace.way(), Way::kRdma);
}

TEST_F(RndvPace, finds_that_a_link_is_slower_than_its_ports_say) {
    pace.start(12'000 * kMB, kCopies);
    const std::uint32_t fragments = run(kLong, always(195, 243));
    EXPECT_GE(fragments, kLong - kUntilTrial - 2 * Pace::kInBlock);
    EXPECT_EQ(pace.way(), Way::kFragments);
}

TEST_F(RndvPace, follows_a_link_that_changes) {
    pace.start(12'000 * kMB, kCopies);
    run(kLong, always(3000, 1300));
    EXPECT_EQ(pace.way(), Way::kRdma);
    run(kLong, always(195, 243));
    EXPECT_EQ(pace.way(), Way::kFragments);
    run(kLong, always(3000, 1300));
    EXPECT_EQ(pace.way(), Way::kRdma);
}

// It is slow for another reason, so the other way does not help and is tried less and less often.
TEST_F(RndvPace, an_application_that_waits_for_other_things_changes_nothing) {
    pace.start(12'000 * kMB, kCopies);
    const std::uint32_t fragments = run(1000 * Pace::kInBlock, always(100, 101));
    EXPECT_GE(fragments, 4 * Pace::kInBlock);
    EXPECT_LE(fragments, 20 * Pace::kInBlock);
    EXPECT_EQ(pace.way(), Way::kRdma);
}

TEST_F(RndvPace, a_small_difference_does_not_matter) {
    pace.start(12'000 * kMB, kCopies);
    run(kLong, always(220, 240));
    EXPECT_EQ(pace.way(), Way::kRdma);
}

TEST_F(RndvPace, a_short_delay_starts_no_trial) {
    pace.start(12'000 * kMB, kCopies);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(run((Pace::kFirstWait - 1) * Pace::kInBlock, always(100, 100)), 0u);
        EXPECT_EQ(run(Pace::kInBlock, always(3000, 1300)), 0u);
    }
}

TEST_F(RndvPace, time_without_a_message_does_not_count) {
    pace.start(12'000 * kMB, kCopies);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(run(8, always(3000, 1300), 8), 0u) << "a second passes after each call";
}

// Those that went the old way end after the trial has begun.
TEST_F(RndvPace, many_messages_under_way_do_not_spoil_a_trial) {
    pace.start(0, kCopies);
    run(kLong, always(3000, 1300), 500);
    EXPECT_EQ(pace.way(), Way::kRdma);
}

TEST_F(RndvPace, time_that_stands_still_is_no_pace) {
    pace.start(12'000 * kMB, kCopies);
    for (std::uint32_t i = 0; i < kLong; ++i) {
        pace.on_begun(5);
        pace.on_ended(pace.way(), kBytes, 5);
    }
    EXPECT_EQ(pace.way(), Way::kRdma);
    EXPECT_FALSE(pace.is_trying());
}

}  // namespace
}  // namespace coop::rndv
