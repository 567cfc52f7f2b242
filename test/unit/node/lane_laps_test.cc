// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/lane_laps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace coop::node {
namespace {

constexpr std::uint32_t kRing = 2048 * 1024;

// A writer on a machine on which a byte takes this time if the ring is used up to `end`.
struct Writer {
    std::function<std::uint64_t(std::uint32_t end)> byte_time;
    std::uint32_t end = 16 * 1024, record = 1;
    LaneLaps laps{kRing};
    std::uint64_t now = 0;
    std::uint64_t sent = 0, sent_short = 0;

    void lap(bool of_answers = false) {
        const std::uint32_t bytes = end / record * record;
        now += bytes * byte_time(end);
        sent += bytes;
        if (end < kRing) sent_short += bytes;
        end = laps.next(end, {bytes, of_answers}, now);
    }
    void stream(std::uint64_t rings) {
        for (const std::uint64_t until = sent + rings * kRing; sent < until;) lap();
    }
};

const auto quicker_whole = [](std::uint32_t end) { return std::uint64_t{end == kRing ? 1u : 3u}; };
const auto quicker_short = [](std::uint32_t end) { return std::uint64_t{end == kRing ? 3u : 2u}; };
const auto alike = [](std::uint32_t) { return std::uint64_t{2}; };

TEST(LaneLaps, a_stream_finds_the_quicker_length) {
    Writer whole{quicker_whole}, part{quicker_short}, either{alike};
    for (Writer* const writer : {&whole, &part, &either}) {
        writer->stream(LaneLaps::kRingsBeforeTrial - 1);
        EXPECT_EQ(writer->end, 16u * 1024) << "a stream must be worth the pages";
        EXPECT_FALSE(writer->laps.is_trying());
        writer->stream(2);
        EXPECT_TRUE(writer->laps.is_trying());
        writer->stream(10);
        EXPECT_FALSE(writer->laps.is_trying());
    }
    EXPECT_EQ(whole.end, kRing);
    EXPECT_EQ(part.end, LaneLaps::kShort);
    EXPECT_EQ(either.end, kRing) << "it holds more for a reader that is late";
}

TEST(LaneLaps, one_disturbed_turn_decides_nothing) {
    for (const bool whole : {false, true}) {
        int longer = 0;
        for (unsigned disturbed = 0; disturbed < 6; ++disturbed) {
            Writer writer{whole ? quicker_whole : quicker_short};
            while (!writer.laps.is_trying()) writer.lap();
            unsigned turn = 0;
            while (writer.laps.is_trying()) {
                ASSERT_LT(turn, 6u);
                const std::uint32_t end = writer.end;
                if (turn == disturbed) writer.now += 100 * end;
                writer.lap();
                turn += writer.end != end;
            }
            EXPECT_EQ(writer.end, whole ? kRing : LaneLaps::kShort) << disturbed;
            longer += turn > 4;  // than two pairs
        }
        EXPECT_EQ(longer, 2) << "of the first four turns, two are to the disadvantage of the winner";
    }
}

TEST(LaneLaps, trials_take_little_time) {
    Writer writer{quicker_whole};
    writer.stream(20'000);
    EXPECT_LT(writer.sent_short, writer.sent / 100);
}

TEST(LaneLaps, another_pace_begins_a_trial) {
    Writer writer{quicker_whole};
    writer.stream(5000);  // the next trial is far
    ASSERT_EQ(writer.end, kRing);
    writer.stream(3 * LaneLaps::kUnit);
    ASSERT_EQ(writer.end, kRing);
    writer.byte_time = quicker_short;
    writer.stream(3 * LaneLaps::kUnit);
    EXPECT_EQ(writer.end, LaneLaps::kShort);
}

TEST(LaneLaps, many_laps_of_answers_double_the_part_that_is_used) {
    Writer writer{alike};
    for (std::uint32_t end = writer.end; end < kRing; end *= 2) {
        for (unsigned i = 0; i < LaneLaps::kAnswers; ++i) {
            ASSERT_EQ(writer.end, end);
            writer.lap(true);
        }
        ASSERT_EQ(writer.end, 2 * end);
    }
    for (unsigned i = 0; i < 100; ++i) writer.lap(true);
    EXPECT_EQ(writer.end, kRing);
}

TEST(LaneLaps, laps_of_a_stream_between_answers_take_away_from_the_count) {
    Writer writer{alike};
    for (unsigned i = 0; i < 100; ++i) writer.lap(i % 4 != 0);
    EXPECT_EQ(writer.end, 16u * 1024);
    for (unsigned i = 0; i < 200; ++i) writer.lap(i % LaneLaps::kAnswers != 0);
    EXPECT_GT(writer.end, 16u * 1024);
}

TEST(LaneLaps, an_answer_ends_a_trial_and_restores_the_length) {
    for (const std::uint32_t before : {512u * 1024, kRing}) {
        Writer writer{quicker_short, before};
        while (!writer.laps.is_trying()) writer.lap();
        ASSERT_EQ(writer.end, LaneLaps::kShort);
        writer.lap(true);
        EXPECT_FALSE(writer.laps.is_trying());
        EXPECT_EQ(writer.end, before);
        writer.stream(LaneLaps::kRingsBeforeTrial - 1);
        EXPECT_EQ(writer.end, before);
    }
}

TEST(LaneLaps, trials_that_answers_end_become_seldom) {
    Writer writer{quicker_whole, kRing};
    unsigned trials = 0;
    for (const std::uint64_t until = 2000ull * kRing; writer.sent < until;) {
        writer.lap();
        if (!writer.laps.is_trying()) continue;
        ++trials;
        writer.lap(true);
    }
    EXPECT_GT(trials, 10u);
    EXPECT_LT(trials, 25u);
}

TEST(LaneLaps, a_trial_that_answers_end_leaves_the_earlier_decision) {
    Writer writer{quicker_short};
    writer.stream(30);
    while (!writer.laps.is_trying()) writer.lap();
    while (writer.end != kRing) writer.lap();  // its second turn
    writer.lap(true);
    EXPECT_FALSE(writer.laps.is_trying());
    writer.lap();
    EXPECT_EQ(writer.end, LaneLaps::kShort);
}

TEST(LaneLaps, answers_after_a_decision_use_the_whole_ring_at_once) {
    Writer writer{quicker_short};
    writer.stream(30);
    ASSERT_EQ(writer.end, LaneLaps::kShort);
    for (unsigned i = 0; i < LaneLaps::kAnswers; ++i) writer.lap(true);
    EXPECT_EQ(writer.end, kRing);
}

// A turn is two laps of the whole ring, whether records fill it or not.
TEST(LaneLaps, a_turn_is_about_two_rings) {
    Writer writer{quicker_whole, kRing, 1088};
    while (!writer.laps.is_trying()) writer.lap();
    const std::uint64_t before = writer.sent;
    while (writer.laps.is_trying()) writer.lap();
    EXPECT_LT(writer.sent - before, 9ull * kRing);
}

// Three of these fit the short part, and a quarter of it stays free.
TEST(LaneLaps, time_is_counted_for_what_was_sent) {
    Writer writer{alike, 512 * 1024, 513 * 64};
    writer.stream(30);
    EXPECT_EQ(writer.end, kRing);
}

TEST(LaneLaps, a_ring_without_a_choice_stays_as_it_is) {
    LaneLaps laps(LaneLaps::kShort);
    for (std::uint64_t i = 0; i < 10'000; ++i) ASSERT_EQ(laps.next(64 * 1024, {64 * 1024, false}, i * i), 64u * 1024);
}

TEST(LaneLaps, never_asks_for_more_than_there_is) {
    for (const std::uint32_t most : {64u * 1024, 512u * 1024}) {
        Writer writer{quicker_whole};
        while (!writer.laps.is_trying()) writer.lap();
        writer.laps.cap(most);
        writer.end = 64 * 1024;
        for (unsigned i = 0; i < 10'000; ++i) {
            writer.lap(i % 100 < 20);
            ASSERT_LE(writer.end, most);
        }
        EXPECT_EQ(writer.end, most);
    }
}

TEST(LaneLaps, a_stream_keeps_short_only_after_it_has_chosen_that) {
    Writer writer{quicker_short};
    EXPECT_FALSE(writer.laps.keeps_short(writer.end));
    writer.stream(30);
    ASSERT_EQ(writer.end, LaneLaps::kShort);
    EXPECT_TRUE(writer.laps.keeps_short(writer.end));
    EXPECT_FALSE(writer.laps.keeps_short(2 * writer.end)) << "the reader was away";
}

}  // namespace
}  // namespace coop::node
