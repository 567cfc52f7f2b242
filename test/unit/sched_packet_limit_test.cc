// SPDX-License-Identifier: BSD-3-Clause
//
// sched/packet_limit.h: the longest message that goes in one packet.
#include "coop/sched/packet_limit.h"

#include <gtest/gtest.h>

namespace coop::sched {
namespace {

constexpr std::uint64_t kMost = 16 * 1024 + 128, kMegabyte = 1'000'000;

TEST(SchedPacketLimit, one_rail_has_no_stripes) {
    for (const std::uint64_t rate : {std::uint64_t{0}, 10 * kMegabyte, 25'000 * kMegabyte})
        EXPECT_EQ(packet_limit(kMost, 1, rate), kMost) << rate;
}

TEST(SchedPacketLimit, stripes_save_more_than_the_handshake_costs_on_slow_links) {
    EXPECT_EQ(packet_limit(kMost, 2, 250 * kMegabyte), kLeastPacket);
    EXPECT_EQ(packet_limit(kMost, 4, 250 * kMegabyte), kLeastPacket);
    EXPECT_EQ(packet_limit(kMost, 2, 1000 * kMegabyte), kMost);
    EXPECT_EQ(packet_limit(kMost, 2, 12'000 * kMegabyte), kMost);
}

TEST(SchedPacketLimit, more_rails_save_more) {
    EXPECT_EQ(packet_limit(kMost, 2, 1000 * kMegabyte), kMost) << "saves 8 us";
    EXPECT_EQ(packet_limit(kMost, 4, 1000 * kMegabyte), kLeastPacket) << "saves 12 us";
}

TEST(SchedPacketLimit, an_unknown_rate_changes_nothing) { EXPECT_EQ(packet_limit(kMost, 2, 0), kMost); }

TEST(SchedPacketLimit, short_packets_stay_as_they_are) { EXPECT_EQ(packet_limit(4096, 2, 250 * kMegabyte), 4096u); }

}  // namespace
}  // namespace coop::sched
