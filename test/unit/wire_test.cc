// SPDX-License-Identifier: BSD-3-Clause
//
// wire/headers.h: layout, round trip, and what a receiver makes of damage.
#include "coop/wire/headers.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "coop/rndv/board.h"
#include "coop/rndv/protocol.h"

namespace coop::wire {
namespace {

constexpr unsigned kRandomSeed = 1618;

// A packet: header, handle, payload.
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

MatchHeader match_header(Kind kind) {
    return {.kind = kind, .flags = 0, .context = 3, .source = 5, .tag = -17, .sequence = 65535, .check = 0};
}

Bytes good_match() {
    MatchHeader h = match_header(Kind::kMatch);
    seal(h);
    return packet_of(&h, sizeof h, 20);
}

constexpr std::uint16_t kHandle = 24;
constexpr std::uint32_t kInline = 100;

Bytes good_rts() {
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.match.flags = kFlagContiguous | kFlagGet;
    h.length = 1 << 20;
    h.send_id = 0x100000001;
    h.address = 0x7fff12345678;
    h.inline_bytes = kInline;
    h.handle_bytes = kHandle;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRget);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kReceiverReads);
    h.wish = static_cast<std::uint8_t>(rndv::Wish::kCoopLoad);
    h.call = static_cast<std::uint8_t>(rndv::SendCall::kRsend);
    Bytes bytes = packet_of(&h, sizeof h, kHandle + kInline);
    seal(in<RtsHeader>(bytes));
    return bytes;
}

// Into an offered receive.
Bytes good_rtr() {
    Bytes bytes = good_rts();
    bytes.resize(sizeof(RtsHeader) + kHandle);
    auto& h = in<RtsHeader>(bytes);
    h.match.flags |= kFlagShare;
    h.inline_bytes = 0;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRtr);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kOffered);
    h.split = static_cast<std::uint8_t>(rndv::Split::kSenderLeads);
    h.slot = rndv::kSlots;
    h.generation = 0xfffffffe;
    h.chunk = 131072;
    seal(h);
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

constexpr std::uint32_t kPieces = 3;

// From a buffer in pieces, which are named behind the handle.
Bytes good_rts_in_pieces() {
    Bytes bytes = good_rts();
    bytes.resize(sizeof(RtsHeader) + kHandle + kPieces * sizeof(Piece), 0x55);
    auto& h = in<RtsHeader>(bytes);
    h.match.flags = kFlagGet | kFlagPieces;
    h.inline_bytes = 0;
    h.pieces = kPieces;
    seal(h);
    return bytes;
}

// Into one.
Bytes good_cts_in_pieces() {
    Bytes bytes = good_cts();
    bytes.resize(sizeof(CtsHeader) + kHandle + kPieces * sizeof(Piece), 0x66);
    auto& h = in<CtsHeader>(bytes);
    h.pieces = kPieces;
    seal(h);
    return bytes;
}

// Both are to copy.
Bytes good_coop_cts() {
    Bytes bytes = good_cts();
    auto& h = in<CtsHeader>(bytes);
    h.row = static_cast<std::uint8_t>(rndv::Row::kCoop);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kBothWait);
    h.split = static_cast<std::uint8_t>(rndv::Split::kHalves);
    h.slot = 1;
    h.generation = 7;
    h.chunk = 65536;
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
    h.to_receiver = 1;
    h.sender = 2;
    h.id = 0x300000007;
    h.bytes = 1 << 20;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRput);
    seal(h);
    return packet_of(&h, sizeof h);
}

