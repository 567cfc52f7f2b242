// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/packet_trial.h: medium messages go the faster way, in one packet or after a handshake.
#include "coop/rndv/packet_trial.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace coop::rndv {
namespace {

constexpr std::uint32_t kPart = PacketTrial::kPart, kBlock = (PacketTrial::kParts + 1) * kPart;

class RndvPacketTrial : public testing::Test {
protected:
    // Sends messages, each of which takes as long as its way says. Returns how many went in a packet.
    std::uint32_t run(std::uint32_t messages, std::uint64_t packet_ns, std::uint64_t handshake_ns) {
        std::uint32_t packets = 0;
        for (std::uint32_t i = 0; i < messages; ++i) {
            const bool packet = trial.goes_in_packet(trial.is_timed() ? now_ns : 0);
            packets += packet;
            now_ns += packet ? packet_ns : handshake_ns;
        }
        return packets;
    }

    PacketTrial trial;
    std::uint64_t now_ns = 1;
};

TEST_F(RndvPacketTrial, begins_with_a_handshake_and_tries_both) {
    EXPECT_EQ(run(kBlock, 10, 10), 0u);
    EXPECT_EQ(run(kBlock, 10, 10), kBlock);
    EXPECT_FALSE(trial.uses_packets());
}

TEST_F(RndvPacketTrial, takes_the_faster_way) {
    run(2 * kBlock + 1, 10'000, 16'000);
    EXPECT_TRUE(trial.uses_packets());
    EXPECT_EQ(run(PacketTrial::kFirstRest - 2, 10'000, 16'000), PacketTrial::kFirstRest - 2);
}

TEST_F(RndvPacketTrial, keeps_the_way_if_the_other_is_not_clearly_faster) {
    run(2 * kBlock + 1, 15'200, 16'000);
    EXPECT_FALSE(trial.uses_packets());
    EXPECT_EQ(run(PacketTrial::kFirstRest - 2, 15'200, 16'000), 0u);
}

TEST_F(RndvPacketTrial, keeps_the_way_if_the_application_needs_most_of_the_time) {
    run(2 * kBlock + 1, 110'000, 116'000);
    EXPECT_FALSE(trial.uses_packets());
}

TEST_F(RndvPacketTrial, is_not_misled_by_pauses) {
    for (std::uint32_t block = 0; block < 2; ++block)
        for (std::uint32_t i = 0; i < kBlock; ++i) {
            const bool packet = trial.goes_in_packet(now_ns);
            now_ns += packet ? 10'000 : 16'000;
            if (block == 1 && (i == 2 * kPart || i == 4 * kPart + 3)) now_ns += 1'000'000'000;
        }
    run(1, 10'000, 16'000);
    EXPECT_TRUE(trial.uses_packets());
}

TEST_F(RndvPacketTrial, does_not_time_the_first_part) {
    for (std::uint32_t block = 0; block < 2; ++block)
        for (std::uint32_t i = 0; i < kBlock; ++i) {
            const bool packet = trial.goes_in_packet(now_ns);
            now_ns += packet ? (i < kPart ? 100 : 20'000) : 16'000;
        }
    run(1, 20'000, 16'000);
    EXPECT_FALSE(trial.uses_packets());
}

TEST_F(RndvPacketTrial, gives_up_the_other_way_after_its_first_part_if_that_is_slower_by_a_quarter) {
    run(kBlock, 13'000, 10'000);
    EXPECT_EQ(run(kBlock, 13'000, 10'000), kPart);
    EXPECT_FALSE(trial.is_timed());
    EXPECT_FALSE(trial.uses_packets());
}

TEST_F(RndvPacketTrial, does_not_give_up_the_other_way_if_it_is_a_little_slower) {
    run(kBlock, 12'000, 10'000);
    EXPECT_EQ(run(kBlock, 12'000, 10'000), kBlock);
}

TEST_F(RndvPacketTrial, asks_for_the_time_only_during_a_trial) {
    run(2 * kBlock + 1, 10, 10);
    std::uint32_t untimed = 0;
    for (; !trial.is_timed(); ++untimed) run(1, 10, 10);
    EXPECT_EQ(untimed, PacketTrial::kFirstRest - 1);
}

TEST_F(RndvPacketTrial, tries_less_and_less_often_while_nothing_changes) {
    // Of 2^20 messages, all trials but the first few follow rests of 65536.
    EXPECT_LT(run(1 << 20, 16'000, 10'000), 30 * kBlock);
}

TEST_F(RndvPacketTrial, follows_a_change) {
    run(10'000, 10'000, 16'000);
    EXPECT_TRUE(trial.uses_packets());
    run(2 * PacketTrial::kLongestRest, 16'000, 10'000);
    EXPECT_FALSE(trial.uses_packets());
    run(2 * PacketTrial::kLongestRest, 10'000, 16'000);
    EXPECT_TRUE(trial.uses_packets());
}

TEST_F(RndvPacketTrial, survives_a_clock_that_goes_back) {
    for (std::uint32_t i = 0; i < 10 * kBlock; ++i) trial.goes_in_packet(1'000'000 - i);
    EXPECT_FALSE(trial.uses_packets());
}

TEST(RndvPacketTrials, keeps_lengths_apart) {
    PacketTrials trials;
    EXPECT_EQ(&trials.of(17'000), &trials.of(32'768));
    EXPECT_NE(&trials.of(32'768), &trials.of(32'769));
    EXPECT_EQ(&trials.of(32'769), &trials.of(65'536));
}

}  // namespace
}  // namespace coop::rndv
