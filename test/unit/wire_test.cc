// SPDX-License-Identifier: BSD-3-Clause
//
// wire/headers.h: layout, round trip, and the detection of damage.
#include "coop/rndv/bounce.h"
#include "coop/wire/headers.h"

#include <gtest/gtest.h>

#include <array>
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "coop/rndv/board.h"
#include "coop/rndv/protocol.h"

namespace coop::wire {
namespace {

constexpr unsigned kRandomSeed = 1618;

// A packet: header, handle, words of a slot, pieces or payload.
using Bytes = std::vector<unsigned char>;

Bytes packet_of(const void* header, std::size_t header_bytes, std::size_t more = 0) {
    Bytes bytes(header_bytes + more);
    std::memcpy(bytes.data(), header, header_bytes);
    for (std::size_t i = header_bytes; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(7 * i + 1);
    return bytes;
}

template <class Header>
Header& in(Bytes& bytes) {
    return *reinterpret_cast<Header*>(bytes.data());
}

// What follows a header and is sealed with it: its length, and the words of a slot in it.
std::size_t behind(const RtsHeader& h) {
    std::size_t bytes = h.handle_bytes;
    if (h.row == static_cast<std::uint8_t>(rndv::Row::kRtr)) bytes += sizeof(SlotWords);
    if (h.match.flags & kFlagPieces) bytes += h.inline_bytes;
    return bytes;
}
std::size_t behind(const CtsHeader& h) { return h.handle_bytes + h.pieces * sizeof(Piece); }

SlotWords& words_of(RtsHeader& h) {
    return *reinterpret_cast<SlotWords*>(reinterpret_cast<unsigned char*>(&h + 1) + h.handle_bytes);
}

MatchHeader match_header(Kind kind) {
    return {.kind = kind, .flags = 0, .context = 3, .source = 5, .tag = -17, .sequence = 65535, .check = 0};
}

Bytes good_match() {
    MatchHeader h = match_header(Kind::kMatch);
    seal(h);
    return packet_of(&h, sizeof h, 20);
}

constexpr std::uint8_t kHandle = 24;
constexpr std::uint32_t kInline = 100;

Bytes good_rts() {
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.match.flags = kFlagContiguous | kFlagGet | wish_flag(static_cast<std::uint8_t>(rndv::Wish::kCoopLoad));
    h.length = 1 << 20;
    h.send_id = 0x100000001;
    h.address = 0x7fff12345678;
    h.inline_bytes = kInline;
    h.handle_bytes = kHandle;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRget);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kReceiverReads);
    h.call = static_cast<std::uint8_t>(rndv::SendCall::kRsend);
    Bytes bytes = packet_of(&h, sizeof h, kHandle + kInline);
    seal(in<RtsHeader>(bytes));
    return bytes;
}

// Into an offered receive.
Bytes good_rtr() {
    Bytes bytes = good_rts();
    bytes.resize(sizeof(RtsHeader) + kHandle + sizeof(SlotWords));
    auto& h = in<RtsHeader>(bytes);
    h.match.flags |= kFlagShare;
    h.inline_bytes = 0;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRtr);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kOffered);
    words_of(h) = {rndv::kSlots - 1, 0xfffffffe, 131072, static_cast<std::uint8_t>(rndv::Split::kSenderLeads), {}};
    seal(h);
    return bytes;
}

// The payload is in a bounce buffer.
Bytes good_bounce() {
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.length = rndv::kBounceBytes;
    h.address = rndv::stamped(7, rndv::kBounces - 1);
    h.row = static_cast<std::uint8_t>(rndv::Row::kBounce);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kOneWay);
    Bytes bytes = packet_of(&h, sizeof h, 0);
    seal(in<RtsHeader>(bytes));
    return bytes;
}

Bytes good_cts() {
    CtsHeader h{};
    h.kind = Kind::kCts;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRput);
    h.sender = 1;
    h.send_id = 0x100000001;
    h.recv_id = 0x300000007;
    h.offset = kInline;
    h.length = (1 << 20) - kInline;
    h.address = 0x7fff00000000;
    h.handle_bytes = kHandle;
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kNoGet);
    Bytes bytes = packet_of(&h, sizeof h, kHandle);
    seal(in<CtsHeader>(bytes));
    return bytes;
}

constexpr std::uint8_t kPieces = 3;

