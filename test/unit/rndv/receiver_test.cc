// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/receiver.h: every event in every step, then whole messages.
#include "coop/rndv/receiver.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace coop::rndv {

std::ostream& operator<<(std::ostream& out, RecvStep step) { return out << name(step); }

namespace {

constexpr RecvStep kPosted = RecvStep::kPosted, kPrepare = RecvStep::kPrepare, kGrant = RecvStep::kGrant,
                   kLanding = RecvStep::kLanding, kGet = RecvStep::kGet, kFin = RecvStep::kFin, kCopy = RecvStep::kCopy,
                   kOver = RecvStep::kOver;
const RecvStep kAllSteps[] = {kPosted, kPrepare, kGrant, kLanding, kGet, kFin, kCopy, kOver};

constexpr std::uint64_t kBytes = 1 << 20;

// A transport that gets and puts; the wish decides the row.
Situation reading() {
    Situation s;
    s.bytes = kBytes;
    s.can_get = s.can_put = true;
    return s;
}
Situation with_wish(Wish wish, Situation s = reading()) {
    s.wish = wish;
    return s;
}
Situation sharing() {
    Situation s = with_wish(Wish::kCoop);
    s.same_node = s.can_share = true;
    return s;
}
const Choice kOfferRget{Row::kRget, Reason::kReceiverReads}, kOfferSend{Row::kSend, Reason::kBelowRdmaMin},
    kOfferRtr{Row::kRtr, Reason::kOffered};

bool rts(Receiver& r, const Situation& s, const Choice& offer = kOfferRget, std::uint64_t inline_bytes = 0) {
    return r.on_rts(offer, s, kBytes, inline_bytes);
}

// A receiver in this step; in kPrepare it prepares a read.
void bring_to(Receiver& r, RecvStep step) {
    r.start();
    switch (step) {
    case kPosted: break;
    case kPrepare: rts(r, reading()); break;
    case kGrant: rts(r, with_wish(Wish::kSend)); break;
    case kLanding:
        rts(r, with_wish(Wish::kSend));
        r.granting();
        break;
    case kGet:
        rts(r, reading());
        r.prepared();
        break;
    case kFin:
        rts(r, reading());
        r.prepared();
        r.read_to(kBytes, false);
        break;
    case kCopy: rts(r, sharing(), kOfferRtr); break;
    case kOver:
        rts(r, sharing(), kOfferRtr);
        r.copied();
        break;
    }
    ASSERT_EQ(r.step(), step);
}

// --- every event in every step ------------------------------------------------------------

struct Event {
    const char* name;
    std::function<bool(Receiver&)> send;
    std::map<RecvStep, RecvStep> leads_to;  // the steps that take it; it changes nothing in any other
};

const Event kEvents[] = {
    {"on_rts of a message to read", [](Receiver& r) { return rts(r, reading()); }, {{kPosted, kPrepare}}},
    {"on_rts of a message to copy together", [](Receiver& r) { return rts(r, sharing()); }, {{kPosted, kPrepare}}},
    {"on_rts of a message in fragments",
     [](Receiver& r) { return rts(r, with_wish(Wish::kSend)); },
     {{kPosted, kGrant}}},
    {"on_rts with the whole message",
     [](Receiver& r) {
         return rts(r, reading(), {Row::kEager, Reason::kSynchronousFitsInline}, kBytes);
     },
     {{kPosted, kGrant}}},
    {"on_rts for an offered receive", [](Receiver& r) { return rts(r, sharing(), kOfferRtr); }, {{kPosted, kCopy}}},
    {"prepared", [](Receiver& r) { return r.prepared(); }, {{kPrepare, kGet}}},
    {"lacks memory", [](Receiver& r) { return r.lacks(Lack::kMemory); }, {{kPrepare, kPrepare}}},
    {"granting", [](Receiver& r) { return r.granting(); }, {{kGrant, kLanding}}},
    {"grant_refused", [](Receiver& r) { return r.grant_refused(); }, {{kLanding, kGrant}, {kCopy, kPrepare}}},
    {"read_to the end", [](Receiver& r) { return r.read_to(kBytes, false); }, {{kGet, kFin}}},
    {"read_to the end, followed by a FIN", [](Receiver& r) { return r.read_to(kBytes, true); }, {{kGet, kOver}}},
    {"read_to the middle", [](Receiver& r) { return r.read_to(kBytes / 2, false); }, {{kGet, kPrepare}}},
    {"read_to beyond the end", [](Receiver& r) { return r.read_to(kBytes + 1, false); }, {}},
    {"fin_out", [](Receiver& r) { return r.fin_out(); }, {{kFin, kOver}}},
    {"copied", [](Receiver& r) { return r.copied(); }, {{kCopy, kOver}}},
    {"stuck", [](Receiver& r) { return r.stuck(0); }, {{kCopy, kGrant}}},
    {"on_bytes", [](Receiver& r) { return r.on_bytes(100); }, {{kLanding, kLanding}}},
    {"on_bytes, too many", [](Receiver& r) { return r.on_bytes(kBytes + 1); }, {}},
};

TEST(RndvReceiver, takes_each_event_in_its_steps_and_ignores_it_in_all_others) {
    for (const Event& event : kEvents)
        for (const RecvStep step : kAllSteps) {
            Receiver r;
            bring_to(r, step);
            const auto expected = event.leads_to.find(step);
            const bool is_taken = expected != event.leads_to.end();
            EXPECT_EQ(event.send(r), is_taken) << event.name << " in " << step;
            EXPECT_EQ(r.step(), is_taken ? expected->second : step) << event.name << " in " << step;
        }
}

TEST(RndvReceiver, next_says_what_each_step_has_to_do) {
    const std::map<RecvStep, RecvDo> expected = {
        {kPosted, RecvDo::kWait}, {kPrepare, RecvDo::kPrepare}, {kGrant, RecvDo::kGrant}, {kLanding, RecvDo::kWait},
        {kGet, RecvDo::kGet},     {kFin, RecvDo::kSendFin},     {kCopy, RecvDo::kCopy},   {kOver, RecvDo::kEnd}};
    for (const auto& [step, action] : expected) {
        Receiver r;
        bring_to(r, step);
        EXPECT_EQ(r.next(), action) << step;
    }
}

// --- whole messages -----------------------------------------------------------------------

TEST(RndvReceiver, ends_once) {
    Receiver r;
    bring_to(r, kOver);
    EXPECT_EQ(r.next(), RecvDo::kEnd);
    EXPECT_EQ(r.next(), RecvDo::kWait);
}

TEST(RndvReceiver, fragments_end_the_message_when_all_bytes_are_here) {
    Receiver r;
    r.start();
    ASSERT_TRUE(rts(r, with_wish(Wish::kSend), kOfferSend, 1000));
    EXPECT_EQ(r.from(), 1000u) << "what came with the RTS is not asked for";
    EXPECT_FALSE(r.takes_bytes()) << "nothing is granted yet";
    EXPECT_TRUE(r.granting());
    EXPECT_TRUE(r.takes_bytes());
    EXPECT_TRUE(r.on_bytes(kBytes - 2000));
    EXPECT_EQ(r.next(), RecvDo::kWait);
    EXPECT_TRUE(r.on_bytes(1000));
    EXPECT_EQ(r.landed(), kBytes);
    EXPECT_EQ(r.next(), RecvDo::kEnd);
    EXPECT_FALSE(r.on_bytes(1)) << "nothing is due any more";
}

TEST(RndvReceiver, a_message_that_came_whole_is_granted_nothing_and_ends) {
    Receiver r;
    r.start();
    ASSERT_TRUE(rts(r, reading(), {Row::kEager, Reason::kSynchronousFitsInline}, kBytes));
    EXPECT_EQ(r.next(), RecvDo::kGrant);
    EXPECT_EQ(r.from(), r.wanted());
    EXPECT_EQ(r.choice().reason, Reason::kSynchronousFitsInline);
    r.granting();
    EXPECT_EQ(r.next(), RecvDo::kEnd);
}

TEST(RndvReceiver, of_a_message_longer_than_the_buffer_only_what_fits_is_asked_for) {
    Receiver r;
    r.start();
    ASSERT_TRUE(r.on_rts(kOfferSend, with_wish(Wish::kSend), 0, 0));
    EXPECT_EQ(r.choice().reason, Reason::kNothingLeft);
    r.granting();
    EXPECT_EQ(r.next(), RecvDo::kEnd);
}

TEST(RndvReceiver, nothing_is_left_to_copy_together) {
    Receiver r;
    r.start();
    ASSERT_TRUE(r.on_rts({Row::kCoop, Reason::kBothWait}, sharing(), 0, 0));
    EXPECT_EQ(r.choice(), (Choice{Row::kRget, Reason::kNothingLeft})) << "a grant of coop would name a slot";
}

TEST(RndvReceiver, the_reason_of_the_sender_stands_if_neither_side_can_do_better_than_fragments) {
    Receiver r;
    r.start();
    Situation s = reading();
    s.can_get = s.can_put = false;
    ASSERT_TRUE(rts(r, s, kOfferSend));
    EXPECT_EQ(r.choice(), kOfferSend);
}

TEST(RndvReceiver, a_copy_of_both_sides_is_prepared_granted_and_driven) {
    Receiver r;
    r.start();
    ASSERT_TRUE(rts(r, sharing()));
    EXPECT_TRUE(is_shared(r.choice()));
    EXPECT_TRUE(r.prepared());
    EXPECT_EQ(r.next(), RecvDo::kGrant);
    EXPECT_TRUE(r.granting());
    EXPECT_EQ(r.next(), RecvDo::kCopy);
    EXPECT_TRUE(r.copied());
    EXPECT_EQ(r.landed(), kBytes);
    EXPECT_EQ(r.next(), RecvDo::kEnd);
}

TEST(RndvReceiver, without_a_slot_it_reads) {
    Receiver r;
    r.start();
    ASSERT_TRUE(rts(r, sharing()));
    EXPECT_TRUE(r.lacks(Lack::kSlot));
    EXPECT_EQ(r.choice(), (Choice{Row::kRget, Reason::kNoSlot}));
    EXPECT_TRUE(r.prepared());
    EXPECT_EQ(r.next(), RecvDo::kGet);
}

TEST(RndvReceiver, without_room_for_the_grant_of_a_copy_it_reads) {
    Receiver r;
    r.start();
    ASSERT_TRUE(rts(r, sharing()));
    r.prepared();
    r.granting();
    EXPECT_TRUE(r.grant_refused());
    EXPECT_EQ(r.choice(), (Choice{Row::kRget, Reason::kNoSlot}));
    EXPECT_EQ(r.next(), RecvDo::kPrepare);
}

TEST(RndvReceiver, without_memory_it_ends_with_fragments_from_every_row) {
    for (const Situation& s : {reading(), with_wish(Wish::kRput), with_wish(Wish::kRget), sharing(),
                               with_wish(Wish::kRput, sharing()), with_wish(Wish::kHybrid, sharing())}) {
        Receiver r;
        r.start();
        ASSERT_TRUE(rts(r, s));
        int lacks = 0;
        for (; r.step() == kPrepare; ++lacks) r.lacks(Lack::kMemory);
        EXPECT_LE(lacks, 3);
        EXPECT_EQ(r.next(), RecvDo::kGrant);
        EXPECT_EQ(r.choice().row, Row::kSend);
    }
}

TEST(RndvReceiver, a_read_that_is_refused_goes_on_where_it_stopped) {
    Receiver r;
    bring_to(r, kGet);
    EXPECT_TRUE(r.read_to(1000, false));
    EXPECT_EQ(r.from(), 1000u);
    EXPECT_EQ(r.landed(), 1000u);
    EXPECT_EQ(r.choice(), (Choice{Row::kRput, Reason::kGetRefused}));
    EXPECT_TRUE(r.prepared());
    EXPECT_TRUE(r.granting());
    EXPECT_TRUE(r.on_bytes(kBytes - 1000));
    EXPECT_EQ(r.next(), RecvDo::kEnd);
}

TEST(RndvReceiver, a_stuck_copy_is_granted_as_fragments_from_its_first_byte) {
    Receiver r;
    bring_to(r, kCopy);
    EXPECT_TRUE(r.stuck(0));
    EXPECT_EQ(r.choice(), (Choice{Row::kSend, Reason::kRdmaRefused}));
    EXPECT_EQ(r.from(), 0u);
    EXPECT_TRUE(r.granting());
    EXPECT_TRUE(r.on_bytes(kBytes));
    EXPECT_EQ(r.next(), RecvDo::kEnd);
}

TEST(RndvReceiver, an_engine_is_used_again) {
    Receiver r;
    for (int i = 0; i < 3; ++i) {
        bring_to(r, kOver);
        EXPECT_EQ(r.next(), RecvDo::kEnd);
    }
}

TEST(RndvReceiver, has_a_word_for_each_step) {
    for (const RecvStep step : kAllSteps) EXPECT_STRNE(name(step), "unknown");
    EXPECT_STREQ(name(static_cast<RecvStep>(kRecvSteps)), "unknown");
}

}  // namespace
}  // namespace coop::rndv
