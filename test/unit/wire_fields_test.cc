// SPDX-License-Identifier: BSD-3-Clause
//
// wire/headers.h: fields out of range, sealed by a sender with an error, and fields at their limits.
#include "wire_packets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace coop::wire {
namespace {

using namespace test;

struct Wrong {
    const char* field;
    Bytes packet;
};

template <class Header, class Change>
Wrong wrong(const char* field, Bytes packet, Change change) {
    change(in<Header>(packet));
    return {field, std::move(packet)};
}

// Like `wrong`, but with a correct check word.
template <class Header, class Change>
Wrong sealed(const char* field, Bytes packet, Change change) {
    change(in<Header>(packet));
    if constexpr (requires(Header h) { behind(h); })
        packet.resize(std::max(packet.size(), sizeof(Header) + behind(in<Header>(packet))));
    seal(in<Header>(packet));
    return {field, std::move(packet)};
}

void expect_refused(const Format& format, const std::vector<Wrong>& wrongs) {
    for (const Wrong& w : wrongs) {
        Damage damage{};
        EXPECT_FALSE(format.valid(w.packet, damage)) << w.field;
        ASSERT_NE(damage.field, nullptr) << w.field;
        EXPECT_STREQ(damage.field, w.field);
        EXPECT_EQ(damage.kind, format.kind);
        EXPECT_TRUE(damage.value < damage.min || damage.value > damage.max) << w.field;
    }
}

TEST(MatchHeaders, each_field_is_named) {
    expect_refused(kFormats[0],
                   {
                       sealed<MatchHeader>("source rank", good_match(), [](auto& h) { h.source = -1; }),
                       sealed<MatchHeader>("source rank", good_match(), [](auto& h) { h.source = INT32_MIN; }),
                       wrong<MatchHeader>("check word", good_match(), [](auto& h) { h.tag ^= 1; }),
                       wrong<MatchHeader>("check word", good_match(), [](auto& h) { h.check ^= 0x8000; }),
                   });
}

TEST(RtsHeaders, each_field_is_named) {
    expect_refused(
        kFormats[1],
        {
            sealed<RtsHeader>("source rank", good_rts(), [](auto& h) { h.match.source = -1; }),
            sealed<RtsHeader>("row", good_rts(), [](auto& h) { h.row = rndv::kRows; }),
            sealed<RtsHeader>("row", good_rts(), [](auto& h) { h.row = UINT8_MAX; }),
            sealed<RtsHeader>("reason", good_rts(), [](auto& h) { h.reason = rndv::kReasons; }),
            sealed<RtsHeader>("call", good_rts(), [](auto& h) { h.call = rndv::kSendCalls; }),
            sealed<RtsHeader>("call", good_rts(), [](auto& h) { h.call = UINT8_MAX; }),
            sealed<RtsHeader>("handle bytes", good_rts(), [](auto& h) { h.handle_bytes = kMaxHandleBytes + 1; }),
            sealed<RtsHeader>("handle bytes", good_rts(), [](auto& h) { h.handle_bytes = UINT8_MAX; }),
            sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.inline_bytes = kInline + 1; }),
            sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.inline_bytes = kInline - 1; }),
            sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.inline_bytes = UINT32_MAX; }),
            sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.length = kInline - 1; }),
            sealed<RtsHeader>("send id", good_rts(), [](auto& h) { h.send_id = 0; }),
            wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.address ^= 4096; }),
            wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.length += 1; }),
            wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.match.flags ^= wish_flag(1); }),
            wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.match.flags ^= kFlagShare; }),
            wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.call ^= 4; }),
        });
}