// From a buffer in pieces, which are listed after the handle.
Bytes good_rts_in_pieces() {
    Bytes bytes = good_rts();
    bytes.resize(sizeof(RtsHeader) + kHandle + kPieces * sizeof(Piece), 0x55);
    auto& h = in<RtsHeader>(bytes);
    h.match.flags = kFlagGet | kFlagPieces;
    h.inline_bytes = kPieces * sizeof(Piece);
    seal(h);
    return bytes;
}

// Into a buffer in pieces.
Bytes good_cts_in_pieces() {
    Bytes bytes = good_cts();
    bytes.resize(sizeof(CtsHeader) + kHandle + kPieces * sizeof(Piece), 0x66);
    auto& h = in<CtsHeader>(bytes);
    h.pieces = kPieces;
    seal(h);
    return bytes;
}

// Both sides copy.
Bytes good_coop_cts() {
    Bytes bytes = good_cts();
    auto& h = in<CtsHeader>(bytes);
    h.row = static_cast<std::uint8_t>(rndv::Row::kCoop);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kBothWait);
    h.copy = {1, 7, 65536, static_cast<std::uint8_t>(rndv::Split::kHalves), {}};
    seal(h);
    return bytes;
}

Bytes good_frag() {
    FragHeader h{Kind::kFrag, 0, 0, 2, 0x300000007, 4096};
    seal(h);
    return packet_of(&h, sizeof h, 50);
}

Bytes good_fin() {
    FinHeader h{};
    h.kind = Kind::kFin;
    h.sender = 2;
    h.id = 0x300000007;
    h.bytes = 1 << 20;
    set_fin_choice(h, static_cast<std::uint8_t>(rndv::Row::kRget), static_cast<std::uint8_t>(rndv::Reason::kReceiverReads));
    seal(h);
    return packet_of(&h, sizeof h);
}

// One kind of packet, with the functions of its receiver.
struct Format {
    const char* name;
    Kind kind;
    std::size_t header_bytes;
    std::size_t sealed_bytes;  // header, handle, words of a slot and pieces
    Bytes (*good)();
    bool (*valid)(const Bytes& bytes, Damage& damage);
};

const Format kFormats[] = {
    {"MATCH", Kind::kMatch, sizeof(MatchHeader), sizeof(MatchHeader), good_match,
     [](const Bytes& b, Damage& d) { return valid_match(b.data(), b.size(), d); }},
    {"RTS", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle, good_rts,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"CTS", Kind::kCts, sizeof(CtsHeader), sizeof(CtsHeader) + kHandle, good_cts,
     [](const Bytes& b, Damage& d) { return valid_cts(b.data(), b.size(), d); }},
    {"FRAG", Kind::kFrag, sizeof(FragHeader), sizeof(FragHeader), good_frag,
     [](const Bytes& b, Damage& d) { return valid_frag(b.data(), b.size(), d); }},
    {"FIN", Kind::kFin, sizeof(FinHeader), sizeof(FinHeader), good_fin,
     [](const Bytes& b, Damage& d) { return valid_fin(b.data(), b.size(), d); }},
    {"RTS_rtr", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle + sizeof(SlotWords), good_rtr,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"RTS_bounce", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader), good_bounce,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"RTS_pieces", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle + kPieces * sizeof(Piece), good_rts_in_pieces,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"CTS_pieces", Kind::kCts, sizeof(CtsHeader), sizeof(CtsHeader) + kHandle + kPieces * sizeof(Piece), good_cts_in_pieces,
     [](const Bytes& b, Damage& d) { return valid_cts(b.data(), b.size(), d); }},
    {"CTS_coop", Kind::kCts, sizeof(CtsHeader), sizeof(CtsHeader) + kHandle, good_coop_cts,
     [](const Bytes& b, Damage& d) { return valid_cts(b.data(), b.size(), d); }},
};

class EveryKind : public ::testing::TestWithParam<Format> {
protected:
    bool valid(const Bytes& bytes) {
        damage = {};
        return GetParam().valid(bytes, damage);
    }
    Damage damage{};
};

INSTANTIATE_TEST_SUITE_P(Wire, EveryKind, ::testing::ValuesIn(kFormats),
                         [](const auto& format) { return std::string(format.param.name); });

// --- layout ------------------------------------------------------------------

TEST(Layout, is_the_one_that_the_wire_version_names) {
    EXPECT_EQ(kVersion, 7u) << "a new layout needs a new version, and new numbers here";
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
    EXPECT_EQ(reinterpret_cast<const unsigned char*>(pieces_of(in<RtsHeader>(pieces))), pieces.data() + sizeof(RtsHeader) + kHandle);
}

