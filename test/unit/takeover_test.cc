// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/takeover.h: a side takes over the chunks of the other one if that makes no
// progress. First the decision, then whole copies in which one side has left.
#include "coop/rndv/takeover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace coop::rndv {
namespace {

constexpr std::uint64_t kPatience = 2'000'000;  // ns
constexpr Split kAllSplits[] = {Split::kBoth, Split::kHalves, Split::kReceiverLeads, Split::kSenderLeads};
constexpr Side kBothSides[] = {Side::kReceiver, Side::kSender};

Takeover standing_by() {
    Takeover takeover;
    takeover.start(Split::kSenderLeads, Side::kReceiver);
    return takeover;
}

// --- the sides that copy from the start ---------------------------------------------------------

TEST(Site04Takeover, the_side_that_leads_or_shares_may_claim_from_the_start) {
    for (Side side : kBothSides) {
        EXPECT_TRUE(copies_from_the_start(Split::kBoth, side));
        EXPECT_FALSE(copies_from_the_start(Split::kHalves, side)) << "one half alone";
        EXPECT_EQ(copies_from_the_start(Split::kReceiverLeads, side), side == Side::kReceiver);
        EXPECT_EQ(copies_from_the_start(Split::kSenderLeads, side), side == Side::kSender);
    }
}

TEST(Site04Takeover, a_side_that_may_claim_all_never_takes_over) {
    Takeover takeover;
    takeover.start(Split::kBoth, Side::kSender);
    EXPECT_TRUE(takeover.may_claim_all());
    for (std::uint64_t now = 0; now < 10 * kPatience; now += kPatience) EXPECT_FALSE(takeover.look({}, now, kPatience));
}

// --- when --------------------------------------------------------------------------------

TEST(Site04Takeover, happens_once_when_nothing_has_moved_for_as_long_as_the_patience_lasts) {
    Takeover takeover = standing_by();
    const Progress still{7, false};
    EXPECT_FALSE(takeover.look(still, 100, kPatience)) << "the first look";
    EXPECT_FALSE(takeover.look(still, 100 + kPatience - 1, kPatience));
    EXPECT_FALSE(takeover.may_claim_all());
    EXPECT_TRUE(takeover.look(still, 100 + kPatience, kPatience));
    EXPECT_TRUE(takeover.may_claim_all());
    EXPECT_FALSE(takeover.look(still, 100 + 5 * kPatience, kPatience)) << "it is told once";
}

TEST(Site04Takeover, every_move_begins_the_wait_anew) {
    Takeover takeover = standing_by();
    std::uint64_t now = 5;
    for (std::uint64_t moves = 0; moves < 10; ++moves, now += kPatience - 1)
        EXPECT_FALSE(takeover.look({moves, false}, now, kPatience));
    EXPECT_TRUE(takeover.look({9, false}, now - (kPatience - 1) + kPatience, kPatience));
}

TEST(Site04Takeover, a_chunk_that_is_being_copied_is_waited_for_however_long_it_takes) {
    Takeover takeover = standing_by();
    std::uint64_t last = 0;
    for (std::uint64_t now = 0; now < 1000 * kPatience; now += kPatience)
        EXPECT_FALSE(takeover.look({3, true}, last = now, kPatience));
    EXPECT_FALSE(takeover.look({3, false}, last + kPatience - 1, kPatience))
        << "the wait begins with the last look at that copy";
    EXPECT_TRUE(takeover.look({3, false}, last + kPatience, kPatience));
}

TEST(Site04Takeover, a_side_that_was_away_itself_takes_over_at_its_second_look) {
    Takeover takeover = standing_by();
    EXPECT_FALSE(takeover.look({}, 0, kPatience));
    EXPECT_TRUE(takeover.look({}, 3'600'000'000'000, kPatience)) << "the other side had all that time";
}

TEST(Site04Takeover, without_patience_it_happens_at_the_first_look_at_a_chunk_that_is_free) {
    Takeover takeover = standing_by();
    EXPECT_FALSE(takeover.look({1, true}, 10, 0));
    EXPECT_TRUE(takeover.look({1, false}, 10, 0));
}

TEST(Site04Takeover, the_next_copy_begins_with_the_wait) {
    Takeover takeover = standing_by();
    EXPECT_FALSE(takeover.look({}, 0, kPatience));
    EXPECT_TRUE(takeover.look({}, kPatience, kPatience));
    takeover.start(Split::kSenderLeads, Side::kReceiver);
    EXPECT_FALSE(takeover.may_claim_all());
    EXPECT_FALSE(takeover.look({}, 5 * kPatience, kPatience));
}

// --- what it sees ------------------------------------------------------------------------

struct Pair {
    explicit Pair(std::uint32_t chunks, bool one_each = false) {
        const std::uint32_t generation = arm(slot);
        receiver.start(slot, Side::kReceiver, generation, chunks, one_each);
        sender.start(slot, Side::kSender, generation, chunks, one_each);
    }
    Claims& side(Side of) { return of == Side::kReceiver ? receiver : sender; }
    Slot slot;
    Claims receiver, sender;
};

TEST(Site04Progress, advances_with_each_chunk_claimed_and_copied) {
    Pair pair(3);
    std::vector<std::uint64_t> seen{pair.receiver.progress().moves};
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(pair.sender.claim());
        seen.push_back(pair.receiver.progress().moves);
        pair.sender.copied();
        seen.push_back(pair.receiver.progress().moves);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "all are different";
}

TEST(Site04Progress, a_chunk_is_being_copied_from_its_claim_until_it_is_copied_or_returned) {
    Pair pair(4);
    EXPECT_FALSE(pair.receiver.progress().is_being_copied);
    const auto first = pair.sender.claim();
    EXPECT_TRUE(pair.receiver.progress().is_being_copied);
    pair.sender.copied();
    EXPECT_FALSE(pair.receiver.progress().is_being_copied);
    const auto second = pair.sender.claim();
    EXPECT_NE(first, second);
    EXPECT_TRUE(pair.sender.give_back(*second));
    EXPECT_FALSE(pair.receiver.progress().is_being_copied);
    const auto third = pair.receiver.claim();
    EXPECT_EQ(third, second);
    EXPECT_TRUE(pair.sender.progress().is_being_copied);
}

TEST(Site04Returned, a_chunk_that_a_side_could_not_copy_for_a_moment_is_claimed_again_by_either) {
    for (Side again : kBothSides) {
        Pair pair(4);
        const auto chunk = pair.sender.claim();
        ASSERT_TRUE(pair.sender.give_back(*chunk));
        EXPECT_FALSE(pair.receiver.other_is_refused());
        EXPECT_EQ(pair.side(again).claim(), chunk);
        EXPECT_NE(pair.side(other(again)).claim(), chunk) << "once";
    }
}

// --- whole copies ------------------------------------------------------------------------

// Drives one side in the manner of CopySide (copy_side.h): claims the chunks that it may claim, and copies them.
struct Driver {
    Driver(Pair& pair, Split split, Side side) : claims(pair.side(side)), split_(split) { takeover.start(split, side); }