TEST(CtsHeaders, each_field_is_named) {
    expect_refused(
        kFormats[2],
        {
            sealed<CtsHeader>("row", good_cts(), [](auto& h) { h.row = rndv::kRows; }),
            sealed<CtsHeader>("row (of a grant)", good_cts(),
                              [](auto& h) { h.row = static_cast<std::uint8_t>(rndv::Row::kRtr); }),
            sealed<CtsHeader>("row (of a grant)", good_cts(),
                              [](auto& h) { h.row = static_cast<std::uint8_t>(rndv::Row::kBounce); }),
            sealed<CtsHeader>("reason", good_cts(), [](auto& h) { h.reason = rndv::kReasons; }),
            sealed<CtsHeader>("handle bytes", good_cts(), [](auto& h) { h.handle_bytes = kMaxHandleBytes + 1; }),
            sealed<CtsHeader>("length", good_cts(), [](auto& h) { h.length = UINT64_MAX; }),
            sealed<CtsHeader>("length", good_cts(), [](auto& h) { h.offset = UINT64_MAX; }),
            sealed<CtsHeader>("handle bytes", good_cts(), [](auto& h) { h.handle_bytes = UINT8_MAX; }),
            sealed<CtsHeader>("pieces", good_cts(), [](auto& h) { h.pieces = kMaxPieces + 1; }),
            sealed<CtsHeader>("pieces", good_cts(), [](auto& h) { h.pieces = UINT8_MAX; }),
            sealed<CtsHeader>("split", good_cts(), [](auto& h) { h.copy.split = 1; }),
            sealed<CtsHeader>("slot", good_cts(), [](auto& h) { h.copy.slot = 1; }),
            sealed<CtsHeader>("chunk bytes", good_cts(), [](auto& h) { h.copy.chunk = 1; }),
            wrong<CtsHeader>("check word", good_cts(), [](auto& h) { h.copy.generation += 1; }),
            wrong<CtsHeader>("check word", good_cts(), [](auto& h) { h.copy.reserved[2] = 1; }),
            wrong<CtsHeader>("check word", good_cts(), [](auto& h) { h.reserved[1] = 1; }),
            sealed<CtsHeader>("sees", good_cts(), [](auto& h) { h.sees = 2; }),
            sealed<CtsHeader>("counted", good_cts(), [](auto& h) { h.counted = 2; }),
            sealed<CtsHeader>("offloads", good_cts(), [](auto& h) { h.offloads = 2; }),
            wrong<CtsHeader>("check word", good_cts(), [](auto& h) { h.recv_id += 1; }),
        });
}

// A slot comes with the rows that use one, and with no other. Inside a node the sender leads an RPUT, and the receiver
// can take over: with a slot, and with no other split.
TEST(Site04CtsHeaders, an_rput_may_name_a_slot) {
    const auto rput = [](auto change) {
        return [=](auto& h) {
            h.row = static_cast<std::uint8_t>(rndv::Row::kRput);
            h.offloads = 0;
            h.copy = {5, 7, 4096, static_cast<std::uint8_t>(rndv::Split::kSenderLeads), {}};
            change(h);
        };
    };
    Damage damage{};
    const Bytes good = sealed<CtsHeader>("", good_cts(), rput([](auto&) {})).packet;
    EXPECT_TRUE(valid_cts(good.data(), good.size(), damage)) << damage.field;
    expect_refused(kFormats[2],
                   {
                       sealed<CtsHeader>("slot", good_cts(), rput([](auto& h) { h.copy.slot = rndv::kSlots; })),
                       sealed<CtsHeader>("chunk bytes", good_cts(), rput([](auto& h) { h.copy.chunk = 0; })),
                       sealed<CtsHeader>("split", good_cts(), rput([](auto& h) {
                                             h.copy.split = static_cast<std::uint8_t>(rndv::Split::kReceiverLeads);
                                         })),
                       sealed<CtsHeader>("slot", good_cts(), rput([](auto& h) { h.copy.split = 0; })),
                       sealed<CtsHeader>("offloads", good_cts(), rput([](auto& h) { h.offloads = 1; })),
                   });
}

TEST(RtsHeaders, an_offer_taken_names_its_slot_and_its_chunks) {
    expect_refused(kFormats[1],
                   {
                       sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { words_of(h).slot = rndv::kSlots; }),
                       sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { words_of(h).slot = UINT32_MAX; }),
                       sealed<RtsHeader>("chunk bytes", good_rtr(), [](auto& h) { words_of(h).chunk = 0; }),
                       sealed<RtsHeader>("split", good_rtr(), [](auto& h) { words_of(h).split = rndv::kSplits; }),
                       sealed<RtsHeader>("split", good_rtr(), [](auto& h) { words_of(h).split = UINT8_MAX; }),
                       wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { words_of(h).generation ^= 1; }),
                       wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { words_of(h).slot -= 1; }),
                       wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { words_of(h).chunk += 4096; }),
                       wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { words_of(h).split ^= 1; }),
                       wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { words_of(h).reserved[0] = 1; }),
                   });
}