TEST(Layout, every_kind_has_a_name) {
    for (std::size_t i = 1; i <= kKinds; ++i) EXPECT_STRNE(name(static_cast<Kind>(i)), "unknown");
    EXPECT_STREQ(name(static_cast<Kind>(0)), "unknown");
    EXPECT_STREQ(name(static_cast<Kind>(kKinds + 1)), "unknown");
}

// --- whole and damaged packets -------------------------------------------------

TEST_P(EveryKind, arrives_as_it_was_sent) {
    const Bytes sent = GetParam().good();
    EXPECT_TRUE(valid(sent)) << damage.field;
    EXPECT_EQ(sent, GetParam().good()) << "looking does not change a packet";
}

TEST_P(EveryKind, any_flipped_bit_is_detected) {
    const Bytes whole = GetParam().good();
    for (std::size_t bit = 0; bit < 8 * GetParam().sealed_bytes; ++bit) {
        Bytes bytes = whole;
        bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
        EXPECT_FALSE(valid(bytes)) << "bit " << bit;
        ASSERT_NE(damage.field, nullptr) << "bit " << bit;
        EXPECT_EQ(damage.kind, GetParam().kind);
    }
}

TEST_P(EveryKind, payload_is_not_looked_at) {
    Bytes bytes = GetParam().good();
    for (std::size_t i = GetParam().sealed_bytes; i < bytes.size(); ++i) bytes[i] ^= 0xff;
    EXPECT_TRUE(valid(bytes)) << damage.field;
}

TEST_P(EveryKind, a_packet_that_ends_early_is_refused_by_its_length) {
    for (std::size_t length = 0; length < GetParam().header_bytes; ++length) {
        Bytes bytes = GetParam().good();
        bytes.resize(length);
        bytes.shrink_to_fit();  // a sanitizer detects a read beyond the end
        EXPECT_FALSE(valid(bytes));
        EXPECT_STREQ(damage.field, "packet length");
        EXPECT_EQ(damage.value, length);
        EXPECT_EQ(damage.min, GetParam().header_bytes);
    }
}

TEST_P(EveryKind, a_packet_of_another_kind_is_refused_by_its_kind) {
    for (unsigned kind = 0; kind < 256; ++kind) {
        if (kind == static_cast<unsigned>(GetParam().kind)) continue;
        Bytes bytes = GetParam().good();
        bytes[0] = static_cast<unsigned char>(kind);
        EXPECT_FALSE(valid(bytes));
        EXPECT_STREQ(damage.field, "kind");
        EXPECT_EQ(damage.value, kind);
    }
}

TEST_P(EveryKind, random_bytes_are_refused_or_whole_and_never_read_beyond) {
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    std::mt19937 random(kRandomSeed);
    int accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        Bytes bytes(random() % 400);
        for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
        if (!bytes.empty()) bytes[0] = static_cast<unsigned char>(GetParam().kind);
        accepted += valid(bytes);
    }
    EXPECT_LT(accepted, 10) << "a 16-bit check lets one in 65536 through";
}

TEST(MatchHeaders, any_flipped_bit_of_any_header_is_detected) {
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    std::mt19937_64 random(kRandomSeed);
    int unseen = 0;
    for (int i = 0; i < 20000; ++i) {
        MatchHeader whole = match_header(Kind::kMatch);
        whole.flags = static_cast<std::uint8_t>(random());
        whole.context = static_cast<std::uint16_t>(random());
        whole.source = static_cast<std::int32_t>(random() % 100000);
        whole.tag = static_cast<std::int32_t>(random());
        whole.sequence = static_cast<std::uint16_t>(random());
        seal(whole);
        ASSERT_TRUE(match_is_whole(whole));
        for (std::size_t bit = 0; bit < 8 * sizeof whole; ++bit) {
            MatchHeader damaged = whole;
            reinterpret_cast<unsigned char*>(&damaged)[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
            unseen += match_is_whole(damaged);
        }
    }
    EXPECT_EQ(unseen, 0) << "of " << 20000 * 128;
}

TEST(MatchHeaders, the_eager_test_and_the_diagnosis_agree) {
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    std::mt19937_64 random(kRandomSeed);
    for (int i = 0; i < 100000; ++i) {
        Bytes bytes = good_match();
        for (std::uint64_t n = random() % 3; n > 0; --n) bytes[random() % 16] = static_cast<unsigned char>(random());
        if (random() % 2) {
            auto& h = in<MatchHeader>(bytes);
            h.check = match_check(h);
        }
        Damage damage{};
        EXPECT_EQ(match_is_whole(in<MatchHeader>(bytes)), valid_match(bytes.data(), bytes.size(), damage));
    }
}

TEST(MatchHeaders, put_together_in_registers_equals_sealed_field_by_field) {
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    std::mt19937_64 random(kRandomSeed);
    for (int i = 0; i < 20000; ++i) {
        MatchHeader by_field = match_header(Kind::kMatch);
        by_field.flags = 0;
        by_field.context = static_cast<std::uint16_t>(random());
        by_field.source = static_cast<std::int32_t>(random());
        by_field.tag = static_cast<std::int32_t>(random());
        by_field.sequence = static_cast<std::uint16_t>(random());
        seal(by_field);
        const MatchWords at_once = sealed_match(by_field.context, by_field.source, by_field.tag, by_field.sequence);
        ASSERT_EQ(std::memcmp(&at_once, &by_field, sizeof by_field), 0) << "tag " << by_field.tag << ", source " << by_field.source;
    }
}

// --- fields: sealed by a sender with an error ------------------------------------

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
    expect_refused(kFormats[0], {
        sealed<MatchHeader>("source rank", good_match(), [](auto& h) { h.source = -1; }),
        sealed<MatchHeader>("source rank", good_match(), [](auto& h) { h.source = INT32_MIN; }),
        wrong<MatchHeader>("check word", good_match(), [](auto& h) { h.tag ^= 1; }),
        wrong<MatchHeader>("check word", good_match(), [](auto& h) { h.check ^= 0x8000; }),
    });
}

