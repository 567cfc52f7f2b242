// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/board.h: offers of a receiver; first step by step, then between two threads, as between two processes.
#include "coop/rndv/board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace coop::rndv {
namespace {

constexpr OfferKey kWanted{.sender = 0x100000002, .context = 7, .tag = 33, .sequence = 65535, .bytes = 4096};
constexpr std::uint64_t kAddress = 0x7f0000001000;

// A receiver with one offer.
struct Offering {
    explicit Offering(const OfferKey& key = kWanted, std::uint32_t at = 5, bool blocking = true) : index(at) {
        generation = arm(board->slots[index]);
        open_offer(*board, index, generation, key, kAddress, blocking);
    }
    std::unique_ptr<Board> board = std::make_unique<Board>();
    std::uint32_t index, generation;
};

template <class Change>
OfferKey but(Change change) {
    OfferKey key = kWanted;
    change(key);
    return key;
}

TEST(Offers, the_message_that_fits_takes_it_and_learns_where_to_write) {
    Offering receiver;
    const auto taken = take_offer(*receiver.board, kWanted);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->slot, receiver.index);
    EXPECT_EQ(taken->generation, receiver.generation);
    EXPECT_EQ(taken->address, kAddress);
    EXPECT_TRUE(taken->blocking);
    EXPECT_FALSE(Offering(kWanted, 5, false).board->slots[5].offer.blocking.load());
}

TEST(Offers, an_offer_is_taken_once) {
    Offering receiver;
    EXPECT_TRUE(take_offer(*receiver.board, kWanted));
    EXPECT_FALSE(take_offer(*receiver.board, kWanted));
    EXPECT_FALSE(close_offer(*receiver.board, receiver.index, receiver.generation)) << "too late to take it back";
}

TEST(Offers, a_board_without_one_gives_none) {
    Board board;
    EXPECT_FALSE(take_offer(board, kWanted));
}

TEST(Offers, another_sender_communicator_tag_or_turn_does_not_fit) {
    const OfferKey others[] = {
        but([](OfferKey& k) { k.sender += 1; }),  but([](OfferKey& k) { k.sender ^= 1ull << 32; }),
        but([](OfferKey& k) { k.context += 1; }), but([](OfferKey& k) { k.tag += 1; }),
        but([](OfferKey& k) { k.tag = -33; }),    but([](OfferKey& k) { k.sequence = 65534; }),
        but([](OfferKey& k) { k.sequence = 0; }),
    };
    for (const OfferKey& key : others) {
        Offering receiver;
        EXPECT_FALSE(take_offer(*receiver.board, key));
        EXPECT_TRUE(take_offer(*receiver.board, kWanted)) << "it is still there";
    }
}

TEST(Offers, a_message_longer_than_the_buffer_does_not_fit_and_a_shorter_one_does) {
    Offering receiver;
    EXPECT_FALSE(take_offer(*receiver.board, but([](OfferKey& k) { k.bytes = 4097; })));
    EXPECT_TRUE(take_offer(*receiver.board, but([](OfferKey& k) { k.bytes = 1; })));
}

TEST(Offers, taken_back_is_gone) {
    Offering receiver;
    EXPECT_TRUE(close_offer(*receiver.board, receiver.index, receiver.generation));
    EXPECT_FALSE(take_offer(*receiver.board, kWanted));
    EXPECT_FALSE(close_offer(*receiver.board, receiver.index, receiver.generation)) << "once";
    EXPECT_EQ(receiver.board->open_offers.load(), 0u);
}

TEST(Offers, one_among_many_is_found) {
    auto board = std::make_unique<Board>();
    std::vector<std::uint32_t> generations;
    for (std::uint32_t i = 0; i < kSlots; ++i) {
        generations.push_back(arm(board->slots[i]));
        open_offer(*board, i, generations[i], but([&](OfferKey& k) { k.sender = i; }), kAddress + i, false);
    }
    for (std::uint32_t i : {0u, 63u, 31u, 32u}) {
        const auto taken = take_offer(*board, but([&](OfferKey& k) { k.sender = i; }));
        ASSERT_TRUE(taken) << i;
        EXPECT_EQ(taken->slot, i);
        EXPECT_EQ(taken->address, kAddress + i);
    }
    EXPECT_FALSE(take_offer(*board, but([](OfferKey& k) { k.sender = 64; })));
}

