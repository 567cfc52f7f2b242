// SPDX-License-Identifier: BSD-3-Clause
//
// wire/headers.h: round trip, and the detection of damage.
#include "wire_packets.h"

#include <gtest/gtest.h>

#include <random>

namespace coop::wire {
namespace {

using namespace test;

constexpr unsigned kRandomSeed = 1618;

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
        ASSERT_EQ(std::memcmp(&at_once, &by_field, sizeof by_field), 0)
            << "tag " << by_field.tag << ", source " << by_field.source;
    }
}

// --- the check word -----------------------------------------------------------

// The version is in the seed: a neighbouring one gives another check word,
// whatever the header and however long.
TEST(CheckWord, differs_between_versions) {
    std::mt19937_64 random(kRandomSeed);
    std::uint64_t ours = kSeed;
    std::uint64_t theirs = kSeed + 1;
    for (int words = 1; words <= kMaxWords; ++words) {
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
    expect_every_flipped_bit_is_detected<RtsHeader>(largest_rts(UINT8_MAX), sizeof(RtsHeader) + kMaxHandleBytes,
                                                    valid_as_rts);
    expect_every_flipped_bit_is_detected<CtsHeader>(largest_cts(), sizeof(CtsHeader) + kMaxHandleBytes, valid_as_cts);
}

// As all versions of the library compute it.
std::uint16_t chained(Bytes bytes, std::size_t check_at) {
    const std::uint64_t length = bytes.size();
    bytes[check_at] = bytes[check_at + 1] = 0;
    bytes.resize((bytes.size() + 7) / 8 * 8);
    std::uint64_t state = kSeed ^ length << 32;
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        std::uint64_t word;
        std::memcpy(&word, &bytes[i], sizeof word);
        state = mix(state, word);
    }
    return fold(state);
}

TEST(CheckWord, mixes_one_word_after_the_other) {
    for (const std::uint8_t handle : {0, 1, 8, 24, 31, 32, 33, 40, 64, 71, 128}) {
        Bytes rts = largest_rts(UINT8_MAX);
        in<RtsHeader>(rts).handle_bytes = handle;
        rts.resize(sizeof(RtsHeader) + behind(in<RtsHeader>(rts)));
        seal(in<RtsHeader>(rts));
        EXPECT_EQ(in<RtsHeader>(rts).match.check, chained(rts, 14)) << +handle;
    }
    Bytes cts = largest_cts();
    seal(in<CtsHeader>(cts));
    EXPECT_EQ(in<CtsHeader>(cts).check, chained(cts, 2));
    FinHeader fin{Kind::kFin, 1, 0, 7, 42, 4711};
    seal(fin);
    EXPECT_EQ(fin.check, chained(packet_of(&fin, sizeof fin), 2));
}

TEST(CheckWord, is_proved_for_the_longest_sealed_packets) {
    EXPECT_GE(8u * kMaxWords, largest_rts(UINT8_MAX).size());
    EXPECT_GE(8u * kMaxWords, largest_cts().size());
}

}  // namespace
}  // namespace coop::wire