TEST(RtsHeaders, words_of_a_slot_come_with_the_row_rtr_only) {
    for (rndv::Row row : {rndv::Row::kEager, rndv::Row::kSend, rndv::Row::kRput, rndv::Row::kRget, rndv::Row::kCoop})
        expect_refused(kFormats[1], {sealed<RtsHeader>("inline bytes", good_rtr(),
                                                       [&](auto& h) { h.row = static_cast<std::uint8_t>(row); })});
    Bytes without = good_rtr();
    without.resize(sizeof(RtsHeader) + kHandle);
    without.shrink_to_fit();
    expect_refused(kFormats[1], {{"handle bytes", without}});
}

TEST(RtsHeaders, words_of_a_slot_lie_in_the_first_segment) {
    const Bytes whole = good_rtr();
    for (std::size_t first = sizeof(RtsHeader); first < whole.size(); ++first) {
        Bytes head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
        head.shrink_to_fit();
        Damage damage{};
        EXPECT_FALSE(valid_rts(head.data(), head.size(), whole.size(), damage));
        EXPECT_STREQ(damage.field, "handle bytes");
        EXPECT_EQ(damage.value, whole.size());
        EXPECT_EQ(damage.max, first);
    }
}

TEST(CtsHeaders, a_grant_to_copy_together_names_its_slot_and_its_chunks) {
    expect_refused(
        kFormats[2],
        {
            sealed<CtsHeader>("slot", good_coop_cts(), [](auto& h) { h.copy.slot = rndv::kSlots; }),
            sealed<CtsHeader>("slot", good_coop_cts(), [](auto& h) { h.copy.slot = UINT32_MAX; }),
            sealed<CtsHeader>("chunk bytes", good_coop_cts(), [](auto& h) { h.copy.chunk = 0; }),
            sealed<CtsHeader>("split", good_coop_cts(), [](auto& h) { h.copy.split = rndv::kSplits; }),
            sealed<CtsHeader>("split", good_coop_cts(), [](auto& h) { h.copy.split = UINT8_MAX; }),
            wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.copy.generation ^= 0x80000000; }),
            wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.copy.slot += 1; }),
            wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.copy.chunk ^= 4096; }),
            wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.copy.split ^= 1; }),
        });
}

TEST(CtsHeaders, only_a_grant_to_copy_together_names_a_slot) {
    for (unsigned row = 0; row < rndv::kRows; ++row) {
        const rndv::Protocol& protocol = rndv::protocol(static_cast<rndv::Row>(row));
        if (protocol.row == rndv::Row::kCoop || protocol.starts_at_once || protocol.uses_bounce) continue;
        const auto with = [row](SlotWords words) {
            return [row, words](CtsHeader& h) { h.row = static_cast<std::uint8_t>(row), h.copy = words; };
        };
        expect_refused(kFormats[2], {
                                        sealed<CtsHeader>("split", good_cts(), with({0, 0, 0, 1, {}})),
                                        sealed<CtsHeader>("slot", good_cts(), with({1, 0, 0, 0, {}})),
                                        sealed<CtsHeader>("chunk bytes", good_cts(), with({0, 0, 1, 0, {}})),
                                    });
        Bytes none = sealed<CtsHeader>("", good_cts(), with({})).packet;
        Damage damage{};
        EXPECT_TRUE(valid_cts(none.data(), none.size(), damage)) << damage.field;
    }
}

// Lists of pieces must not be longer than allowed, nor than the packet.
TEST(RtsHeaders, pieces_are_whole_and_neither_none_nor_too_many) {
    const auto bytes_of_pieces = [](std::uint32_t bytes) { return [bytes](RtsHeader& h) { h.inline_bytes = bytes; }; };
    constexpr std::uint32_t kMost = kMaxPieces * sizeof(Piece);
    for (std::uint32_t bytes : {0u, 1u, 15u, 17u, 24u, kPieces * 16u - 1, kMost - 8, kMost + 1, kMost + 16})
        expect_refused(kFormats[1], {sealed<RtsHeader>("pieces", good_rts_in_pieces(), bytes_of_pieces(bytes))});
    // Not sealed: bounded before anything beyond the packet is read.
    for (std::uint32_t bytes : {kMost + 16, UINT32_MAX - 15, UINT32_MAX})
        expect_refused(kFormats[1], {wrong<RtsHeader>("pieces", good_rts_in_pieces(), bytes_of_pieces(bytes))});
    expect_refused(kFormats[1],
                   {sealed<RtsHeader>("pieces", good_rts(), [](auto& h) { h.match.flags |= kFlagPieces; })});
}

