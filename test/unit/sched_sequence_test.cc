// SPDX-License-Identifier: BSD-3-Clause
//
// sched/sequence.h, sched/send_window.h: messages sent over many rails are delivered once and in order, and no rail
// runs far ahead.
#include "coop/sched/send_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace coop::sched {
namespace {

constexpr unsigned kRandomSeed = 7013;

struct Packet {
    SequenceNumber psn = 0;
};

template <std::size_t Window>
struct Receiver {
    explicit Receiver(SequenceNumber first = 0) : window(Window, first) {}
    ReorderWindow<Packet> window;
};

TEST(SendWindow, numbers_each_message_once_and_wraps) {
    SendWindow window(UINT32_MAX - 1);
    EXPECT_EQ(window.take(), UINT32_MAX - 1);
    EXPECT_EQ(window.take(), UINT32_MAX);
    EXPECT_EQ(window.take(), 0u);
    EXPECT_EQ(window.under_way(), 3u);
}

TEST(Site02SendWindow, is_full_while_the_first_message_has_not_landed) {
    SendWindow window(UINT32_MAX - 100);
    const SequenceNumber first = window.take();
    for (std::uint32_t i = 1; i < kSendWindow; ++i) {
        ASSERT_TRUE(window.has_room());
        window.landed(window.take());
    }
    EXPECT_FALSE(window.has_room());
    window.landed(first);
    EXPECT_EQ(window.under_way(), 0u) << "all the others had landed";
    EXPECT_TRUE(window.has_room());
}

TEST(Site02SendWindow, moves_to_the_first_message_that_has_not_landed) {
    SendWindow window;
    for (int i = 0; i < 10; ++i) (void)window.take();
    for (const SequenceNumber psn : {0u, 1u, 2u, 5u, 9u}) window.landed(psn);
    EXPECT_EQ(window.under_way(), 7u);
    window.landed(3);
    window.landed(4);
    EXPECT_EQ(window.under_way(), 4u);
}

TEST(Site02SendWindow, a_number_that_is_not_under_way_changes_nothing) {
    SendWindow window;
    for (int i = 0; i < 3; ++i) (void)window.take();
    window.landed(0);
    window.landed(0);
    window.landed(3);
    window.landed(UINT32_MAX);
    EXPECT_EQ(window.under_way(), 2u);
}

// In any order of arrival, no receiver has to hold more than a window of messages.
TEST(Site02SendWindow, what_a_receiver_holds_is_bounded) {
    std::mt19937 random(kRandomSeed);
    SendWindow window;
    ReorderWindow<Packet> receiver(kSendWindow);
    std::vector<Packet> packets(20'000);
    std::vector<std::vector<SequenceNumber>> rails(3);
    SequenceNumber sent = 0;
    std::uint32_t most_held = 0;
    while (sent < packets.size() || receiver.expected() < packets.size()) {
        while (sent < packets.size() && window.has_room()) rails[random() % 3].push_back(sent = window.take()), ++sent;
        // Rail 0 delivers only once half a window of messages from the others is held, or if the chosen rail is empty.
        auto& rail = rails[receiver.held() > kSendWindow / 2 ? 0 : 1 + random() % 2];
        auto& chosen = rail.empty() ? rails[0].empty() ? rails[1].empty() ? rails[2] : rails[1] : rails[0] : rail;
        ASSERT_FALSE(chosen.empty());
        const SequenceNumber psn = chosen.front();
        chosen.erase(chosen.begin());
        window.landed(psn);
        ASSERT_NE(receiver.on_arrival(psn, &packets[psn]), Arrival::kBeyondWindow);
        while (receiver.pop_next() != nullptr) {
        }
        most_held = std::max(most_held, receiver.held());
    }
    EXPECT_LT(most_held, kSendWindow);
    EXPECT_GT(most_held, kSendWindow / 4);
}

TEST(ReorderWindow, hands_on_at_once_what_is_in_order) {
    Receiver<4> receiver;
    Packet packet;
    for (SequenceNumber psn = 0; psn < 10; ++psn) {
        EXPECT_EQ(receiver.window.on_arrival(psn, &packet), Arrival::kInOrder);
        EXPECT_EQ(receiver.window.pop_next(), nullptr);
    }
    EXPECT_EQ(receiver.window.expected(), 10u);
}

TEST(ReorderWindow, holds_what_is_early_until_its_turn) {
    Receiver<4> receiver;
    Packet p0, p1, p2, p3;
    EXPECT_EQ(receiver.window.on_arrival(2, &p2), Arrival::kHeld);
    EXPECT_EQ(receiver.window.on_arrival(1, &p1), Arrival::kHeld);
    EXPECT_EQ(receiver.window.pop_next(), nullptr);
    EXPECT_EQ(receiver.window.on_arrival(0, &p0), Arrival::kInOrder);
    EXPECT_EQ(receiver.window.pop_next(), &p1);
    EXPECT_EQ(receiver.window.pop_next(), &p2);
    EXPECT_EQ(receiver.window.pop_next(), nullptr);
    EXPECT_EQ(receiver.window.on_arrival(3, &p3), Arrival::kInOrder);
}

TEST(ReorderWindow, recognises_replays_of_what_was_handed_on_and_of_what_it_holds) {
    Receiver<4> receiver;
    Packet p0, p2, again;
    EXPECT_EQ(receiver.window.on_arrival(0, &p0), Arrival::kInOrder);
    EXPECT_EQ(receiver.window.on_arrival(0, &again), Arrival::kDuplicate);
    EXPECT_EQ(receiver.window.on_arrival(2, &p2), Arrival::kHeld);
    EXPECT_EQ(receiver.window.on_arrival(2, &again), Arrival::kDuplicate);
    EXPECT_EQ(receiver.window.held(), 1u);
}

TEST(ReorderWindow, recognises_a_replay_of_what_is_about_to_be_popped) {
    Receiver<4> receiver;
    Packet p0, p1, again;
    EXPECT_EQ(receiver.window.on_arrival(1, &p1), Arrival::kHeld);
    EXPECT_EQ(receiver.window.on_arrival(0, &p0), Arrival::kInOrder);
    EXPECT_EQ(receiver.window.on_arrival(1, &again), Arrival::kDuplicate);
    EXPECT_EQ(receiver.window.pop_next(), &p1);
}

TEST(ReorderWindow, refuses_what_is_beyond_it_and_keeps_the_rest) {
    Receiver<4> receiver;
    Packet packet, p3;
    EXPECT_EQ(receiver.window.on_arrival(3, &p3), Arrival::kHeld);
    EXPECT_EQ(receiver.window.on_arrival(4, &packet), Arrival::kBeyondWindow);
    EXPECT_EQ(receiver.window.on_arrival(0x7fffffff, &packet), Arrival::kBeyondWindow);
    EXPECT_EQ(receiver.window.on_arrival(0x80000000, &packet), Arrival::kDuplicate)
        << "half of the numbers are in the past";
    EXPECT_EQ(receiver.window.held(), 1u);
    EXPECT_EQ(receiver.window.expected(), 0u);
}

TEST(ReorderWindow, gives_up_what_it_holds) {
    Receiver<8> receiver(UINT32_MAX);
    Packet a, b;
    EXPECT_EQ(receiver.window.on_arrival(3, &a), Arrival::kHeld);
    EXPECT_EQ(receiver.window.on_arrival(1, &b), Arrival::kHeld);
    const std::array<Packet*, 2> out = {receiver.window.pop_any(), receiver.window.pop_any()};
    EXPECT_EQ(std::count(out.begin(), out.end(), &a), 1);
    EXPECT_EQ(std::count(out.begin(), out.end(), &b), 1);
    EXPECT_EQ(receiver.window.pop_any(), nullptr);
}

TEST(ReorderWindow, takes_no_memory_while_all_is_in_order) {
    Receiver<1 << 20> receiver;
    Packet packet, early;
    for (SequenceNumber psn = 0; psn < 1000; ++psn)
        ASSERT_EQ(receiver.window.on_arrival(psn, &packet), Arrival::kInOrder);
    EXPECT_EQ(receiver.window.places(), 0u);
    EXPECT_EQ(receiver.window.on_arrival(1001, &early), Arrival::kHeld);
    EXPECT_EQ(receiver.window.places(), 64u);
}

TEST(ReorderWindow, grows_around_what_it_holds) {
    Receiver<1 << 20> receiver(UINT32_MAX - 40);
    std::vector<Packet> packets(5000);
    const auto arrive = [&](std::size_t i) {
        return receiver.window.on_arrival(UINT32_MAX - 40 + static_cast<SequenceNumber>(i), &packets[i]);
    };
    for (std::size_t i : {4999, 30, 63, 64, 1000, 50}) ASSERT_EQ(arrive(i), Arrival::kHeld) << i;
    for (std::size_t i : {63, 4999}) ASSERT_EQ(arrive(i), Arrival::kDuplicate) << i;
    std::vector<std::size_t> handed_on;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const Arrival arrival = arrive(i);
        if (arrival == Arrival::kInOrder) handed_on.push_back(i);
        while (Packet* packet = receiver.window.pop_next())
            handed_on.push_back(static_cast<std::size_t>(packet - packets.data()));
    }
    ASSERT_EQ(handed_on.size(), packets.size());
    EXPECT_TRUE(std::is_sorted(handed_on.begin(), handed_on.end()));
    EXPECT_EQ(receiver.window.held(), 0u);
}

// Packets that arrive in any order within the window, with replays, across the wrap-around.
TEST(ReorderWindow, any_interleaving_of_rails_comes_out_in_order_once) {
    for (unsigned seed = kRandomSeed; seed < kRandomSeed + 50; ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        std::mt19937 random(seed);
        constexpr std::size_t kPackets = 3000, kPlaces = 64;
        const SequenceNumber first = UINT32_MAX - 1000;
        Receiver<kPlaces> receiver(first);
        std::vector<Packet> packets(kPackets);
        std::vector<std::size_t> under_way;  // indices of packets below handed_on + kPlaces; some have arrived before
        std::size_t sent = 0, handed_on = 0;
        const auto hand_on = [&](const Packet* packet) { ASSERT_EQ(packet, &packets[handed_on++]); };

        while (handed_on < kPackets) {
            while (sent < kPackets && sent < handed_on + kPlaces && (under_way.empty() || random() % 3))
                under_way.push_back(sent++);
            const std::size_t index = random() % under_way.size();
            const std::size_t arrived = under_way[index];
            if (random() % 8)
                under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(index));  // else it will be replayed
            const std::size_t before = handed_on;
            const auto arrival = receiver.window.on_arrival(first + static_cast<SequenceNumber>(arrived),
                                                            &packets[arrived]);
            ASSERT_NE(arrival, Arrival::kBeyondWindow);
            if (arrival == Arrival::kInOrder) hand_on(&packets[arrived]);
            while (const Packet* packet = receiver.window.pop_next()) hand_on(packet);
            ASSERT_TRUE(arrived >= before || arrival == Arrival::kDuplicate);
            if (HasFatalFailure()) return;
        }
        EXPECT_EQ(receiver.window.held(), 0u);
        EXPECT_EQ(receiver.window.expected(), first + SequenceNumber{kPackets});
    }
}

}  // namespace
}  // namespace coop::sched