TEST(RtsHeaders, each_field_is_named) {
    expect_refused(kFormats[1], {
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
    expect_refused(kFormats[2], {
        sealed<CtsHeader>("row", good_cts(), [](auto& h) { h.row = rndv::kRows; }),
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

// A slot comes with the rows that use one, and with no other. Inside a node the sender leads an RPUT, and the receiver can take over:
// with a slot, and with no other split.
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
    expect_refused(kFormats[2], {
        sealed<CtsHeader>("slot", good_cts(), rput([](auto& h) { h.copy.slot = rndv::kSlots; })),
        sealed<CtsHeader>("chunk bytes", good_cts(), rput([](auto& h) { h.copy.chunk = 0; })),
        sealed<CtsHeader>("split", good_cts(), rput([](auto& h) { h.copy.split = static_cast<std::uint8_t>(rndv::Split::kReceiverLeads); })),
        sealed<CtsHeader>("slot", good_cts(), rput([](auto& h) { h.copy.split = 0; })),
        sealed<CtsHeader>("offloads", good_cts(), rput([](auto& h) { h.offloads = 1; })),
    });
}

TEST(RtsHeaders, an_offer_taken_names_its_slot_and_its_chunks) {
    expect_refused(kFormats[1], {
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
        expect_refused(kFormats[1], {sealed<RtsHeader>("inline bytes", good_rtr(), [&](auto& h) { h.row = static_cast<std::uint8_t>(row); })});
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
    expect_refused(kFormats[2], {
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
        if (row == static_cast<unsigned>(rndv::Row::kCoop)) continue;
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
    expect_refused(kFormats[1], {sealed<RtsHeader>("pieces", good_rts(), [](auto& h) { h.match.flags |= kFlagPieces; })});
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
    expect_refused(kFormats[1], {sealed<RtsHeader>("inline bytes", good_rts_in_pieces(), [](auto& h) { h.inline_bytes -= sizeof(Piece); })});
}

TEST(RtsHeaders, without_the_flag_what_follows_is_payload_and_not_sealed) {
    Bytes bytes = sealed<RtsHeader>("", good_rts_in_pieces(), [](auto& h) { h.match.flags = kFlagGet; }).packet;
    bytes.back() ^= 1;
    Damage damage{};
    EXPECT_TRUE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage)) << damage.field;
    expect_refused(kFormats[1], {wrong<RtsHeader>("check word", good_rts_in_pieces(), [](auto& h) { h.match.flags = kFlagGet; })});
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
        EXPECT_TRUE(passes<RtsHeader>(good_rts, [&](auto& h) { h.match.flags = static_cast<std::uint8_t>(flags); })) << flags;
    }
    for (unsigned call = 0; call < rndv::kSendCalls; ++call)
        EXPECT_TRUE(passes<RtsHeader>(good_rts, [&](auto& h) { h.call = static_cast<std::uint8_t>(call); })) << call;
    for (unsigned split = 0; split < rndv::kSplits; ++split)
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).split = static_cast<std::uint8_t>(split); }));
    for (std::uint32_t slot = 0; slot < rndv::kSlots; ++slot)
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).slot = slot; }));
    for (std::uint32_t chunk : {1u, 4096u, UINT32_MAX})
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).chunk = chunk; }));
    for (std::uint32_t generation : {0u, 1u, UINT32_MAX})
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { words_of(h).generation = generation; }));
    for (std::uint32_t pieces = kPieces; pieces <= kMaxPieces; ++pieces)  // the packet grows with them
        EXPECT_TRUE(passes<RtsHeader>(good_rts_in_pieces, [&](auto& h) { h.inline_bytes = pieces * static_cast<std::uint32_t>(sizeof(Piece)); })) << pieces;
    EXPECT_TRUE(passes<RtsHeader>(good_rts_in_pieces, [](auto& h) { h.length = kPieces; })) << "the list may be longer than the message";
}

