// SPDX-License-Identifier: BSD-3-Clause
//
// wire/headers.h: the layout of the headers.
#include "wire_packets.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace coop::wire {
namespace {

using namespace test;

TEST(Layout, is_the_one_that_the_wire_version_names) {
    EXPECT_EQ(kVersion, 10u) << "a new layout needs a new version, and new numbers here";
    EXPECT_EQ(sizeof(MatchHeader), 16u);
    EXPECT_EQ(offsetof(MatchHeader, kind), 0u);
    EXPECT_EQ(offsetof(MatchHeader, flags), 1u);
    EXPECT_EQ(offsetof(MatchHeader, context), 2u);
    EXPECT_EQ(offsetof(MatchHeader, source), 4u);
    EXPECT_EQ(offsetof(MatchHeader, tag), 8u);
    EXPECT_EQ(offsetof(MatchHeader, sequence), 12u);
    EXPECT_EQ(offsetof(MatchHeader, check), 14u);

    EXPECT_EQ(sizeof(RtsHeader), 48u);
    EXPECT_EQ(offsetof(RtsHeader, match), 0u);
    EXPECT_EQ(offsetof(RtsHeader, length), 16u);
    EXPECT_EQ(offsetof(RtsHeader, send_id), 24u);
    EXPECT_EQ(offsetof(RtsHeader, address), 32u);
    EXPECT_EQ(offsetof(RtsHeader, inline_bytes), 40u);
    EXPECT_EQ(offsetof(RtsHeader, handle_bytes), 44u);
    EXPECT_EQ(offsetof(RtsHeader, row), 45u);
    EXPECT_EQ(offsetof(RtsHeader, reason), 46u);
    EXPECT_EQ(offsetof(RtsHeader, call), 47u);

    EXPECT_EQ(sizeof(SlotWords), 16u);
    EXPECT_EQ(offsetof(SlotWords, slot), 0u);
    EXPECT_EQ(offsetof(SlotWords, generation), 4u);
    EXPECT_EQ(offsetof(SlotWords, chunk), 8u);
    EXPECT_EQ(offsetof(SlotWords, split), 12u);
    EXPECT_EQ(offsetof(SlotWords, reserved), 13u);

    EXPECT_EQ(sizeof(Piece), 16u);
    EXPECT_EQ(offsetof(Piece, address), 0u);
    EXPECT_EQ(offsetof(Piece, bytes), 8u);

    EXPECT_EQ(sizeof(CtsHeader), 72u);
    EXPECT_EQ(offsetof(CtsHeader, kind), 0u);
    EXPECT_EQ(offsetof(CtsHeader, row), 1u);
    EXPECT_EQ(offsetof(CtsHeader, check), 2u);
    EXPECT_EQ(offsetof(CtsHeader, sender), 4u);
    EXPECT_EQ(offsetof(CtsHeader, send_id), 8u);
    EXPECT_EQ(offsetof(CtsHeader, recv_id), 16u);
    EXPECT_EQ(offsetof(CtsHeader, offset), 24u);
    EXPECT_EQ(offsetof(CtsHeader, length), 32u);
    EXPECT_EQ(offsetof(CtsHeader, address), 40u);
    EXPECT_EQ(offsetof(CtsHeader, copy), 48u);
    EXPECT_EQ(offsetof(CtsHeader, handle_bytes), 64u);
    EXPECT_EQ(offsetof(CtsHeader, reason), 65u);
    EXPECT_EQ(offsetof(CtsHeader, pieces), 66u);
    EXPECT_EQ(offsetof(CtsHeader, counted), 67u);
    EXPECT_EQ(offsetof(CtsHeader, offloads), 68u);
    EXPECT_EQ(offsetof(CtsHeader, sees), 69u);
    EXPECT_EQ(offsetof(CtsHeader, reserved), 70u);

    EXPECT_EQ(sizeof(FragHeader), 24u);
    EXPECT_EQ(offsetof(FragHeader, check), 2u);
    EXPECT_EQ(offsetof(FragHeader, sender), 4u);
    EXPECT_EQ(offsetof(FragHeader, recv_id), 8u);
    EXPECT_EQ(offsetof(FragHeader, offset), 16u);

    EXPECT_EQ(sizeof(FinHeader), 24u);
    EXPECT_EQ(offsetof(FinHeader, what), 1u);
    EXPECT_EQ(offsetof(FinHeader, check), 2u);
    EXPECT_EQ(offsetof(FinHeader, sender), 4u);
    EXPECT_EQ(offsetof(FinHeader, id), 8u);
    EXPECT_EQ(offsetof(FinHeader, bytes), 16u);
}

TEST(Layout, has_no_padding) {
    EXPECT_TRUE(std::has_unique_object_representations_v<MatchHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<RtsHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<CtsHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<SlotWords>);
    EXPECT_TRUE(std::has_unique_object_representations_v<Piece>);
    EXPECT_TRUE(std::has_unique_object_representations_v<FragHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<FinHeader>);
}

TEST(Layout, the_largest_header_is_the_largest) {
    for (const Format& format : kFormats) EXPECT_LE(format.header_bytes, kLargestHeader);
}

TEST(Layout, counts_of_a_byte_reach_their_limits) {
    EXPECT_LE(kMaxHandleBytes, UINT8_MAX);
    EXPECT_LE(kMaxPieces, UINT8_MAX);
}

TEST(Layout, flags_and_wish_share_a_byte_and_no_bit) {
    unsigned seen = 0;
    for (unsigned flag : {kFlagContiguous, kFlagGet, kFlagSync, kFlagShare, kFlagPieces, kFlagWish}) {
        EXPECT_EQ(seen & flag, 0u) << flag;
        seen |= flag;
    }
    EXPECT_EQ(seen, 0xffu);
    EXPECT_EQ(rndv::kWishes, 8u) << "three bits, none of whose values is wrong";
    for (unsigned wish = 0; wish < rndv::kWishes; ++wish) {
        const std::uint8_t bits = wish_flag(static_cast<std::uint8_t>(wish));
        EXPECT_EQ(bits & ~kFlagWish, 0);
        EXPECT_EQ(wish_of(bits), wish);
        EXPECT_EQ(wish_of(static_cast<std::uint8_t>(bits | ~kFlagWish)), wish) << "whatever the flags are";
    }
}

TEST(Layout, words_of_a_slot_and_pieces_lie_after_the_handle) {
    Bytes rtr = good_rtr();
    const SlotWords words = slot_words(in<RtsHeader>(rtr));
    EXPECT_EQ(std::memcmp(&words, rtr.data() + sizeof(RtsHeader) + kHandle, sizeof words), 0);
    EXPECT_EQ(words.slot, rndv::kSlots - 1);
    EXPECT_EQ(words.generation, 0xfffffffe);
    EXPECT_EQ(words.chunk, 131072u);
    EXPECT_EQ(words.split, static_cast<std::uint8_t>(rndv::Split::kSenderLeads));

    Bytes pieces = good_rts_in_pieces();
    EXPECT_EQ(reinterpret_cast<const unsigned char*>(pieces_of(in<RtsHeader>(pieces))),
              pieces.data() + sizeof(RtsHeader) + kHandle);
}

TEST(Layout, every_kind_has_a_name) {
    for (std::size_t i = 1; i <= kKinds; ++i) EXPECT_STRNE(name(static_cast<Kind>(i)), "unknown");
    EXPECT_STREQ(name(static_cast<Kind>(0)), "unknown");
    EXPECT_STREQ(name(static_cast<Kind>(kKinds + 1)), "unknown");
}

}  // namespace
}  // namespace coop::wire