    // One step. Returns false if it has nothing to do.
    bool step(std::uint64_t now) {
        if (takeover.may_claim_all() || split_ == Split::kHalves || claims.other_is_refused())
            if (claims.claim()) {
                claims.copied();
                return true;
            }
        if (!takeover.look(claims.progress(), now, kPatience)) return false;
        claims.take_all();
        return true;
    }

    Claims& claims;
    Takeover takeover;

private:
    Split split_;
};

TEST(Site04Copy, either_side_ends_it_alone_wherever_the_other_one_has_left) {
    constexpr std::uint32_t kChunks = 6;
    for (Split split : kAllSplits)
        for (Side stays : kBothSides)
            for (int steps_of_the_other = 0; steps_of_the_other <= 3; ++steps_of_the_other) {
                const std::uint32_t chunks = split == Split::kHalves ? 2 : kChunks;
                Pair pair(chunks, split == Split::kHalves);
                Driver one(pair, split, stays), gone(pair, split, other(stays));
                std::uint64_t now = 1;
                for (int i = 0; i < steps_of_the_other; ++i, now += 10) {
                    gone.step(now);
                    one.step(now);
                }
                for (int looks = 0; looks < 100 && !one.claims.over(); ++looks, now += kPatience / 10) one.step(now);
                EXPECT_TRUE(one.claims.over())
                    << "split " << int(split) << ", side " << int(stays) << ", after " << steps_of_the_other;
                EXPECT_FALSE(gone.claims.claim()) << "a side that comes back finds nothing to do";
            }
}

TEST(Site04Copy, a_side_that_left_with_a_returned_chunk_is_not_waited_for) {
    for (Split split : kAllSplits) {
        const std::uint32_t chunks = split == Split::kHalves ? 2 : 5;
        Pair pair(chunks, split == Split::kHalves);
        Driver receiver(pair, split, Side::kReceiver);
        const auto chunk = pair.sender.claim();
        ASSERT_TRUE(pair.sender.give_back(*chunk));
        for (std::uint64_t now = 1; now < 10 * kPatience && !pair.receiver.over(); now += kPatience / 4)
            receiver.step(now);
        EXPECT_TRUE(pair.receiver.over()) << int(split);
    }
}

// If both are active, only the side that should copy does, however often the other one looks.
TEST(Site04Copy, a_side_that_stands_by_copies_nothing_while_the_other_one_moves) {
    Pair pair(50);
    Driver receiver(pair, Split::kSenderLeads, Side::kReceiver), sender(pair, Split::kSenderLeads, Side::kSender);
    for (std::uint64_t now = 1; !pair.sender.over(); now += kPatience / 2) {
        sender.step(now);
        EXPECT_FALSE(receiver.step(now));
    }
    EXPECT_FALSE(receiver.takeover.may_claim_all());
}

}  // namespace
}  // namespace coop::rndv
