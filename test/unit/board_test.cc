// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/board.h: tickets, returned chunks and generations; first step by step,
// then from two threads at a time, as two processes would.
#include "coop/rndv/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace coop::rndv {
namespace {

constexpr unsigned kRandomSeed = 2718;

// Two sides of one copy.
struct Pair {
    explicit Pair(std::uint32_t chunks, bool one_each = false) : generation(arm(slot)) {
        receiver.start(slot, Side::kReceiver, generation, chunks, one_each);
        sender.start(slot, Side::kSender, generation, chunks, one_each);
    }
    Claims& side(Side of) { return of == Side::kReceiver ? receiver : sender; }

    Slot slot;
    std::uint32_t generation;
    Claims receiver, sender;
};

std::vector<std::uint32_t> copy_all(Claims& side) {
    std::vector<std::uint32_t> chunks;
    while (auto chunk = side.claim()) {
        chunks.push_back(*chunk);
        side.copied();
    }
    return chunks;
}

using Chunks = std::vector<std::uint32_t>;

// --- tickets -------------------------------------------------------------------------

TEST(Tickets, the_receiver_works_from_the_front_and_the_sender_from_the_back) {
    Pair pair(5);
    EXPECT_EQ(pair.receiver.claim(), 0u);
    EXPECT_EQ(pair.sender.claim(), 4u);
    EXPECT_EQ(pair.sender.claim(), 3u);
    EXPECT_EQ(pair.receiver.claim(), 1u);
    EXPECT_EQ(pair.receiver.claim(), 2u);
    EXPECT_FALSE(pair.sender.claim());
    EXPECT_FALSE(pair.receiver.claim());
}

TEST(Tickets, one_side_alone_copies_everything) {
    Pair receiving(4), sending(4);
    EXPECT_EQ(copy_all(receiving.receiver), (Chunks{0, 1, 2, 3}));
    EXPECT_TRUE(receiving.sender.over()) << "the other side sees it";
    EXPECT_FALSE(receiving.sender.claim());
    EXPECT_EQ(copy_all(sending.sender), (Chunks{3, 2, 1, 0}));
    EXPECT_TRUE(sending.receiver.over());
}

TEST(Tickets, a_copy_is_over_when_all_is_copied_not_when_all_is_claimed) {
    Pair pair(2);
    ASSERT_TRUE(pair.receiver.claim());
    ASSERT_TRUE(pair.sender.claim());
    EXPECT_FALSE(pair.receiver.over());
    pair.receiver.copied();
    EXPECT_FALSE(pair.receiver.over());
    EXPECT_FALSE(pair.sender.over());
    pair.sender.copied();
    EXPECT_TRUE(pair.receiver.over());
    EXPECT_TRUE(pair.sender.over());
    EXPECT_FALSE(pair.receiver.stuck());
}

TEST(Tickets, a_single_chunk_goes_to_whoever_comes_first) {
    Pair pair(1);
    EXPECT_EQ(pair.sender.claim(), 0u);
    EXPECT_FALSE(pair.receiver.claim());
}

TEST(Tickets, every_chunk_is_claimed_once_whatever_the_interleaving) {
    for (std::uint32_t chunks = 1; chunks <= 8; ++chunks)
        for (std::uint32_t script = 0; script < (1u << chunks); ++script) {  // bit: whose turn
            Pair pair(chunks);
            std::multiset<std::uint32_t> claimed;
            for (std::uint32_t turn = 0; turn < chunks; ++turn) {
                const auto chunk = pair.side((script >> turn) & 1 ? Side::kSender : Side::kReceiver).claim();
                ASSERT_TRUE(chunk) << "turn " << turn << " of script " << script;
                claimed.insert(*chunk);
            }
            EXPECT_FALSE(pair.receiver.claim());
            EXPECT_FALSE(pair.sender.claim());
            for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
                ASSERT_EQ(claimed.count(chunk), 1u) << "script " << script;
        }
}

TEST(Tickets, of_fixed_halves_each_side_takes_its_own_and_no_more) {
    Pair pair(2, true);
    EXPECT_EQ(copy_all(pair.receiver), (Chunks{0}));
    EXPECT_FALSE(pair.receiver.claim()) << "the sender's half, however late it is";
    EXPECT_FALSE(pair.receiver.over());
    EXPECT_EQ(copy_all(pair.sender), (Chunks{1}));
    EXPECT_TRUE(pair.receiver.over());
}

// --- refusals ------------------------------------------------------------------------

TEST(Refusals, a_returned_chunk_is_copied_by_the_other_side) {
    for (Side refused : {Side::kReceiver, Side::kSender}) {
        Pair pair(4);
        Claims &weak = pair.side(refused), &strong = pair.side(other(refused));
        const auto chunk = weak.claim();
        ASSERT_TRUE(chunk);
        weak.refused(*chunk);
        EXPECT_FALSE(weak.claim()) << "who is refused once is not asked again";
        EXPECT_TRUE(strong.other_is_refused());
        EXPECT_FALSE(weak.other_is_refused());
        EXPECT_FALSE(strong.stuck());
        Chunks copied = copy_all(strong);
        EXPECT_EQ(copied.front(), *chunk) << "the returned one first";
        std::sort(copied.begin(), copied.end());
        EXPECT_EQ(copied, (Chunks{0, 1, 2, 3}));
        EXPECT_TRUE(weak.over());
        EXPECT_TRUE(strong.over());
    }
}

TEST(Refusals, of_fixed_halves_the_other_side_copies_both) {
    Pair pair(2, true);
    const auto chunk = pair.sender.claim();
    ASSERT_EQ(chunk, 1u);
    EXPECT_EQ(pair.receiver.claim(), 0u);
    pair.receiver.copied();
    EXPECT_FALSE(pair.receiver.claim());
    pair.sender.refused(*chunk);
    EXPECT_EQ(pair.receiver.claim(), 1u);
    pair.receiver.copied();
    EXPECT_TRUE(pair.sender.over());
}

TEST(Refusals, a_returned_chunk_is_claimed_once) {
    Pair pair(3);
    const auto chunk = pair.sender.claim();
    pair.sender.refused(*chunk);
    EXPECT_EQ(pair.receiver.claim(), *chunk);
    EXPECT_EQ(pair.receiver.claim(), 0u);
    EXPECT_EQ(pair.receiver.claim(), 1u);
    EXPECT_FALSE(pair.receiver.claim());
}

TEST(Refusals, both_sides_refused_is_stuck) {
    Pair pair(4);
    const auto front = pair.receiver.claim(), back = pair.sender.claim();
    EXPECT_FALSE(pair.receiver.stuck());
    pair.receiver.refused(*front);
    EXPECT_FALSE(pair.receiver.stuck());
    EXPECT_FALSE(pair.sender.stuck());
    pair.sender.refused(*back);
    EXPECT_TRUE(pair.receiver.stuck());
    EXPECT_TRUE(pair.sender.stuck());
    EXPECT_FALSE(pair.receiver.over());
    EXPECT_FALSE(pair.receiver.claim());
    EXPECT_FALSE(pair.sender.claim());
}

TEST(Refusals, a_side_that_takes_a_returned_chunk_and_is_refused_it_is_stuck) {
    Pair pair(1);
    const auto chunk = pair.receiver.claim();
    pair.receiver.refused(*chunk);
    const auto again = pair.sender.claim();
    ASSERT_EQ(again, chunk);
    pair.sender.refused(*again);
    EXPECT_TRUE(pair.receiver.stuck());
    EXPECT_TRUE(pair.sender.stuck());
}

TEST(Refusals, the_next_copy_of_the_slot_begins_without_them) {
    Pair pair(2);
    pair.receiver.refused(*pair.receiver.claim());
    pair.sender.refused(*pair.sender.claim());
    const std::uint32_t generation = arm(pair.slot);
    Claims receiver, sender;
    receiver.start(pair.slot, Side::kReceiver, generation, 2, false);
    sender.start(pair.slot, Side::kSender, generation, 2, false);
    EXPECT_FALSE(receiver.stuck());
    EXPECT_FALSE(receiver.other_is_refused());
    EXPECT_EQ(copy_all(receiver), (Chunks{0, 1}));
    EXPECT_TRUE(sender.over());
}

// --- generations ---------------------------------------------------------------------

TEST(Generations, rise_with_each_use_of_a_slot) {
    Slot slot;
    const std::uint32_t first = arm(slot);
    EXPECT_EQ(arm(slot), first + 1);
    EXPECT_EQ(arm(slot), first + 2);
}

TEST(Generations, wrap_without_harm) {
    Slot slot;
    slot.tickets.store(stamped(UINT32_MAX, 9));
    const std::uint32_t generation = arm(slot);
    EXPECT_EQ(generation, 0u);
    Claims side;
    side.start(slot, Side::kReceiver, generation, 3, false);
    EXPECT_EQ(copy_all(side), (Chunks{0, 1, 2}));
    EXPECT_TRUE(side.over());
}

TEST(Generations, a_late_side_finds_its_copy_over_and_leaves_the_next_one_alone) {
    Pair old(3);
    ASSERT_EQ(copy_all(old.receiver), (Chunks{0, 1, 2}));
    const std::uint32_t generation = arm(old.slot);  // the receiver uses its slot again
    Claims receiver, sender;
    receiver.start(old.slot, Side::kReceiver, generation, 3, false);
    sender.start(old.slot, Side::kSender, generation, 3, false);

    EXPECT_TRUE(old.sender.over());
    EXPECT_FALSE(old.sender.stuck());
    EXPECT_FALSE(old.sender.other_is_refused());
    EXPECT_FALSE(old.sender.claim());
    receiver.refused(*receiver.claim());
    EXPECT_FALSE(old.sender.claim()) << "a chunk that the new receiver has returned";
    EXPECT_FALSE(old.sender.other_is_refused());
    EXPECT_EQ(copy_all(sender), (Chunks{0, 2, 1}));
    EXPECT_TRUE(receiver.over());
}

// --- a damaged board -----------------------------------------------------------------

TEST(Claims, stay_within_the_plan_whatever_the_board_holds) {
    std::mt19937_64 random(kRandomSeed);
    SCOPED_TRACE(::testing::Message() << "seed " << kRandomSeed);
    for (int round = 0; round < 20000; ++round) {
        const auto chunks = static_cast<std::uint32_t>(1 + random() % 9);
        Pair pair(chunks);
        for (int i = 0; i < 12; ++i) {
            const auto wild = [&] {
                return random() % 2 ? random() : stamped(pair.generation, static_cast<std::uint32_t>(random() % 16));
            };
            switch (random() % 5) {
            case 0: pair.slot.tickets.store(wild()); break;
            case 1: pair.slot.returned[random() % 2].store(wild()); break;
            case 2: pair.slot.done.store(static_cast<std::uint32_t>(random() % 16)); break;
            case 3: pair.slot.refused.store(static_cast<std::uint32_t>(random())); break;
            default: break;
            }
            const auto chunk = pair.side(random() % 2 ? Side::kSender : Side::kReceiver).claim();
            ASSERT_LT(chunk.value_or(0), chunks);
            static_cast<void>(pair.receiver.stuck());
        }
    }
}

// --- two threads ---------------------------------------------------------------------

// Who copied each of `chunks` chunks. Written without further synchronisation, so that ThreadSanitizer detects two
// copiers of one chunk, and a reader that looks before the copy is over.
struct Copied {
    explicit Copied(std::uint32_t chunks) : by(chunks, 0) {}
    std::vector<int> by;
};

void copy_in_thread(Claims& side, Copied& copied, int who, unsigned refuse_at) {
    for (unsigned n = 0; !side.over(); ++n) {
        const auto chunk = side.claim();
        if (!chunk) {
            if (side.stuck()) return;
            std::this_thread::yield();
            continue;
        }
        if (n == refuse_at) {
            side.refused(*chunk);
            continue;
        }
        copied.by[*chunk] += who;
        side.copied();
    }
}

constexpr unsigned kNever = ~0u;

// --- what an HCA copies for the receiver ------------------------------------------------

TEST(Tickets, left_are_those_that_nobody_has_claimed) {
    Pair pair(3);
    EXPECT_EQ(pair.receiver.left(), 3u);
    pair.receiver.claim();
    pair.sender.claim();
    EXPECT_EQ(pair.receiver.left(), 1u);
    EXPECT_EQ(pair.sender.left(), 1u);
    pair.sender.claim();
    EXPECT_EQ(pair.receiver.left(), 0u);
}

TEST(Tickets, none_are_left_of_an_earlier_generation) {
    Pair pair(3);
    arm(pair.slot);
    EXPECT_EQ(pair.receiver.left(), 0u);
}

TEST(Refusals, chunks_behind_the_first_are_given_back_one_by_one) {
    Pair pair(4);
    for (std::uint32_t n = 0; n < 3; ++n) EXPECT_EQ(pair.receiver.claim(), n);
    pair.receiver.refused(0);
    EXPECT_TRUE(pair.receiver.is_refused());
    EXPECT_FALSE(pair.receiver.give_back(1));  // the first is still there
    EXPECT_EQ(pair.sender.claim(), 0u);
    EXPECT_TRUE(pair.receiver.give_back(1));
    EXPECT_FALSE(pair.receiver.give_back(2));
    EXPECT_EQ(pair.sender.claim(), 1u);
    EXPECT_TRUE(pair.receiver.give_back(2));
    EXPECT_EQ(copy_all(pair.sender), (Chunks{2, 3}));
}

TEST(Refusals, nothing_is_given_back_to_a_later_generation) {
    Pair pair(4);
    pair.receiver.claim();
    arm(pair.slot);
    EXPECT_FALSE(pair.receiver.give_back(0));
}

TEST(Keys, are_there_when_the_sender_has_put_all_of_them) {
    Slot slot;
    const Key key{1, 2, 3, 4, 5, 6, 7, 0xffffffff};
    const std::uint32_t generation = arm(slot);
    EXPECT_FALSE(published_key(slot, generation));
    slot.key[0].store(stamped(generation, 1));
    EXPECT_FALSE(published_key(slot, generation));
    publish_key(slot, generation, key);
    EXPECT_EQ(published_key(slot, generation), key);
}

TEST(Keys, of_another_generation_are_none) {
    Slot slot;
    const std::uint32_t before = arm(slot);
    publish_key(slot, before, {9});
    const std::uint32_t now = arm(slot);
    EXPECT_FALSE(published_key(slot, now));
    publish_key(slot, now, {1});
    slot.key[4].store(stamped(before, 9));  // the sender before was late
    EXPECT_FALSE(published_key(slot, now));
}

TEST(Keys, read_while_they_are_written_are_whole_or_not_there) {
    Slot slot;
    constexpr std::uint32_t kLast = 20'000;
    std::uint32_t first = arm(slot);
    std::thread sender([&] {
        for (std::uint32_t g = first; g < kLast; ++g) {
            Key key;
            key.fill(g);
            publish_key(slot, g, key);
        }
    });
    int found = 0;
    for (std::uint32_t g = first; g < kLast; ++g)
        if (const auto key = published_key(slot, g)) {
            for (const std::uint32_t word : *key) ASSERT_EQ(word, g);
            ++found;
        }
    sender.join();
    std::printf("%d keys found\n", found);
}

// --- two threads, continued: whole copies ---------------------------------------------

TEST(TwoThreads, copy_every_chunk_once) {
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t chunks = 1 + static_cast<std::uint32_t>(round) % 97;
        Pair pair(chunks);
        Copied copied(chunks);
        std::thread thread([&] { copy_in_thread(pair.sender, copied, 100, kNever); });
        copy_in_thread(pair.receiver, copied, 1, kNever);
        for (int by : copied.by)
            ASSERT_TRUE(by == 1 || by == 100) << by << ", round " << round;  // seen before the other thread ends
        thread.join();
    }
}

