// SPDX-License-Identifier: BSD-3-Clause
//
// sched/ring.h: slots, laps and credits of a polled ring.
#include "coop/sched/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace coop::sched {
namespace {

constexpr unsigned kRandomSeed = 2003;
constexpr std::uint32_t kLeast = 16;

// Both sides, and the memory between them.
struct Ring {
    explicit Ring(RingShape shape) : sender(shape), receiver(shape), memory(shape.ring_bytes()) {}

    std::uint8_t& last_byte(std::uint32_t slot) { return memory[sender.shape().end_of(slot) - 1]; }
    SlotState state() { return receiver.state(last_byte(receiver.next_slot())); }

    bool send(const std::string& text) {
        const auto bytes = static_cast<std::uint32_t>(text.size());
        const auto place = sender.take(bytes);
        if (!place) return false;
        const RingTail tail = make_tail(bytes, *place);
        std::uint8_t* const end = memory.data() + sender.shape().end_of(place->slot);
        std::memcpy(end - sizeof tail, &tail, sizeof tail);
        std::memcpy(end - written(bytes), text.data(), bytes);
        return true;
    }

    RingTail tail() const {
        RingTail tail;
        std::memcpy(&tail, memory.data() + receiver.shape().end_of(receiver.next_slot()) - sizeof tail, sizeof tail);
        return tail;
    }

    std::string look() const {
        const std::uint8_t* const end = memory.data() + receiver.shape().end_of(receiver.next_slot());
        return {reinterpret_cast<const char*>(end - written(tail().bytes)), tail().bytes};
    }

    std::uint32_t take() { return receiver.take(tail()); }
    void finish(std::uint32_t slot) {
        for (std::uint32_t i = receiver.others(slot); i > 0; --i) last_byte(slot + i) = receiver.lap(slot);
        receiver.finish(slot);
    }