TEST(RtsHeaders, pieces_lie_in_the_first_segment) {
    const Bytes whole = good_rts_in_pieces();
    Damage damage{};
    for (std::size_t first = sizeof(RtsHeader); first < whole.size(); ++first) {
        Bytes head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
        head.shrink_to_fit();
        EXPECT_FALSE(valid_rts(head.data(), head.size(), whole.size(), damage));
        EXPECT_STREQ(damage.field, "handle bytes");
        EXPECT_EQ(damage.value, whole.size());
        EXPECT_EQ(damage.max, first);
    }
    for (std::uint32_t pieces : {kPieces + 1u, static_cast<std::uint32_t>(kMaxPieces)}) {
        Bytes bytes = whole;
        in<RtsHeader>(bytes).inline_bytes = pieces * static_cast<std::uint32_t>(sizeof(Piece));  // not sealed: as above
        EXPECT_FALSE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage));
        EXPECT_STREQ(damage.field, "handle bytes") << pieces;
    }
}

TEST(RtsHeaders, no_payload_comes_beside_pieces) {
    const Bytes whole = good_rts_in_pieces();
    Damage damage{};
    for (std::size_t payload : {1, 16, 100}) {
        EXPECT_FALSE(valid_rts(whole.data(), whole.size(), whole.size() + payload, damage)) << "in another segment";
        EXPECT_STREQ(damage.field, "inline bytes");
        EXPECT_EQ(damage.value, payload);
        Bytes longer = whole;
        longer.resize(whole.size() + payload);
        EXPECT_FALSE(valid_rts(longer.data(), longer.size(), longer.size(), damage)) << "in the same one";
        EXPECT_STREQ(damage.field, "inline bytes");
        EXPECT_EQ(damage.value, payload);
    }
    expect_refused(kFormats[1], {sealed<RtsHeader>("inline bytes", good_rts_in_pieces(),
                                                   [](auto& h) { h.inline_bytes -= sizeof(Piece); })});
}

TEST(RtsHeaders, without_the_flag_what_follows_is_payload_and_not_sealed) {
    Bytes bytes = sealed<RtsHeader>("", good_rts_in_pieces(), [](auto& h) { h.match.flags = kFlagGet; }).packet;
    bytes.back() ^= 1;
    Damage damage{};
    EXPECT_TRUE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage)) << damage.field;
    expect_refused(kFormats[1],
                   {wrong<RtsHeader>("check word", good_rts_in_pieces(), [](auto& h) { h.match.flags = kFlagGet; })});
}

TEST(CtsHeaders, pieces_lie_in_the_first_segment_and_are_not_too_many) {
    const Bytes whole = good_cts_in_pieces();
    Damage damage{};
    for (std::size_t first = sizeof(CtsHeader); first < whole.size(); ++first) {
        Bytes head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
        head.shrink_to_fit();
        EXPECT_FALSE(valid_cts(head.data(), head.size(), damage));
        EXPECT_STREQ(damage.field, "handle bytes");
        EXPECT_EQ(damage.value, whole.size());
        EXPECT_EQ(damage.max, first);
    }
    for (unsigned pieces = kPieces + 1; pieces <= UINT8_MAX; ++pieces) {
        Bytes bytes = whole;
        in<CtsHeader>(bytes).pieces = static_cast<std::uint8_t>(pieces);  // not sealed: bounded before it is read
        EXPECT_FALSE(valid_cts(bytes.data(), bytes.size(), damage));
        EXPECT_STREQ(damage.field, pieces <= kMaxPieces ? "handle bytes" : "pieces") << pieces;
    }
}

TEST(Pieces, as_many_as_are_allowed_keep_the_packet_below_a_usual_eager_limit) {
    EXPECT_LE(sizeof(RtsHeader) + kMaxHandleBytes + sizeof(SlotWords) + kMaxPieces * sizeof(Piece), 4096u);
    EXPECT_LE(sizeof(CtsHeader) + kMaxHandleBytes + kMaxPieces * sizeof(Piece), 4096u);
}

template <class Header, class Change>
bool passes(Bytes (*good)(), Change change) {
    const Bytes bytes = sealed<Header>("", good(), change).packet;
    Damage damage{};
    if constexpr (std::is_same_v<Header, RtsHeader>) return valid_rts(bytes.data(), bytes.size(), bytes.size(), damage);
    else return valid_cts(bytes.data(), bytes.size(), damage);
}