TEST(TwoThreads, copy_every_chunk_once_while_one_side_is_refused) {
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t chunks = 1 + static_cast<std::uint32_t>(round) % 23;
        Pair pair(chunks);
        Copied copied(chunks);
        const bool sender_fails = round % 2 == 0;
        const unsigned at = static_cast<unsigned>(round) % 5;
        std::thread thread([&] { copy_in_thread(pair.sender, copied, 100, sender_fails ? at : kNever); });
        copy_in_thread(pair.receiver, copied, 1, sender_fails ? kNever : at);
        ASSERT_TRUE(pair.receiver.over());
        for (int by : copied.by) ASSERT_TRUE(by == 1 || by == 100) << by << ", round " << round;
        thread.join();
        ASSERT_TRUE(pair.sender.over());
    }
}

TEST(TwoThreads, that_are_both_refused_end_up_stuck_or_done) {
    int stuck = 0;
    for (int round = 0; round < 300; ++round) {
        Pair pair(16);
        Copied copied(16);
        std::thread thread([&] { copy_in_thread(pair.sender, copied, 100, 2); });
        copy_in_thread(pair.receiver, copied, 1, 1);
        thread.join();
        ASSERT_EQ(pair.receiver.stuck(), pair.sender.stuck());
        ASSERT_NE(pair.receiver.stuck(), pair.receiver.over());
        for (int by : copied.by) ASSERT_TRUE(by == 0 || by == 1 || by == 100) << by;
        stuck += pair.receiver.stuck();
    }
    EXPECT_GT(stuck, 0);
}

