// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/protocol.h: the decision as a table, and the words for it.
#include "coop/rndv/protocol.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace coop::rndv {

std::ostream& operator<<(std::ostream& out, const Choice& choice) {
    return out << name(choice.row) << " (" << text(choice.reason) << ")";
}

namespace {

constexpr std::size_t kEagerLimit = 4096;

Situation large() {
    Situation s;
    s.bytes = 1 << 20;
    s.eager_limit = kEagerLimit;
    return s;
}

struct Case {
    const char* what;
    Situation situation;
    Choice expected;
};

template <class Change>
Situation with(Situation s, Change change) {
    change(s);
    return s;
}

using S = Situation;

Situation getting() { return with(large(), [](S& s) { s.can_get = true; }); }
Situation putting() { return with(large(), [](S& s) { s.can_put = true; }); }
Situation both() { return with(getting(), [](S& s) { s.can_put = true; }); }

const Case kCases[] = {
    // Up to the eager limit nothing else matters.
    {"empty", with(both(), [](S& s) { s.bytes = 0; }), {Row::kEager, Reason::kFitsEager}},
    {"at the limit", with(both(), [](S& s) { s.bytes = kEagerLimit; }), {Row::kEager, Reason::kFitsEager}},
    {"at the limit, synchronous", with(both(), [](S& s) { s.bytes = kEagerLimit; s.synchronous = true; }),
     {Row::kEager, Reason::kSynchronousFitsInline}},
    {"at the limit, in pieces, by wish", with(both(), [](S& s) { s.bytes = kEagerLimit; s.sender_contiguous = false; s.wish = Wish::kRput; }),
     {Row::kEager, Reason::kFitsEager}},
    {"beyond the limit", with(both(), [](S& s) { s.bytes = kEagerLimit + 1; }), {Row::kRget, Reason::kReceiverReads}},

    // Left alone, the transport's abilities decide.
    {"gets and puts", both(), {Row::kRget, Reason::kReceiverReads}},
    {"gets", getting(), {Row::kRget, Reason::kReceiverReads}},
    {"puts", putting(), {Row::kRput, Reason::kNoGet}},
    {"neither", large(), {Row::kSend, Reason::kNoRdma}},
    {"synchronous makes no difference", with(both(), [](S& s) { s.synchronous = true; }), {Row::kRget, Reason::kReceiverReads}},

    // Thresholds.
    {"below rdma_min", with(both(), [](S& s) { s.rdma_min = s.bytes + 1; }), {Row::kSend, Reason::kBelowRdmaMin}},
    {"at rdma_min", with(both(), [](S& s) { s.rdma_min = s.bytes; }), {Row::kRget, Reason::kReceiverReads}},
    {"a small share of the bandwidth", with(both(), [](S& s) { s.rdma_share = 0.49; }), {Row::kSend, Reason::kStripedOverTransports}},
    {"half of the bandwidth", with(both(), [](S& s) { s.rdma_share = 0.5; }), {Row::kRget, Reason::kReceiverReads}},
    {"no RDMA, hence no share of it", with(large(), [](S& s) { s.rdma_share = 0; }), {Row::kSend, Reason::kNoRdma}},

    // Pieces cannot go by RDMA, whatever was asked for.
    {"sender in pieces", with(both(), [](S& s) { s.sender_contiguous = false; }), {Row::kSend, Reason::kSenderPieces}},
    {"receiver in pieces", with(both(), [](S& s) { s.receiver_contiguous = false; }), {Row::kSend, Reason::kReceiverPieces}},
    {"both in pieces", with(both(), [](S& s) { s.sender_contiguous = s.receiver_contiguous = false; }), {Row::kSend, Reason::kSenderPieces}},
    {"in pieces, rget wished", with(both(), [](S& s) { s.sender_contiguous = false; s.wish = Wish::kRget; }), {Row::kSend, Reason::kSenderPieces}},

    // Wishes that can be met: thresholds do not hold.
    {"rget wished", with(both(), [](S& s) { s.wish = Wish::kRget; }), {Row::kRget, Reason::kForced}},
    {"rput wished", with(both(), [](S& s) { s.wish = Wish::kRput; }), {Row::kRput, Reason::kForced}},
    {"send wished", with(both(), [](S& s) { s.wish = Wish::kSend; }), {Row::kSend, Reason::kForced}},
    {"rput wished, below rdma_min, small share",
     with(both(), [](S& s) { s.wish = Wish::kRput; s.rdma_min = s.bytes + 1; s.rdma_share = 0.1; }), {Row::kRput, Reason::kForced}},

    // Wishes that cannot: the next best, and the reason says so.
    {"rget wished, puts only", with(putting(), [](S& s) { s.wish = Wish::kRget; }), {Row::kRput, Reason::kForcedUnavailable}},
    {"rput wished, gets only", with(getting(), [](S& s) { s.wish = Wish::kRput; }), {Row::kRget, Reason::kForcedUnavailable}},
    {"rget wished, no RDMA", with(large(), [](S& s) { s.wish = Wish::kRget; }), {Row::kSend, Reason::kForcedUnavailable}},
    {"rput wished, no RDMA", with(large(), [](S& s) { s.wish = Wish::kRput; }), {Row::kSend, Reason::kForcedUnavailable}},

    // Tried in vain.
    {"get refused, puts", with(both(), [](S& s) { s.get_refused = true; }), {Row::kRput, Reason::kGetRefused}},
    {"get refused, gets only", with(getting(), [](S& s) { s.get_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
    {"put refused, puts only", with(putting(), [](S& s) { s.put_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
    {"both refused", with(both(), [](S& s) { s.get_refused = s.put_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
    {"put refused, gets", with(both(), [](S& s) { s.put_refused = true; }), {Row::kRget, Reason::kReceiverReads}},
    {"rget wished but refused, puts", with(both(), [](S& s) { s.wish = Wish::kRget; s.get_refused = true; }), {Row::kRput, Reason::kGetRefused}},
    {"rget wished but refused, gets only", with(getting(), [](S& s) { s.wish = Wish::kRget; s.get_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
    {"rput wished but refused, gets", with(both(), [](S& s) { s.wish = Wish::kRput; s.put_refused = true; }), {Row::kRget, Reason::kForcedUnavailable}},
    {"rput wished but refused, puts only", with(putting(), [](S& s) { s.wish = Wish::kRput; s.put_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
};

// Every situation there is, up to the sizes, which stand below, at and above
// each threshold.
std::vector<Situation> all_situations() {
    std::vector<Situation> all;
    for (unsigned bits = 0; bits < 128; ++bits)
        for (Wish wish : {Wish::kAuto, Wish::kRget, Wish::kRput, Wish::kSend})
            for (std::size_t bytes : {std::size_t{0}, kEagerLimit, kEagerLimit + 1, std::size_t{65535}, std::size_t{65536}})
                for (double share : {0.0, 0.49, 0.5, 1.0}) {
                    Situation s;
                    s.bytes = bytes;
                    s.eager_limit = kEagerLimit;
                    s.rdma_min = 65536;
                    s.rdma_share = share;
                    s.wish = wish;
                    s.synchronous = bits & 1;
                    s.sender_contiguous = bits & 2;
                    s.receiver_contiguous = bits & 4;
                    s.can_get = bits & 8;
                    s.can_put = bits & 16;
                    s.get_refused = bits & 32;
                    s.put_refused = bits & 64;
                    all.push_back(s);
                }
    return all;
}

bool implies(bool a, bool b) { return !a || b; }

TEST(Choose, decides_as_the_table_says) {
    for (const Case& c : kCases) EXPECT_EQ(choose(c.situation), c.expected) << c.what;
}

TEST(Choose, never_picks_what_the_transport_lacks_or_has_refused) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        EXPECT_TRUE(implies(choice.row == Row::kRget, s.can_get && !s.get_refused)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kRput, s.can_put && !s.put_refused)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kEager, s.bytes <= s.eager_limit)) << describe(choice, s);
    }
}

TEST(Choose, moves_no_pieces_by_rdma) {
    for (const Situation& s : all_situations())
        if (!s.sender_contiguous || !s.receiver_contiguous) {
            const Row row = choose(s).row;
            EXPECT_TRUE(row == Row::kEager || row == Row::kSend) << describe(choose(s), s);
        }
}

TEST(Choose, says_forced_only_when_the_wish_is_met) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const bool met = (s.wish == Wish::kRget && choice.row == Row::kRget) || (s.wish == Wish::kRput && choice.row == Row::kRput) ||
                         (s.wish == Wish::kSend && choice.row == Row::kSend);
        EXPECT_TRUE(implies(choice.reason == Reason::kForced, met)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kForcedUnavailable, !met && s.wish != Wish::kAuto)) << describe(choice, s);
    }
}

TEST(Choose, blames_the_transport_only_for_what_it_lacks) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        EXPECT_TRUE(implies(choice.reason == Reason::kNoGet, !s.can_get)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kNoRdma, !(s.can_get || s.can_put))) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kGetRefused, s.get_refused)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kRdmaRefused, s.get_refused || s.put_refused)) << describe(choice, s);
        const bool wish_fails = s.wish == Wish::kRget ? !s.can_get || s.get_refused : !s.can_put || s.put_refused;
        EXPECT_TRUE(implies(choice.reason == Reason::kForcedUnavailable, wish_fails)) << describe(choice, s);
    }
}

TEST(Choose, reaches_every_row) {
    std::set<Row> rows;
    for (const Situation& s : all_situations()) rows.insert(choose(s).row);
    EXPECT_EQ(rows.size(), kRows);
}

TEST(Choose, reaches_every_reason_but_the_receivers_own) {
    std::set<Reason> reasons;
    for (const Situation& s : all_situations()) reasons.insert(choose(s).reason);
    reasons.insert(Reason::kNothingLeft);  // given by a receiver that has everything
    EXPECT_EQ(reasons.size(), kReasons);
}

TEST(Words, every_row_has_a_name_of_its_own) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < kRows; ++i) names.insert(name(static_cast<Row>(i)));
    EXPECT_EQ(names.size(), kRows);
    EXPECT_EQ(names.count("unknown"), 0u);
    EXPECT_STREQ(name(static_cast<Row>(kRows)), "unknown") << "kRows counts them all";
}

TEST(Words, every_reason_has_a_text_of_its_own) {
    std::set<std::string> texts;
    for (std::size_t i = 0; i < kReasons; ++i) texts.insert(text(static_cast<Reason>(i)));
    EXPECT_EQ(texts.size(), kReasons);
    EXPECT_EQ(texts.count("unknown"), 0u);
    EXPECT_STREQ(text(static_cast<Reason>(kReasons)), "unknown") << "kReasons counts them all";
}

TEST(Words, every_choice_has_a_sentence_with_its_size_row_and_reason) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const std::string sentence = describe(choice, s);
        EXPECT_EQ(sentence.find(std::to_string(s.bytes) + " bytes go by " + name(choice.row) + ": " + text(choice.reason)), 0u)
            << sentence;
    }
}

TEST(Words, the_sentence_has_the_numbers_that_decided) {
    const auto ending = [](const Situation& s) {
        const Choice choice = choose(s);
        const std::string sentence = describe(choice, s);
        return sentence.substr(sentence.find(text(choice.reason)) + std::string(text(choice.reason)).size());
    };
    EXPECT_EQ(ending(with(large(), [](S& s) { s.bytes = 100; })), " of 4096 bytes");
    EXPECT_EQ(ending(with(both(), [](S& s) { s.rdma_min = 1 << 21; })), " of 2097152 bytes");
    EXPECT_EQ(ending(with(both(), [](S& s) { s.rdma_share = 0.25; })), " that has 25 % of the bandwidth");
    EXPECT_EQ(ending(both()), "");
}

TEST(Words, a_receiver_that_has_everything_says_so) {
    const Choice choice = {Row::kSend, Reason::kNothingLeft};
    EXPECT_EQ(describe(choice, both()), "1048576 bytes go by send: " + std::string(text(Reason::kNothingLeft)));
}

}  // namespace
}  // namespace coop::rndv