TEST(CtsHeaders, every_value_that_a_receiver_may_write_passes) {
    for (unsigned split = 0; split < rndv::kSplits; ++split)
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.split = static_cast<std::uint8_t>(split); }));
    for (std::uint32_t slot = 0; slot < rndv::kSlots; ++slot)
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.slot = slot; }));
    for (std::uint32_t chunk : {1u, UINT32_MAX})
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.chunk = chunk; }));
    for (std::uint32_t generation : {0u, UINT32_MAX})
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.copy.generation = generation; }));
    for (unsigned pieces = 0; pieces <= kMaxPieces; ++pieces)
        for (auto good : {good_cts, good_coop_cts})
            EXPECT_TRUE(passes<CtsHeader>(good, [&](auto& h) { h.pieces = static_cast<std::uint8_t>(pieces); })) << pieces;
}

TEST(FragHeaders, each_field_is_named) {
    expect_refused(kFormats[3], {wrong<FragHeader>("check word", good_frag(), [](auto& h) { h.offset += 1; }),
                                 wrong<FragHeader>("check word", good_frag(), [](auto& h) { h.sender += 1; })});
}

TEST(FinHeaders, each_field_is_named) {
    expect_refused(kFormats[4], {
        sealed<FinHeader>("row", good_fin(), [](auto& h) { set_fin_choice(h, 0xff, 0); }),
        sealed<FinHeader>("reason", good_fin(), [](auto& h) { h.what = 1 + rndv::kReasons; }),
        sealed<FinHeader>("bytes", good_fin(), [](auto& h) { h.what = 0; }),
        sealed<FinHeader>("FINs", good_fin(), [](auto& h) { h.bytes |= (kMostFinParts + 1) << kFinPartsShift; }),
        sealed<FinHeader>("sees", good_fin(), [](auto& h) {
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

// Everything that may follow a header, and each field at its limit.
Bytes largest_rts(std::uint8_t flags) {
    const bool pieces = flags & kFlagPieces;
    Bytes bytes = packet_of("", 0, sizeof(RtsHeader) + kMaxHandleBytes + (pieces ? kMaxPieces * sizeof(Piece) : sizeof(SlotWords)));
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.match.flags = flags;
    h.match.source = INT32_MAX;
    h.length = h.send_id = h.address = UINT64_MAX;
    h.inline_bytes = pieces ? kMaxPieces * sizeof(Piece) : UINT32_MAX;
    h.handle_bytes = kMaxHandleBytes;
    h.row = static_cast<std::uint8_t>(pieces ? rndv::Row::kCoop : rndv::Row::kRtr);  // the last row has a slot, but no pieces
    h.reason = rndv::kReasons - 1;
    h.call = rndv::kSendCalls - 1;
    std::memcpy(bytes.data(), &h, sizeof h);
    if (!pieces) words_of(in<RtsHeader>(bytes)) = {rndv::kSlots - 1, UINT32_MAX, UINT32_MAX, rndv::kSplits - 1, {}};
    seal(in<RtsHeader>(bytes));
    return bytes;
}

Bytes largest_cts() {
    Bytes bytes = packet_of("", 0, sizeof(CtsHeader) + kMaxHandleBytes + kMaxPieces * sizeof(Piece));
    CtsHeader h{};
    h.kind = Kind::kCts;
    h.row = static_cast<std::uint8_t>(rndv::Row::kCoop);
    h.sender = UINT32_MAX;
    h.send_id = h.recv_id = h.address = h.length = UINT64_MAX;
    h.copy = {rndv::kSlots - 1, UINT32_MAX, UINT32_MAX, rndv::kSplits - 1, {}};
    h.handle_bytes = kMaxHandleBytes;
    h.reason = rndv::kReasons - 1;
    h.pieces = kMaxPieces;
    h.counted = 1;
    std::memcpy(bytes.data(), &h, sizeof h);
    seal(in<CtsHeader>(bytes));
    return bytes;
}

TEST(RtsHeaders, each_field_of_a_bounce_is_named) {
    const Format& format = *std::find_if(std::begin(kFormats), std::end(kFormats), [](const Format& f) { return f.good == good_bounce; });
    expect_refused(format, {
        sealed<RtsHeader>("length", good_bounce(), [](auto& h) { h.length = 0; }),
        sealed<RtsHeader>("length", good_bounce(), [](auto& h) { h.length = rndv::kBounceBytes + 1; }),
        sealed<RtsHeader>("length", good_bounce(), [](auto& h) { h.length = UINT64_MAX; }),
        sealed<RtsHeader>("bounce buffer", good_bounce(), [](auto& h) { h.address = rndv::stamped(7, rndv::kBounces); }),
        sealed<RtsHeader>("bounce buffer", good_bounce(), [](auto& h) { h.address = UINT64_MAX; }),
        sealed<RtsHeader>("send id", good_bounce(), [](auto& h) { h.send_id = 1; }),
        wrong<RtsHeader>("check word", good_bounce(), [](auto& h) { h.length -= 1; }),
    });
}

TEST(RtsHeaders, limits_of_every_field_are_accepted) {
    Damage damage{};
    const Bytes in_pieces = largest_rts(UINT8_MAX);
    EXPECT_TRUE(valid_rts(in_pieces.data(), in_pieces.size(), in_pieces.size(), damage)) << damage.field;
    const Bytes with_payload = largest_rts(static_cast<std::uint8_t>(~kFlagPieces));  // the payload lies in another segment
    EXPECT_TRUE(valid_rts(with_payload.data(), with_payload.size(), with_payload.size() + UINT32_MAX, damage)) << damage.field;
}

TEST(CtsHeaders, limits_of_every_field_are_accepted) {
    const Bytes bytes = largest_cts();
    Damage damage{};
    EXPECT_TRUE(valid_cts(bytes.data(), bytes.size(), damage)) << damage.field;
}

// The version is in the seed: a neighbouring one gives another check word,
// whatever the header and however long.
TEST(CheckWord, differs_between_versions) {
    std::mt19937_64 random(kRandomSeed);
    std::uint64_t ours = kSeed;
    std::uint64_t theirs = kSeed + 1;
    for (int words = 1; words <= kMostWords; ++words) {
        const std::uint64_t word = random();
        ours = mix(ours, word);
        theirs = mix(theirs, word);
        EXPECT_NE(fold(ours), fold(theirs)) << words << " words";
    }
}

// With random bytes from `random_from` on.
template <class Header, class Valid>
void expect_every_flipped_bit_is_detected(const Bytes& largest, std::size_t random_from, Valid valid) {
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    std::mt19937 random(kRandomSeed);
    for (int round = 0; round < 4; ++round) {
        Bytes bytes = largest;
        for (std::size_t i = random_from; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(random());
        seal(in<Header>(bytes));
        ASSERT_TRUE(valid(bytes)) << "round " << round;
        for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
            bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
            EXPECT_FALSE(valid(bytes)) << "round " << round << " bit " << bit;
            bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
        }
    }
}

TEST(CheckWord, tells_every_flipped_bit_of_the_longest_sealed_packets) {
    const auto valid_as_rts = [](const Bytes& bytes) {
        Damage damage{};
        return valid_rts(bytes.data(), bytes.size(), bytes.size(), damage);
    };
    const auto valid_as_cts = [](const Bytes& bytes) {
        Damage damage{};
        return valid_cts(bytes.data(), bytes.size(), damage);
    };
    expect_every_flipped_bit_is_detected<RtsHeader>(largest_rts(UINT8_MAX), sizeof(RtsHeader) + kMaxHandleBytes, valid_as_rts);
    expect_every_flipped_bit_is_detected<CtsHeader>(largest_cts(), sizeof(CtsHeader) + kMaxHandleBytes, valid_as_cts);
}

TEST(CheckWord, is_proved_for_the_longest_sealed_packets) {
    EXPECT_GE(8u * kMostWords, largest_rts(UINT8_MAX).size());
    EXPECT_GE(8u * kMostWords, largest_cts().size());
}

}  // namespace
}  // namespace coop::wire