    RingSender sender;
    RingReceiver receiver;
    std::vector<std::uint8_t> memory;
};

std::string message(std::uint32_t number, std::size_t bytes = 24) {
    std::string text = std::to_string(number);
    text.resize(bytes, '.');
    return text;
}

TEST(RingShape, is_valid_within_its_ranges_only) {
    EXPECT_TRUE((RingShape{kMinRingSlots, kMinSlotBytes}.valid()));
    EXPECT_TRUE((RingShape{kMaxRingSlots, kMaxSlotBytes}.valid()));
    EXPECT_FALSE((RingShape{kMinRingSlots - 1, kMinSlotBytes}.valid()));
    EXPECT_FALSE((RingShape{kMaxRingSlots + 1, kMinSlotBytes}.valid()));
    EXPECT_FALSE((RingShape{4, kMinSlotBytes - 8}.valid()));
    EXPECT_FALSE((RingShape{4, kMaxSlotBytes + 8}.valid()));
    EXPECT_FALSE((RingShape{4, kMinSlotBytes + 4}.valid()));
}

TEST(RingShape, slots_do_not_overlap_and_lie_in_the_ring) {
    for (std::uint32_t bytes = kMinSlotBytes; bytes <= 8192; bytes += 8) {
        const RingShape shape{5, bytes};
        EXPECT_GE(shape.stride(), bytes);
        EXPECT_EQ(shape.stride() / 64 % 2, 1u) << bytes;
        EXPECT_EQ(shape.end_of(0), shape.ring_bytes());
        EXPECT_GE(shape.end_of(0) - bytes, shape.end_of(1));
        EXPECT_GE(shape.end_of(4), bytes);
    }
}

TEST(RingShape, has_room_for_the_longest_message_in_the_last_slot) {
    for (std::uint32_t most = 128; most <= 16640; most += 8) {
        const RingShape shape{5, 128, most};
        ASSERT_TRUE(shape.valid());
        EXPECT_GE(shape.end_of(4), most);
        EXPECT_EQ(shape.end_of(4) % 64, 0u);
        EXPECT_EQ(shape.slots_of(4, most), 1u);
        EXPECT_EQ(shape.slots_of(0, most), std::min((most + 191) / 192, 5u)) << most;
        EXPECT_EQ(shape.has_short_slots(), most > 192);
    }
}

TEST(RingShape, is_invalid_if_a_slot_is_longer_than_the_longest_message) {
    EXPECT_FALSE((RingShape{4, 256, 128}.valid()));
    EXPECT_FALSE((RingShape{4, 128, kMaxSlotBytes + 8}.valid()));
    EXPECT_FALSE((RingShape{4, 128, 132}.valid()));
}

TEST(Site15Ring, slot_is_as_long_as_wanted_where_whole_writes_land_in_order) {
    EXPECT_EQ(bytes_in_order(12352, kWholeWrite), 12352u);
    EXPECT_EQ(bytes_in_order(130, kWholeWrite), 136u);
    EXPECT_EQ(bytes_in_order(kMaxSlotBytes, kWholeWrite), kMaxSlotBytes);
}

TEST(Site15Ring, slot_is_no_longer_than_a_packet_where_packets_land_in_any_order) {
    for (const std::uint32_t mtu : {256u, 512u, 1024u, 2048u, 4096u})
        for (std::uint32_t wanted = kMinSlotBytes; wanted <= kMaxSlotBytes; wanted += 61) {
            const RingShape shape{4, bytes_in_order(wanted, mtu)};
            ASSERT_TRUE(shape.valid()) << wanted;
            EXPECT_LE(shape.slot_bytes, mtu);
            EXPECT_EQ(shape.slot_bytes, std::min(padded(wanted), mtu));
            RingSender sender(shape);
            // The longest message that fits is written as one packet with data, padding and tail.
            std::uint32_t longest = 0;
            while (sender.fits(longest + 1)) ++longest;
            EXPECT_LE(written(longest), mtu);
        }
}

TEST(Site15Ring, mtu_below_the_least_of_infiniband_still_gives_a_valid_slot) {
    EXPECT_TRUE((RingShape{4, bytes_in_order(12352, 0)}.valid()));
}

TEST(RingSender, has_as_many_credits_as_slots) {
    RingSender sender({3, 128});
    for (std::uint32_t slot = 0; slot < 3; ++slot) EXPECT_EQ(sender.take(16)->slot, slot);
    EXPECT_FALSE(sender.take(16));
    EXPECT_TRUE(sender.on_credits(1));
    EXPECT_EQ(sender.take(16)->slot, 0u);
    EXPECT_FALSE(sender.take(16));
}

TEST(RingSender, refuses_credits_that_it_has_not_lent) {
    RingSender sender({4, 128});
    EXPECT_FALSE(sender.on_credits(1));
    sender.take(16);
    EXPECT_FALSE(sender.on_credits(2));
    EXPECT_FALSE(sender.on_credits(UINT32_MAX));
    EXPECT_EQ(sender.credits(), 3u);
    EXPECT_TRUE(sender.on_credits(1));
    EXPECT_EQ(sender.credits(), 4u);
}

TEST(RingSender, knows_what_fits_with_padding_and_tail) {
    const RingSender sender({2, 128});
    EXPECT_TRUE(sender.fits(120));
    EXPECT_FALSE(sender.fits(121));
    EXPECT_FALSE(sender.fits(UINT32_MAX));  // whose padding wraps
}

TEST(RingPlace, laps_are_never_0_and_wrap_to_1) {
    RingPlace place;
    for (int lap = 1; lap <= 255; ++lap) {
        EXPECT_EQ(place.lap, lap);
        place.advance(1, 2);
        place.advance(1, 2);
    }
    EXPECT_EQ(place.lap, 1);
}

TEST(Ring, a_slot_is_empty_until_its_last_byte_is_there) {
    Ring ring({2, 128});
    EXPECT_EQ(ring.state(), SlotState::kEmpty);
    ASSERT_TRUE(ring.send(message(0)));
    std::uint8_t& last = ring.last_byte(0);
    const std::uint8_t lap = last;
    last = 0;  // everything else has arrived
    EXPECT_EQ(ring.state(), SlotState::kEmpty);
    last = lap;
    EXPECT_EQ(ring.state(), SlotState::kFull);
    EXPECT_EQ(ring.look(), message(0));
}

TEST(Ring, what_a_slot_held_a_lap_ago_counts_as_empty) {
    for (std::uint32_t slots : {2u, 3u, 8u}) {
        Ring ring({slots, 128});
        for (std::uint32_t n = 0; n < 1000 * slots; ++n) {  // more laps than a byte can count
            ASSERT_EQ(ring.state(), SlotState::kEmpty) << n;
            ASSERT_TRUE(ring.send(message(n)));
            ASSERT_EQ(ring.state(), SlotState::kFull) << n;
            ASSERT_EQ(ring.receiver.flaw(ring.tail(), kLeast), TailFlaw::kNone);
            ASSERT_EQ(ring.look(), message(n));
            ring.finish(ring.take());
            ASSERT_TRUE(ring.sender.on_credits(ring.receiver.take_owed()));
        }
    }
}

TEST(Ring, every_other_lap_is_broken) {
    Ring ring({2, 128});
    for (int lap = 0; lap < 5; ++lap) {
        for (int slot = 0; slot < 2; ++slot) {
            for (int byte = 0; byte < 256; ++byte) {
                const SlotState expected = byte == lap       ? SlotState::kEmpty
                                           : byte == lap + 1 ? SlotState::kFull
                                                             : SlotState::kBroken;
                ASSERT_EQ(ring.receiver.state(static_cast<std::uint8_t>(byte)), expected)
                    << lap << ' ' << slot << ' ' << byte;
            }
            ring.finish(ring.take());
        }
    }
}

TEST(Ring, a_sender_that_overruns_slots_in_use_is_found) {
    Ring ring({2, 128});
    for (std::uint32_t n = 0; n < 2; ++n) {
        ASSERT_TRUE(ring.send(message(n)));
        ring.take();
    }
    EXPECT_EQ(ring.state(), SlotState::kEmpty);
    ASSERT_TRUE(ring.sender.on_credits(1));  // a credit that was not returned
    ASSERT_TRUE(ring.send(message(2)));
    EXPECT_EQ(ring.state(), SlotState::kBroken);
}

TEST(Ring, every_damaged_bit_of_a_tail_is_found) {
    Ring ring({300, 256});  // slot numbers of more than 8 bits
    for (std::uint32_t n = 0; n < 299; ++n) {
        ASSERT_TRUE(ring.send(message(n)));
        ring.finish(ring.take());
    }
    ASSERT_TRUE(ring.send(message(299)));
    const RingTail good = ring.tail();
    ASSERT_EQ(ring.receiver.flaw(good, kLeast), TailFlaw::kNone);
    for (unsigned bit = 0; bit < 56; ++bit) {  // state() detects a damaged lap
        std::uint8_t bytes[sizeof(RingTail)];
        std::memcpy(bytes, &good, sizeof good);
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        RingTail damaged;
        std::memcpy(&damaged, bytes, sizeof damaged);
        EXPECT_NE(ring.receiver.flaw(damaged, kLeast), TailFlaw::kNone) << bit;
    }
}

TEST(Ring, a_length_outside_of_the_slot_is_found_though_its_check_word_is_right) {
    const RingReceiver receiver({2, 128});
    EXPECT_EQ(receiver.flaw(make_tail(15, {}), kLeast), TailFlaw::kBytes);
    EXPECT_EQ(receiver.flaw(make_tail(16, {}), kLeast), TailFlaw::kNone);
    EXPECT_EQ(receiver.flaw(make_tail(120, {}), kLeast), TailFlaw::kNone);
    EXPECT_EQ(receiver.flaw(make_tail(121, {}), kLeast), TailFlaw::kBytes);
    EXPECT_EQ(receiver.flaw(make_tail(UINT32_MAX, {}), kLeast), TailFlaw::kBytes);
}

TEST(Ring, a_message_that_reaches_into_slots_in_use_is_found) {
    RingReceiver receiver({4, 128, 1024});
    EXPECT_EQ(receiver.flaw(make_tail(600, {}), kLeast), TailFlaw::kNone);  // all four
    EXPECT_EQ(receiver.take(make_tail(500, {})), 0u);                       // three
    EXPECT_EQ(receiver.take(make_tail(16, {3, 1})), 3u);
    receiver.finish(0);  // the last one is in use
    EXPECT_EQ(receiver.flaw(make_tail(500, {0, 2}), kLeast), TailFlaw::kNone);
    EXPECT_EQ(receiver.flaw(make_tail(600, {0, 2}), kLeast), TailFlaw::kBytes);
}

TEST(Ring, a_message_of_another_slot_is_found) {
    const RingReceiver receiver({4, 128});
    EXPECT_EQ(receiver.flaw(make_tail(16, {1, 1}), kLeast), TailFlaw::kSlot);
}

TEST(RingReceiver, gives_credits_back_in_the_order_of_the_slots) {
    RingReceiver receiver({4, 128});
    for (int n = 0; n < 3; ++n) receiver.take(make_tail(16, {}));
    receiver.finish(1);
    receiver.finish(2);
    EXPECT_EQ(receiver.owed(), 0u);  // slot 0, which the first returned credit would permit to write, is still in use
    receiver.finish(0);
    EXPECT_EQ(receiver.owed(), 3u);
}

TEST(RingReceiver, owes_half_from_half_of_the_slots_on) {
    for (std::uint32_t slots : {2u, 3u, 4u, 16u}) {
        RingReceiver receiver({slots, 128});
        for (std::uint32_t n = 1; n <= slots; ++n) {
            receiver.finish(receiver.take(make_tail(16, {})));
            EXPECT_EQ(receiver.owes_half(), 2 * n >= slots) << slots << ' ' << n;
        }
        EXPECT_EQ(receiver.take_owed(), slots);
        EXPECT_FALSE(receiver.owes_half());
    }
}

// A sender that stops without credits, a receiver that returns them sometimes: each message arrives exactly once.
TEST(Ring, random_traffic_arrives_once_and_in_order) {
    for (const RingShape& shape : {RingShape{2, 128}, RingShape{3, 128}, RingShape{7, 128}, RingShape{64, 128},
                                   RingShape{2, 128, 1024}, RingShape{7, 128, 512}, RingShape{64, 128, 1024}}) {
        SCOPED_TRACE("seed " + std::to_string(kRandomSeed) + ", slots " + std::to_string(shape.slots) + ", bytes " +
                     std::to_string(shape.most_bytes));
        const std::uint32_t longest = shape.most_bytes - 8, more = longest - kLeast + 1;
        std::mt19937 random(kRandomSeed);
        Ring ring(shape);
        std::uint32_t sent = 0, received = 0;
        std::vector<std::uint32_t> held;
        // Bytes of all values: long messages leave them in the last bytes of slots.
        const auto text = [&](std::uint32_t n) {
            std::string bytes = message(n, kLeast + n * 61 % more);
            for (std::size_t at = 24; at < bytes.size(); ++at) bytes[at] = static_cast<char>(n * 7 + at);
            return bytes;
        };
        while (received < 20'000) {
            if (random() % 2 == 0 && ring.send(text(sent))) ++sent;
            if (random() % 2 == 0 && ring.state() == SlotState::kFull) {
                ASSERT_EQ(ring.receiver.flaw(ring.tail(), kLeast), TailFlaw::kNone);
                ASSERT_EQ(ring.look(), text(received));
                ++received;
                held.push_back(ring.take());
            }
            ASSERT_NE(ring.state(), SlotState::kBroken);
            if (!held.empty() && random() % 2 == 0) {
                const std::size_t any = random() % held.size();
                ring.finish(held[any]);
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(any));
            }
            if (ring.receiver.owes_half()) {
                ASSERT_TRUE(ring.sender.on_credits(ring.receiver.take_owed()));
            }
            ASSERT_LE(ring.sender.credits() + ring.receiver.owed() + held.size(), shape.slots);
        }
    }
}

}  // namespace
}  // namespace coop::sched