// One kind of packet, as its receiver treats it.
struct Format {
    const char* name;
    Kind kind;
    std::size_t header_bytes;
    std::size_t sealed_bytes;  // header, handle and pieces
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
    {"RTS_rtr", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle, good_rtr,
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
    EXPECT_EQ(kVersion, 2u) << "a new layout needs a new version, and new numbers here";
    EXPECT_EQ(sizeof(MatchHeader), 16u);
    EXPECT_EQ(offsetof(MatchHeader, kind), 0u);
    EXPECT_EQ(offsetof(MatchHeader, flags), 1u);
    EXPECT_EQ(offsetof(MatchHeader, context), 2u);
    EXPECT_EQ(offsetof(MatchHeader, source), 4u);
    EXPECT_EQ(offsetof(MatchHeader, tag), 8u);
    EXPECT_EQ(offsetof(MatchHeader, sequence), 12u);
    EXPECT_EQ(offsetof(MatchHeader, check), 14u);

    EXPECT_EQ(sizeof(RtsHeader), 72u);
    EXPECT_EQ(offsetof(RtsHeader, match), 0u);
    EXPECT_EQ(offsetof(RtsHeader, length), 16u);
    EXPECT_EQ(offsetof(RtsHeader, send_id), 24u);
    EXPECT_EQ(offsetof(RtsHeader, address), 32u);
    EXPECT_EQ(offsetof(RtsHeader, inline_bytes), 40u);
    EXPECT_EQ(offsetof(RtsHeader, handle_bytes), 44u);
    EXPECT_EQ(offsetof(RtsHeader, row), 46u);
    EXPECT_EQ(offsetof(RtsHeader, reason), 47u);
    EXPECT_EQ(offsetof(RtsHeader, wish), 48u);
    EXPECT_EQ(offsetof(RtsHeader, call), 49u);
    EXPECT_EQ(offsetof(RtsHeader, split), 50u);
    EXPECT_EQ(offsetof(RtsHeader, slot), 52u);
    EXPECT_EQ(offsetof(RtsHeader, generation), 56u);
    EXPECT_EQ(offsetof(RtsHeader, chunk), 60u);
    EXPECT_EQ(offsetof(RtsHeader, pieces), 64u);

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
    EXPECT_EQ(offsetof(CtsHeader, handle_bytes), 48u);
    EXPECT_EQ(offsetof(CtsHeader, reason), 50u);
    EXPECT_EQ(offsetof(CtsHeader, split), 51u);
    EXPECT_EQ(offsetof(CtsHeader, slot), 52u);
    EXPECT_EQ(offsetof(CtsHeader, generation), 56u);
    EXPECT_EQ(offsetof(CtsHeader, chunk), 60u);
    EXPECT_EQ(offsetof(CtsHeader, pieces), 64u);

    EXPECT_EQ(sizeof(FragHeader), 24u);
    EXPECT_EQ(offsetof(FragHeader, check), 2u);
    EXPECT_EQ(offsetof(FragHeader, sender), 4u);
    EXPECT_EQ(offsetof(FragHeader, recv_id), 8u);
    EXPECT_EQ(offsetof(FragHeader, offset), 16u);

    EXPECT_EQ(sizeof(FinHeader), 32u);
    EXPECT_EQ(offsetof(FinHeader, to_receiver), 1u);
    EXPECT_EQ(offsetof(FinHeader, check), 2u);
    EXPECT_EQ(offsetof(FinHeader, sender), 4u);
    EXPECT_EQ(offsetof(FinHeader, id), 8u);
    EXPECT_EQ(offsetof(FinHeader, bytes), 16u);
    EXPECT_EQ(offsetof(FinHeader, row), 24u);
    EXPECT_EQ(offsetof(FinHeader, reason), 25u);
}

TEST(Layout, has_no_padding) {
    EXPECT_TRUE(std::has_unique_object_representations_v<MatchHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<RtsHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<CtsHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<FragHeader>);
    EXPECT_TRUE(std::has_unique_object_representations_v<FinHeader>);
}

TEST(Layout, the_largest_header_is_the_largest) {
    for (const Format& format : kFormats) EXPECT_LE(format.header_bytes, kLargestHeader);
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
        bytes.shrink_to_fit();  // the sanitizer sees a look beyond
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

// --- fields: sealed by a sender that is wrong ------------------------------------

struct Wrong {
    const char* field;
    Bytes packet;
};

template <class Header, class Change>
Wrong wrong(const char* field, Bytes packet, Change change) {
    change(in<Header>(packet));
    return {field, std::move(packet)};
}

// As `wrong`, with a check word that fits.
template <class Header, class Change>
Wrong sealed(const char* field, Bytes packet, Change change) {
    change(in<Header>(packet));
    if constexpr (requires(Header h) { h.handle_bytes; })
        packet.resize(std::max(packet.size(), sizeof(Header) + std::size_t{in<Header>(packet).handle_bytes}));
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
        sealed<RtsHeader>("flags", good_rts(), [](auto& h) { h.match.flags |= 32; }),
        sealed<RtsHeader>("row", good_rts(), [](auto& h) { h.row = rndv::kRows; }),
        sealed<RtsHeader>("reason", good_rts(), [](auto& h) { h.reason = rndv::kReasons; }),
        sealed<RtsHeader>("wish", good_rts(), [](auto& h) { h.wish = rndv::kWishes; }),
        sealed<RtsHeader>("call", good_rts(), [](auto& h) { h.call = rndv::kSendCalls; }),
        sealed<RtsHeader>("split", good_rts(), [](auto& h) { h.split = rndv::kSplits; }),
        sealed<RtsHeader>("slot", good_rts(), [](auto& h) { h.slot = 1; }),
        sealed<RtsHeader>("chunk bytes", good_rts(), [](auto& h) { h.chunk = 1; }),
        sealed<RtsHeader>("handle bytes", good_rts(), [](auto& h) { h.handle_bytes = kMaxHandleBytes + 1; }),
        sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.inline_bytes = kInline + 1; }),
        sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.inline_bytes = kInline - 1; }),
        sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.inline_bytes = UINT32_MAX; }),
        sealed<RtsHeader>("inline bytes", good_rts(), [](auto& h) { h.length = kInline - 1; }),
        sealed<RtsHeader>("send id", good_rts(), [](auto& h) { h.send_id = 0; }),
        wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.address ^= 4096; }),
        wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.length += 1; }),
        wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.wish ^= 1; }),
        sealed<RtsHeader>("pieces", good_rts(), [](auto& h) { h.match.flags |= kFlagPieces; }),
        wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.reserved = 1; }),
        wrong<RtsHeader>("check word", good_rts(), [](auto& h) { h.reserved2 = 1; }),
    });
}

