// SPDX-License-Identifier: BSD-3-Clause
//
// sched/held.h: what is kept until the peer's process has it, and what it takes for a repetition.
#include "coop/sched/held.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "coop/sched/send_window.h"

namespace coop::sched {
namespace {

struct Packet {
    int id = 0;
};

TEST(Held, keeps_packets_until_they_are_acknowledged) {
    Held<Packet> held(UINT32_MAX - 1);  // numbers wrap
    std::vector<Packet> packets(100);
    std::vector<const Packet*> released;
    for (std::uint32_t i = 0; i < 100; ++i) held.hold(UINT32_MAX - 1 + i, packets[i]);
    EXPECT_EQ(held.size(), 100u);
    held.acknowledge(UINT32_MAX - 1 + 40, [&](Packet& packet) { released.push_back(&packet); });
    ASSERT_EQ(released.size(), 40u);
    for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(released[i], &packets[i]);
    std::uint32_t number = UINT32_MAX - 1 + 40;
    held.for_each([&](SequenceNumber each, Held<Packet>::Place& place) {
        EXPECT_EQ(each, number);
        EXPECT_EQ(place.packet, &packets[number - (UINT32_MAX - 1)]);
        ++number;
    });
    EXPECT_EQ(number, UINT32_MAX - 1 + 100);
}

TEST(Held, keeps_copies_where_they_are_while_it_grows) {
    Held<Packet> held;
    std::vector<std::byte*> places;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        places.push_back(held.copy(i, 100 + i % 7, static_cast<RailIndex>(i % 3), i));
        std::memset(places.back(), static_cast<int>(i), 100 + i % 7);
    }
    held.for_each([&](SequenceNumber number, Held<Packet>::Place& place) {
        EXPECT_EQ(place.packet, nullptr);
        EXPECT_EQ(place.copy, places[number]);
        EXPECT_EQ(place.bytes, 100 + number % 7);
        EXPECT_EQ(place.rail, number % 3);
        EXPECT_EQ(place.address, number);
        for (std::uint32_t i = 0; i < place.bytes; ++i) ASSERT_EQ(place.copy[i], static_cast<std::byte>(number));
    });
}

TEST(Held, frees_the_memory_of_copies_that_are_acknowledged) {
    Held<Packet> held;
    const auto none = [](Packet&) { FAIL(); };
    std::size_t most = 0;
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        held.copy(i, 64, 0, 0);
        if (i % 64 == 63) held.acknowledge(i + 1, none);
        most = std::max(most, held.memory_bytes());
    }
    EXPECT_LE(most, 32u * 1024);
}

TEST(Held, takes_copies_of_any_length) {
    Held<Packet> held;
    const auto none = [](Packet&) { FAIL(); };
    for (std::uint32_t i = 0; i < 100; ++i)
        std::memset(held.copy(i, 1 + 997 * i, 0, i), static_cast<int>(i), 1 + 997 * i);
    held.for_each([&](SequenceNumber number, Held<Packet>::Place& place) {
        ASSERT_EQ(place.bytes, 1 + 997 * number);
        for (std::uint32_t i = 0; i < place.bytes; ++i) ASSERT_EQ(place.copy[i], static_cast<std::byte>(number));
    });
    held.acknowledge(100, none);
    held.copy(100, 64, 0, 0);
    held.acknowledge(101, none);
    EXPECT_LE(held.memory_bytes(), 128 * 32 + 2 * 2048u) << "only ordinary chunks are kept";
}

TEST(Held, does_not_repeat_what_is_forgotten) {
    Held<Packet> held;
    Packet first, second;
    held.hold(0, first);
    held.hold(1, second);
    held.forget(0);
    held.forget(7);  // not held
    int packets = 0;
    held.for_each([&](SequenceNumber, Held<Packet>::Place& place) { packets += place.packet != nullptr; });
    EXPECT_EQ(packets, 1);
    int released = 0;
    held.acknowledge(2, [&](Packet&) { ++released; });
    EXPECT_EQ(released, 1);
}

TEST(SeenNumbers, tells_first_arrivals_from_repetitions) {
    using Seen = SeenNumbers::Seen;
    SeenNumbers seen;
    EXPECT_EQ(seen.on_arrival(1), Seen::kFirst);
    EXPECT_EQ(seen.expected(), 0u);
    EXPECT_EQ(seen.on_arrival(1), Seen::kAgain);
    EXPECT_EQ(seen.on_arrival(0), Seen::kFirst);
    EXPECT_EQ(seen.expected(), 2u);
    EXPECT_EQ(seen.on_arrival(0), Seen::kAgain);
    EXPECT_EQ(seen.on_arrival(2 + kSendWindow), Seen::kBeyond);
    EXPECT_EQ(seen.on_arrival(1 + kSendWindow), Seen::kFirst);
    for (SequenceNumber i = 2; i <= kSendWindow; ++i) EXPECT_EQ(seen.on_arrival(i), Seen::kFirst);
    EXPECT_EQ(seen.expected(), 2 + kSendWindow);
    EXPECT_EQ(seen.on_arrival(1 + kSendWindow), Seen::kAgain);
}

// Both sides have sent as many other messages as they may, and have heard nothing.
TEST(SeenNumbers, acknowledgements_find_a_number_when_both_sides_have_sent_all_others) {
    struct Side {
        SendWindow numbers;
        SeenNumbers seen;
    } a, b;
    const auto send_others = [](Side& from, Side& to) {
        while (from.numbers.has_room_for(1, kCreditNumbers))
            EXPECT_EQ(to.seen.on_arrival(from.numbers.take()), SeenNumbers::Seen::kFirst);
    };
    const auto acknowledge = [](Side& from, Side& to) {
        ASSERT_TRUE(from.numbers.has_room_for(1));
        EXPECT_EQ(to.seen.on_arrival(from.numbers.take()), SeenNumbers::Seen::kFirst);
        EXPECT_TRUE(to.numbers.landed_before(from.seen.expected()));
    };
    send_others(a, b);
    send_others(b, a);
    EXPECT_EQ(a.numbers.under_way(), kSendWindow - kCreditNumbers);
    for (std::uint32_t i = 0; i < kCreditNumbers; ++i) acknowledge(a, b);
    EXPECT_FALSE(a.numbers.has_room_for(1));
    EXPECT_TRUE(b.numbers.has_room_for(1, kCreditNumbers));
    acknowledge(b, a);
    EXPECT_TRUE(a.numbers.has_room_for(1, kCreditNumbers));
}

TEST(SendWindow, goes_on_with_the_acknowledgement_of_the_peers_process) {
    SendWindow window;
    for (int i = 0; i < 10; ++i) static_cast<void>(window.take());
    EXPECT_FALSE(window.landed_before(11));  // not sent yet
    EXPECT_TRUE(window.landed_before(4));
    EXPECT_EQ(window.under_way(), 6u);
    EXPECT_TRUE(window.landed_before(2));  // old news
    EXPECT_EQ(window.under_way(), 6u);
    EXPECT_TRUE(window.landed_before(10));
    EXPECT_EQ(window.under_way(), 0u);
}

TEST(SendWindow, has_no_room_while_it_is_shut) {
    SendWindow window;
    EXPECT_TRUE(window.has_room());
    window.shut();
    EXPECT_FALSE(window.has_room());
    window.open();
    EXPECT_TRUE(window.has_room());
}

}  // namespace
}  // namespace coop::sched