TEST(Offers, a_message_that_passed_by_moves_the_turn_on) {
    Offering receiver;
    const OfferKey next = but([](OfferKey& k) { k.sequence = 0; });  // 65535 + 1
    EXPECT_FALSE(take_offer(*receiver.board, next)) << "an earlier message may still want it";
    message_passed(*receiver.board, receiver.index, 0);
    EXPECT_FALSE(take_offer(*receiver.board, kWanted)) << "that one has had its turn";
    EXPECT_TRUE(take_offer(*receiver.board, next));
}

TEST(Offers, of_an_earlier_generation_cannot_be_closed) {
    Offering receiver;
    ASSERT_TRUE(close_offer(*receiver.board, receiver.index, receiver.generation));
    const std::uint32_t next = arm(receiver.board->slots[receiver.index]);
    open_offer(*receiver.board, receiver.index, next, kWanted, kAddress, false);
    EXPECT_FALSE(close_offer(*receiver.board, receiver.index, next - 1));
    EXPECT_EQ(receiver.board->slots[receiver.index].offer.phase.load(), stamped(next, Offer::kOpen));
}

TEST(Offers, taken_the_slot_serves_as_the_copy) {
    Offering receiver;
    const auto taken = take_offer(*receiver.board, kWanted);
    ASSERT_TRUE(taken);
    Claims sender, copies;
    sender.start(receiver.board->slots[taken->slot], Side::kSender, taken->generation, 2, false);
    EXPECT_EQ(sender.claim(), 1u);
    sender.copied();
    copies.start(receiver.board->slots[receiver.index], Side::kReceiver, receiver.generation, 2, false);
    EXPECT_EQ(copies.claim(), 0u);
    copies.copied();
    EXPECT_TRUE(sender.over());
}

// Whoever closes and whoever takes never both succeed, and never both fail.
TEST(TwoThreads, take_an_offer_or_take_it_back_but_not_both) {
    auto board = std::make_unique<Board>();
    std::atomic<int> round_begun{0}, round_taken{0};
    constexpr int kRounds = 3000;
    bool taken = false;
    std::thread sender([&] {
        for (int round = 1; round <= kRounds; ++round) {
            while (round_begun.load(std::memory_order_acquire) < round) std::this_thread::yield();
            if (round % 3 == 0) std::this_thread::yield();
            taken = take_offer(*board, kWanted).has_value();
            round_taken.store(round, std::memory_order_release);
        }
    });
    int taken_rounds = 0;
    for (int round = 1; round <= kRounds; ++round) {
        const std::uint32_t generation = arm(board->slots[9]);
        open_offer(*board, 9, generation, kWanted, kAddress, false);
        round_begun.store(round, std::memory_order_release);
        if (round % 2 == 0) std::this_thread::yield();
        const bool closed = close_offer(*board, 9, generation);
        while (round_taken.load(std::memory_order_acquire) < round) std::this_thread::yield();
        ASSERT_NE(closed, taken) << "round " << round;
        taken_rounds += taken;
    }
    sender.join();
    std::printf("taken in %d rounds of %d\n", taken_rounds, kRounds);
}

// A sender that looks while the owner opens offers with other contents in the
// same slot never gets a mixture of two.
TEST(TwoThreads, an_offer_taken_is_one_that_was_made) {
    auto board = std::make_unique<Board>();
    std::atomic<bool> stop{false};
    int taken = 0;
    std::thread sender([&] {
        for (std::uint32_t n = 0; !stop.load(std::memory_order_relaxed); ++n) {
            const std::uint32_t want = n % 4;
            const auto found = take_offer(
                *board, but([&](OfferKey& k) { k.tag = static_cast<std::int32_t>(want), k.bytes = 100 * want; }));
            if (!found) {
                if (n % 64 == 0) std::this_thread::yield();
                continue;
            }
            // The generation tells which offer it was.
            ASSERT_EQ(found->generation % 4, want);
            ASSERT_EQ(found->address, kAddress + found->generation);
            ++taken;
        }
    });
    for (int round = 0; round < 20000; ++round) {
        const std::uint32_t generation = arm(board->slots[3]);
        const std::uint32_t what = generation % 4;
        open_offer(*board, 3, generation,
                   but([&](OfferKey& k) { k.tag = static_cast<std::int32_t>(what), k.bytes = 100 * what; }),
                   kAddress + generation, false);
        if (round % 8 == 0) std::this_thread::yield();
        static_cast<void>(close_offer(*board, 3, generation));
    }
    stop.store(true);
    sender.join();
    std::printf("%d offers taken\n", taken);
}

}  // namespace
}  // namespace coop::rndv