TEST(CtsHeaders, each_field_is_named) {
    expect_refused(kFormats[2], {
        sealed<CtsHeader>("row", good_cts(), [](auto& h) { h.row = rndv::kRows; }),
        sealed<CtsHeader>("reason", good_cts(), [](auto& h) { h.reason = rndv::kReasons; }),
        sealed<CtsHeader>("handle bytes", good_cts(), [](auto& h) { h.handle_bytes = kMaxHandleBytes + 1; }),
        sealed<CtsHeader>("length", good_cts(), [](auto& h) { h.length = UINT64_MAX; }),
        sealed<CtsHeader>("length", good_cts(), [](auto& h) { h.offset = UINT64_MAX; }),
        sealed<CtsHeader>("split", good_cts(), [](auto& h) { h.split = rndv::kSplits; }),
        sealed<CtsHeader>("slot", good_cts(), [](auto& h) { h.slot = 1; }),
        sealed<CtsHeader>("chunk bytes", good_cts(), [](auto& h) { h.chunk = 4096; }),
        wrong<CtsHeader>("check word", good_cts(), [](auto& h) { h.generation += 1; }),
        wrong<CtsHeader>("check word", good_cts(), [](auto& h) { h.recv_id += 1; }),
    });
}

// A slot comes with the rows that use one, and with no other.
TEST(RtsHeaders, an_offer_taken_names_its_slot_and_its_chunks) {
    expect_refused(kFormats[1], {
        sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { h.slot = 0; }),
        sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { h.slot = rndv::kSlots + 1; }),
        sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { h.slot = UINT32_MAX; }),
        sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { h.row = static_cast<std::uint8_t>(rndv::Row::kCoop); }),
        sealed<RtsHeader>("slot", good_rtr(), [](auto& h) { h.row = static_cast<std::uint8_t>(rndv::Row::kRput); }),
        sealed<RtsHeader>("chunk bytes", good_rtr(), [](auto& h) { h.chunk = 0; }),
        sealed<RtsHeader>("split", good_rtr(), [](auto& h) { h.split = rndv::kSplits; }),
        wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { h.generation ^= 1; }),
        wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { h.slot -= 1; }),
        wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { h.chunk += 4096; }),
        wrong<RtsHeader>("check word", good_rtr(), [](auto& h) { h.split ^= 1; }),
    });
}