// The receiver frees and arms its slot at once; the sender is still looking at
// the last copy when the next one begins.
TEST(TwoThreads, use_one_slot_time_and_again) {
    constexpr std::uint32_t kRounds = 3000, kChunks = 7;
    Slot slot;
    std::atomic<std::uint64_t> grant{0};  // generation of the copy that the sender may join; 0: none yet
    std::vector<Copied> copied(kRounds, Copied(kChunks));
    std::thread thread([&] {
        std::uint32_t last = 0;
        for (std::uint32_t round = 0; round < kRounds;) {
            const auto granted = static_cast<std::uint32_t>(grant.load(std::memory_order_acquire));
            if (granted == last) {
                std::this_thread::yield();
                continue;
            }
            round = granted;
            last = granted;
            Claims sender;
            sender.start(slot, Side::kSender, granted, kChunks, false);
            copy_in_thread(sender, copied[granted - 1], 100, kNever);
        }
    });
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
        ASSERT_EQ(arm(slot), round);
        Claims receiver;
        receiver.start(slot, Side::kReceiver, round, kChunks, false);
        grant.store(round, std::memory_order_release);
        copy_in_thread(receiver, copied[round - 1], 1, kNever);
        for (int by : copied[round - 1].by) ASSERT_TRUE(by == 1 || by == 100) << by << ", round " << round;
    }
    thread.join();
}

}  // namespace
}  // namespace coop::rndv