TEST(RtsHeaders, every_value_that_a_sender_may_write_passes) {
    for (unsigned flags = 0; flags <= UINT8_MAX; ++flags) {
        if (flags & kFlagPieces) continue;
        EXPECT_TRUE(passes<RtsHeader>(good_rts, [&](auto& h) { h.match.flags = static_cast<std::uint8_t>(flags); }))
            << flags;
    }
    for (unsigned call = 0; call < rndv::kSendCalls; ++call)
        EXPECT_TRUE(passes<RtsHeader>(good_rts, [&](auto& h) { h.call = static_cast<std::uint8_t>(call); })) << call;
    for (unsigned split = 0; split < rndv::kSplits; ++split)
        EXPECT_TRUE(
            passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).split = static_cast<std::uint8_t>(split); }));
    for (std::uint32_t slot = 0; slot < rndv::kSlots; ++slot)
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).slot = slot; }));
    for (std::uint32_t chunk : {1u, 4096u, UINT32_MAX})
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).chunk = chunk; }));
    for (std::uint32_t generation : {0u, 1u, UINT32_MAX})
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).generation = generation; }));
    for (std::uint32_t pieces = kPieces; pieces <= kMaxPieces; ++pieces)  // the packet grows with them
        EXPECT_TRUE(passes<RtsHeader>(good_rts_in_pieces, [&](auto& h) {
            h.inline_bytes = pieces * static_cast<std::uint32_t>(sizeof(Piece));
        })) << pieces;
    EXPECT_TRUE(passes<RtsHeader>(good_rts_in_pieces, [](auto& h) { h.length = kPieces; }))
        << "the list may be longer than the message";
}

TEST(CtsHeaders, every_value_that_a_receiver_may_write_passes) {
    for (unsigned split = 0; split < rndv::kSplits; ++split)
        EXPECT_TRUE(
            passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.split = static_cast<std::uint8_t>(split); }));
    for (std::uint32_t slot = 0; slot < rndv::kSlots; ++slot)
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.slot = slot; }));
    for (std::uint32_t chunk : {1u, UINT32_MAX})
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.chunk = chunk; }));
    for (std::uint32_t generation : {0u, UINT32_MAX})
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.generation = generation; }));
    for (unsigned pieces = 0; pieces <= kMaxPieces; ++pieces)
        for (auto good : {good_cts, good_coop_cts})
            EXPECT_TRUE(passes<CtsHeader>(good, [&](auto& h) { h.pieces = static_cast<std::uint8_t>(pieces); }))
                << pieces;
}

TEST(FragHeaders, each_field_is_named) {
    expect_refused(kFormats[3], {wrong<FragHeader>("check word", good_frag(), [](auto& h) { h.offset += 1; }),
                                 wrong<FragHeader>("check word", good_frag(), [](auto& h) { h.sender += 1; })});
}

TEST(FinHeaders, each_field_is_named) {
    expect_refused(
        kFormats[4],
        {
            sealed<FinHeader>("row", good_fin(), [](auto& h) { set_fin_choice(h, 0xff, 0); }),
            sealed<FinHeader>("reason", good_fin(), [](auto& h) { h.what = 1 + rndv::kReasons; }),
            sealed<FinHeader>("bytes", good_fin(), [](auto& h) { h.what = 0; }),
            sealed<FinHeader>("FINs", good_fin(), [](auto& h) { h.bytes |= (kMaxFinParts + 1) << kFinPartsShift; }),
            sealed<FinHeader>("sees", good_fin(),
                              [](auto& h) {
                                  h.what = 0;
                                  h.bytes |= kFinSees;
                              }),
            wrong<FinHeader>("check word", good_fin(), [](auto& h) { h.bytes += 1; }),
        });
}

TEST(Site05FinHeaders, what_the_receiver_sees_is_told_beside_bytes_and_parts) {
    FinHeader h{};
    h.bytes = 12345 | std::uint64_t{3} << kFinPartsShift;
    EXPECT_FALSE(fin_sees(h));
    h.bytes |= kFinSees;
    EXPECT_TRUE(fin_sees(h));
    EXPECT_EQ(fin_bytes(h), 12345u);
    EXPECT_EQ(fin_parts(h), 3u);
}