TEST(CtsHeaders, a_grant_to_copy_together_names_its_slot_and_its_chunks) {
    expect_refused(kFormats[2], {
        sealed<CtsHeader>("slot", good_coop_cts(), [](auto& h) { h.slot = 0; }),
        sealed<CtsHeader>("slot", good_coop_cts(), [](auto& h) { h.slot = rndv::kSlots + 1; }),
        sealed<CtsHeader>("slot", good_coop_cts(), [](auto& h) { h.row = static_cast<std::uint8_t>(rndv::Row::kRput); }),
        sealed<CtsHeader>("slot", good_coop_cts(), [](auto& h) { h.row = static_cast<std::uint8_t>(rndv::Row::kRtr); }),
        sealed<CtsHeader>("chunk bytes", good_coop_cts(), [](auto& h) { h.chunk = 0; }),
        sealed<CtsHeader>("split", good_coop_cts(), [](auto& h) { h.split = 255; }),
        wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.generation ^= 0x80000000; }),
        wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.slot += 1; }),
        wrong<CtsHeader>("check word", good_coop_cts(), [](auto& h) { h.chunk ^= 4096; }),
    });
}

// Lists of pieces: neither longer than allowed, nor than the packet.
TEST(RtsHeaders, pieces_lie_in_the_first_segment_and_are_not_too_many) {
    const Bytes whole = good_rts_in_pieces();
    Damage damage{};
    for (std::size_t first = sizeof(RtsHeader) + kHandle; first < whole.size(); ++first) {
        Bytes head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
        head.shrink_to_fit();
        EXPECT_FALSE(valid_rts(head.data(), head.size(), whole.size(), damage));
        EXPECT_STREQ(damage.field, "pieces");
    }
    for (std::uint32_t pieces : {0u, kPieces + 1, static_cast<std::uint32_t>(kMaxPieces) + 1, UINT32_MAX}) {
        Bytes bytes = whole;
        in<RtsHeader>(bytes).pieces = pieces;  // not sealed: it is bounded before anything behind the packet is read
        EXPECT_FALSE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage));
        EXPECT_STREQ(damage.field, "pieces") << pieces;
    }
    Bytes bare = whole;
    in<RtsHeader>(bare).match.flags = kFlagGet;
    EXPECT_FALSE(valid_rts(bare.data(), bare.size(), bare.size(), damage));
    EXPECT_STREQ(damage.field, "pieces") << "a list without the flag";
}

TEST(CtsHeaders, pieces_lie_in_the_first_segment_and_are_not_too_many) {
    const Bytes whole = good_cts_in_pieces();
    Damage damage{};
    for (std::size_t first = sizeof(CtsHeader) + kHandle; first < whole.size(); ++first) {
        Bytes head(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first));
        head.shrink_to_fit();
        EXPECT_FALSE(valid_cts(head.data(), head.size(), damage));
        EXPECT_STREQ(damage.field, "pieces");
    }
    for (std::uint32_t pieces : {kPieces + 1, static_cast<std::uint32_t>(kMaxPieces) + 1, UINT32_MAX}) {
        Bytes bytes = whole;
        in<CtsHeader>(bytes).pieces = pieces;
        EXPECT_FALSE(valid_cts(bytes.data(), bytes.size(), damage));
        EXPECT_STREQ(damage.field, "pieces") << pieces;
    }
}

TEST(Pieces, as_many_as_are_allowed_keep_the_packet_below_a_usual_eager_limit) {
    EXPECT_LE(kLargestHeader + kMaxHandleBytes + kMaxPieces * sizeof(Piece), 4096u);
}

template <class Header, class Change>
bool passes(Bytes (*good)(), Change change) {
    Bytes bytes = good();
    change(in<Header>(bytes));
    seal(in<Header>(bytes));
    Damage damage{};
    if constexpr (std::is_same_v<Header, RtsHeader>) return valid_rts(bytes.data(), bytes.size(), bytes.size(), damage);
    else return valid_cts(bytes.data(), bytes.size(), damage);
}

