// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/sender.h: every event in every step, then whole messages.
#include "coop/rndv/sender.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coop/rndv/protocol.h"

namespace coop::rndv {

std::ostream& operator<<(std::ostream& out, SendStep step) { return out << name(step); }

namespace {

constexpr SendStep kStart = SendStep::kStart, kAnswer = SendStep::kAnswer, kFragments = SendStep::kFragments,
                   kFin = SendStep::kFin, kCopy = SendStep::kCopy, kDrain = SendStep::kDrain, kOver = SendStep::kOver;

constexpr std::uint64_t kBytes = 1000;
const Choice kCoop{Row::kCoop, Reason::kBothWait}, kSend{Row::kSend, Reason::kForced},
    kPut{Row::kRput, Reason::kForced}, kGet{Row::kRget, Reason::kReceiverReads}, kOffered{Row::kRtr, Reason::kOffered};

const SendStep kAllSteps[] = {kStart, kAnswer, kFragments, SendStep::kPut, kFin, kCopy, kDrain, kOver};

// A sender in this step, with all of the message still to send where the step sends.
void bring_to(Sender& s, SendStep step) {
    s.start();
    const auto granted = [&](const Choice& choice) {
        s.rts_out(kGet);
        s.on_grant({choice, 0, kBytes});
        s.next(false);
    };
    switch (step) {
    case kStart: break;
    case kAnswer: s.rts_out(kGet); break;
    case kFragments: granted(kSend); break;
    case SendStep::kPut: granted(kPut); break;
    case kFin:
        granted(kPut);
        s.put_done(kBytes / 2);
        break;
    case kCopy: granted(kCoop); break;
    case kDrain: s.eager_out(); break;
    case kOver:
        s.eager_out();
        s.next(false);
        break;
    }
    ASSERT_EQ(s.step(), step);
}

// --- every event in every step ------------------------------------------------------------

struct Event {
    const char* name;
    std::function<bool(Sender&)> send;      // whether the event was taken
    std::map<SendStep, SendStep> leads_to;  // the steps that take it; it changes nothing in any other
};

const Event kEvents[] = {
    {"eager_out", [](Sender& s) { return s.eager_out(); }, {{kStart, kDrain}}},
    {"rts_out", [](Sender& s) { return s.rts_out(kGet); }, {{kStart, kAnswer}}},
    {"rts_out of an offered receive", [](Sender& s) { return s.rts_out(kOffered); }, {{kStart, kCopy}}},
    {"fragment_out", [](Sender& s) { return s.fragment_out(kBytes); }, {{kFragments, kFragments}}},
    {"fragment_out beyond the grant", [](Sender& s) { return s.fragment_out(kBytes + 1); }, {}},
    {"put_done, all", [](Sender& s) { return s.put_done(kBytes); }, {{SendStep::kPut, kFin}}},
    {"put_done, a part", [](Sender& s) { return s.put_done(kBytes / 2); }, {{SendStep::kPut, kFin}}},
    {"put_done, nothing", [](Sender& s) { return s.put_done(0); }, {{SendStep::kPut, kFragments}}},
    {"put_done beyond the grant", [](Sender& s) { return s.put_done(kBytes + 1); }, {}},
    {"fin_out", [](Sender& s) { return s.fin_out(); }, {{kFin, kFragments}}},
    {"copied", [](Sender& s) { return s.copied(); }, {{kCopy, kDrain}}},
    {"on_grant of fragments",
     [](Sender& s) {
         return s.on_grant({kSend, 0, kBytes});
     },
     {{kAnswer, kAnswer}, {kCopy, kCopy}}},
    {"on_grant of puts",
     [](Sender& s) {
         return s.on_grant({kPut, 0, kBytes});
     },
     {{kAnswer, kAnswer}}},
    {"on_grant of a cooperative copy",
     [](Sender& s) {
         return s.on_grant({kCoop, 0, kBytes});
     },
     {{kAnswer, kAnswer}}},
    {"on_fin", [](Sender& s) { return s.on_fin(kGet, 1) == FinTaken::kComplete; }, {{kAnswer, kAnswer}}},
};

TEST(RndvSender, takes_each_event_in_its_steps_and_ignores_it_in_all_others) {
    for (const Event& event : kEvents)
        for (const SendStep step : kAllSteps) {
            Sender s;
            bring_to(s, step);
            const auto expected = event.leads_to.find(step);
            const bool is_taken = expected != event.leads_to.end();
            EXPECT_EQ(event.send(s), is_taken) << event.name << " in " << step;
            EXPECT_EQ(s.step(), is_taken ? expected->second : step) << event.name << " in " << step;
        }
}

TEST(RndvSender, an_rts_that_was_refused_begins_again) {
    for (const SendStep step : kAllSteps) {
        Sender s;
        bring_to(s, step);
        const bool is_out = step == kAnswer;  // in kCopy it has been answered
        EXPECT_EQ(s.rts_refused(), is_out) << step;
        EXPECT_EQ(s.step(), is_out ? kStart : step);
    }
    Sender s;
    s.start();
    s.rts_out(kOffered);
    EXPECT_TRUE(s.rts_refused());
    EXPECT_EQ(s.step(), kStart);
}

TEST(RndvSender, next_says_what_each_step_has_to_do) {
    const std::map<SendStep, SendDo> expected = {
        {kStart, SendDo::kStart},       {kAnswer, SendDo::kWait}, {kFragments, SendDo::kSendFragments},
        {SendStep::kPut, SendDo::kPut}, {kFin, SendDo::kSendFin}, {kCopy, SendDo::kCopy},
        {kDrain, SendDo::kEnd},         {kOver, SendDo::kWait}};
    for (const auto& [step, action] : expected) {
        Sender s;
        bring_to(s, step);
        EXPECT_EQ(s.next(false), action) << step;
    }
}

// --- whole messages -----------------------------------------------------------------------

TEST(RndvSender, ends_once_and_only_when_no_packet_is_in_flight) {
    Sender s;
    bring_to(s, kDrain);
    EXPECT_EQ(s.next(true), SendDo::kWait);
    EXPECT_EQ(s.next(false), SendDo::kEnd);
    EXPECT_EQ(s.next(false), SendDo::kWait);
}

TEST(RndvSender, a_grant_of_nothing_ends_the_message) {
    Sender s;
    bring_to(s, kAnswer);
    EXPECT_TRUE(s.on_grant({{Row::kRget, Reason::kNothingLeft}, kBytes, 0}));
    EXPECT_EQ(s.next(false), SendDo::kEnd);
}

TEST(RndvSender, a_fin_ends_the_message_and_names_the_row_that_moved_it) {
    Sender s;
    bring_to(s, kAnswer);
    EXPECT_EQ(s.on_fin(kGet, 1), FinTaken::kComplete);
    EXPECT_EQ(s.next(false), SendDo::kEnd);
    EXPECT_EQ(s.choice(), kGet);
}

TEST(RndvSender, waits_for_all_fins_of_a_read_over_several_rails) {
    Sender s;
    bring_to(s, kAnswer);
    EXPECT_EQ(s.on_fin(kGet, 3), FinTaken::kAwaitsOthers);
    EXPECT_EQ(s.next(false), SendDo::kWait);
    EXPECT_EQ(s.on_fin(kGet, 2), FinTaken::kRefused) << "another number than the first";
    EXPECT_EQ(s.fins_due(), 3u);
    EXPECT_EQ(s.on_fin(kGet, 3), FinTaken::kAwaitsOthers);
    EXPECT_EQ(s.on_fin(kGet, 3), FinTaken::kComplete);
    EXPECT_EQ(s.on_fin(kGet, 3), FinTaken::kRefused) << "one too many";
    EXPECT_EQ(s.next(false), SendDo::kEnd);
}

TEST(RndvSender, takes_one_answer) {
    Sender s;
    bring_to(s, kAnswer);
    EXPECT_TRUE(s.takes_grant(Row::kSend, false));
    EXPECT_TRUE(s.takes_fin());
    EXPECT_TRUE(s.on_grant({kSend, 0, kBytes}));
    EXPECT_FALSE(s.takes_grant(Row::kSend, false));
    EXPECT_FALSE(s.takes_fin());
    EXPECT_FALSE(s.on_grant({kSend, 0, kBytes}));
    EXPECT_EQ(s.on_fin(kGet, 1), FinTaken::kRefused);
}

TEST(RndvSender, sends_exactly_the_granted_range_in_fragments) {
    Sender s;
    bring_to(s, kAnswer);
    s.on_grant({kSend, 100, 900});
    ASSERT_EQ(s.next(false), SendDo::kSendFragments);
    EXPECT_EQ(s.at(), 100u);
    EXPECT_EQ(s.end(), 1000u);
    EXPECT_TRUE(s.fragment_out(400));
    EXPECT_TRUE(s.fragment_out(400));
    EXPECT_TRUE(s.fragment_refused(400));
    EXPECT_EQ(s.at(), 500u);
    EXPECT_FALSE(s.fragment_out(501));
    EXPECT_TRUE(s.fragment_out(500));
    EXPECT_EQ(s.next(true), SendDo::kWait);
    EXPECT_EQ(s.next(false), SendDo::kEnd);
}

TEST(RndvSender, fragments_carry_what_could_not_be_put) {
    Sender s;
    bring_to(s, SendStep::kPut);
    EXPECT_TRUE(s.put_done(600));
    ASSERT_EQ(s.next(false), SendDo::kSendFin);
    EXPECT_EQ(s.put_bytes(), 600u);
    EXPECT_TRUE(s.fin_out());
    ASSERT_EQ(s.next(false), SendDo::kSendFragments);
    EXPECT_EQ(s.at(), 600u);
    EXPECT_EQ(s.choice(), kPut) << "the row that moved the first part";
    EXPECT_TRUE(s.fragment_out(400));
    EXPECT_EQ(s.next(false), SendDo::kEnd);
}

TEST(RndvSender, without_any_put_no_fin_is_sent_and_the_row_is_send) {
    Sender s;
    bring_to(s, SendStep::kPut);
    EXPECT_TRUE(s.put_done(0));
    EXPECT_EQ(s.next(false), SendDo::kSendFragments);
    EXPECT_EQ(s.choice(), (Choice{Row::kSend, Reason::kRdmaRefused}));
}

TEST(RndvSender, all_put_needs_a_fin_and_nothing_else) {
    Sender s;
    bring_to(s, SendStep::kPut);
    EXPECT_TRUE(s.put_done(kBytes));
    EXPECT_EQ(s.next(false), SendDo::kSendFin);
    EXPECT_TRUE(s.fin_out());
    EXPECT_EQ(s.next(false), SendDo::kEnd);
}

// Both for a granted copy and for one into an offered receive.
TEST(RndvSender, a_stuck_copy_goes_on_in_fragments_after_a_second_grant) {
    for (const bool offered : {false, true}) {
        Sender s;
        s.start();
        s.rts_out(offered ? kOffered : kGet);
        if (!offered) s.on_grant({kCoop, 0, kBytes});
        ASSERT_EQ(s.next(false), SendDo::kCopy);
        EXPECT_FALSE(s.takes_grant(Row::kSend, false)) << "the copy goes on";
        EXPECT_FALSE(s.takes_grant(Row::kCoop, true)) << "only fragments can take its place";
        EXPECT_FALSE(s.takes_fin());
        EXPECT_TRUE(s.takes_grant(Row::kSend, true));
        EXPECT_TRUE(s.on_grant({{Row::kSend, Reason::kRdmaRefused}, 0, kBytes}));
        EXPECT_FALSE(s.takes_grant(Row::kSend, true)) << "once";
        EXPECT_EQ(s.next(false), SendDo::kSendFragments);
        EXPECT_TRUE(s.fragment_out(kBytes));
        EXPECT_EQ(s.next(false), SendDo::kEnd);
    }
}

TEST(RndvSender, an_engine_is_used_again) {
    Sender s;
    for (int i = 0; i < 3; ++i) {
        s.start();
        EXPECT_FALSE(s.is_answered());
        s.rts_out(kGet);
        EXPECT_EQ(s.on_fin(kGet, 2), FinTaken::kAwaitsOthers);
        EXPECT_EQ(s.on_fin(kGet, 2), FinTaken::kComplete);
        EXPECT_EQ(s.next(false), SendDo::kEnd);
    }
}

TEST(RndvSender, has_a_word_for_each_step) {
    for (const SendStep step : kAllSteps) EXPECT_STRNE(name(step), "unknown");
    EXPECT_STREQ(name(static_cast<SendStep>(kSendSteps)), "unknown");
}

}  // namespace
}  // namespace coop::rndv