TEST(RtsHeaders, handle_and_header_must_lie_in_the_first_segment) {
    const Bytes whole = good_rts();
    Damage damage{};
    for (std::size_t first = sizeof(RtsHeader); first < sizeof(RtsHeader) + kHandle; ++first) {
        Bytes head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
        head.shrink_to_fit();
        EXPECT_FALSE(valid_rts(head.data(), head.size(), whole.size(), damage));
        EXPECT_STREQ(damage.field, "handle bytes");
    }
}

TEST(RtsHeaders, payload_may_lie_in_another_segment) {
    const Bytes whole = good_rts();
    Bytes head(whole.begin(), whole.begin() + sizeof(RtsHeader) + kHandle);
    head.shrink_to_fit();
    Damage damage{};
    EXPECT_TRUE(valid_rts(head.data(), head.size(), whole.size(), damage)) << damage.field;
    EXPECT_FALSE(valid_rts(head.data(), head.size(), whole.size() + 1, damage));
    EXPECT_STREQ(damage.field, "inline bytes");
    EXPECT_EQ(damage.value, kInline);
}

TEST(CtsHeaders, handle_and_header_must_lie_in_the_first_segment) {
    Bytes head = good_cts();
    head.pop_back();
    head.shrink_to_fit();
    Damage damage{};
    EXPECT_FALSE(valid_cts(head.data(), head.size(), damage));
    EXPECT_STREQ(damage.field, "handle bytes");
}

TEST(RtsHeaders, each_field_of_a_bounce_is_named) {
    const Format& format = *std::find_if(std::begin(kFormats), std::end(kFormats),
                                         [](const Format& f) { return f.good == good_bounce; });
    expect_refused(format,
                   {
                       sealed<RtsHeader>("length", good_bounce(), [](auto& h) { h.length = 0; }),
                       sealed<RtsHeader>("length", good_bounce(), [](auto& h) { h.length = rndv::kBounceBytes + 1; }),
                       sealed<RtsHeader>("length", good_bounce(), [](auto& h) { h.length = UINT64_MAX; }),
                       sealed<RtsHeader>("bounce buffer", good_bounce(),
                                         [](auto& h) { h.address = rndv::stamped(7, rndv::kBounces); }),
                       sealed<RtsHeader>("bounce buffer", good_bounce(), [](auto& h) { h.address = UINT64_MAX; }),
                       sealed<RtsHeader>("send id", good_bounce(), [](auto& h) { h.send_id = 1; }),
                       wrong<RtsHeader>("check word", good_bounce(), [](auto& h) { h.length -= 1; }),
                   });
}

TEST(RtsHeaders, limits_of_every_field_are_accepted) {
    Damage damage{};
    const Bytes in_pieces = largest_rts(UINT8_MAX);
    EXPECT_TRUE(valid_rts(in_pieces.data(), in_pieces.size(), in_pieces.size(), damage)) << damage.field;
    const Bytes with_payload = largest_rts(
        static_cast<std::uint8_t>(~kFlagPieces));  // the payload lies in another segment
    EXPECT_TRUE(valid_rts(with_payload.data(), with_payload.size(), with_payload.size() + UINT32_MAX, damage))
        << damage.field;
}

TEST(CtsHeaders, limits_of_every_field_are_accepted) {
    const Bytes bytes = largest_cts();
    Damage damage{};
    EXPECT_TRUE(valid_cts(bytes.data(), bytes.size(), damage)) << damage.field;
}

TEST(ControlBytes, are_those_of_the_header_and_what_follows_it) {
    RtsHeader rts{};
    EXPECT_EQ(control_bytes(rts), sizeof rts);
    rts.handle_bytes = 20;
    rts.inline_bytes = 1000;  // payload
    EXPECT_EQ(control_bytes(rts), sizeof rts + 20);
    rts.row = static_cast<std::uint8_t>(rndv::Row::kRtr);
    EXPECT_EQ(control_bytes(rts), sizeof rts + 20 + sizeof(SlotWords));
    rts.row = 255;  // not valid, which is found out later
    rts.match.flags = kFlagPieces;
    EXPECT_EQ(control_bytes(rts), sizeof rts + 20 + 1000);
    CtsHeader cts{};
    EXPECT_EQ(control_bytes(cts), sizeof cts);
    cts.handle_bytes = 8;
    cts.pieces = 255;
    EXPECT_EQ(control_bytes(cts), sizeof cts + 8 + 255 * sizeof(Piece));
}

}  // namespace
}  // namespace coop::wire