TEST(RtsHeaders, every_value_that_a_sender_may_write_passes) {
    for (unsigned wish = 0; wish < rndv::kWishes; ++wish)
        for (unsigned call = 0; call < rndv::kSendCalls; ++call)
            EXPECT_TRUE(passes<RtsHeader>(good_rts, [&](auto& h) { h.wish = static_cast<std::uint8_t>(wish), h.call = static_cast<std::uint8_t>(call); }));
    for (unsigned split = 0; split < rndv::kSplits; ++split)
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { h.split = static_cast<std::uint8_t>(split); }));
    for (std::uint32_t slot = 1; slot <= rndv::kSlots; ++slot)
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { h.slot = slot; }));
    for (std::uint32_t chunk : {1u, 4096u, UINT32_MAX})
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { h.chunk = chunk; }));
    for (std::uint32_t generation : {0u, 1u, UINT32_MAX})
        EXPECT_TRUE(passes<RtsHeader>(good_rtr, [&](auto& h) { h.generation = generation; }));
}

TEST(CtsHeaders, every_value_that_a_receiver_may_write_passes) {
    for (unsigned split = 0; split < rndv::kSplits; ++split)
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.split = static_cast<std::uint8_t>(split); }));
    for (std::uint32_t slot = 1; slot <= rndv::kSlots; ++slot)
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.slot = slot; }));
    for (std::uint32_t chunk : {1u, UINT32_MAX})
        EXPECT_TRUE(passes<CtsHeader>(good_coop_cts, [&](auto& h) { h.chunk = chunk; }));
}

TEST(FragHeaders, each_field_is_named) {
    expect_refused(kFormats[3], {wrong<FragHeader>("check word", good_frag(), [](auto& h) { h.offset += 1; }),
                                 wrong<FragHeader>("check word", good_frag(), [](auto& h) { h.sender += 1; })});
}

TEST(FinHeaders, each_field_is_named) {
    expect_refused(kFormats[4], {
        sealed<FinHeader>("direction", good_fin(), [](auto& h) { h.to_receiver = 2; }),
        sealed<FinHeader>("row", good_fin(), [](auto& h) { h.row = rndv::kRows; }),
        sealed<FinHeader>("reason", good_fin(), [](auto& h) { h.reason = rndv::kReasons; }),
        wrong<FinHeader>("check word", good_fin(), [](auto& h) { h.bytes += 1; }),
    });
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

TEST(RtsHeaders, limits_of_every_field_are_accepted) {
    Bytes bytes = packet_of("", 0, sizeof(RtsHeader) + kMaxHandleBytes + kMaxPieces * sizeof(Piece));
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.match.flags = kRtsFlags;
    h.match.source = INT32_MAX;
    h.length = UINT64_MAX;
    h.send_id = UINT64_MAX;
    h.handle_bytes = kMaxHandleBytes;
    h.row = rndv::kRows - 1;
    h.reason = rndv::kReasons - 1;
    h.wish = rndv::kWishes - 1;
    h.call = rndv::kSendCalls - 1;
    h.split = rndv::kSplits - 1;
    h.slot = rndv::kSlots;  // the last row is one with a slot
    h.generation = h.chunk = UINT32_MAX;
    h.pieces = kMaxPieces;
    std::memcpy(bytes.data(), &h, sizeof h);
    seal(in<RtsHeader>(bytes));
    Damage damage{};
    EXPECT_TRUE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage)) << damage.field;
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

TEST(CheckWord, tells_every_flipped_bit_of_the_longest_sealed_piece) {
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    std::mt19937 random(kRandomSeed);
    for (int round = 0; round < 4; ++round) {
        Bytes bytes(sizeof(RtsHeader) + kMaxHandleBytes + kMaxPieces * sizeof(Piece));
        for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
        auto& h = in<RtsHeader>(bytes);
        h.match = match_header(Kind::kRts);
        h.inline_bytes = 0;
        h.handle_bytes = kMaxHandleBytes;
        h.row = h.reason = h.wish = h.call = h.split = 0;
        h.slot = h.chunk = 0;
        h.match.flags = kFlagPieces;
        h.pieces = kMaxPieces;
        seal(h);
        Damage damage{};
        ASSERT_TRUE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage)) << damage.field;
        for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
            bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
            EXPECT_FALSE(valid_rts(bytes.data(), bytes.size(), bytes.size(), damage)) << "round " << round << " bit " << bit;
            bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
        }
    }
}

}  // namespace
}  // namespace coop::wire
