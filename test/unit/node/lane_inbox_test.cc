// SPDX-License-Identifier: BSD-3-Clause
// node/lane_area.h, node/lane_inbox.h: claims, bells, sleep, and rings that end.
#include "coop/node/lane_inbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace coop::node {
namespace {

struct Memory {
    explicit Memory(std::size_t size)
        : bytes(static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) & ~4095ul))) {
        std::memset(bytes.get(), 0, size);
    }
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    std::unique_ptr<std::byte, Free> bytes;
};

struct Sender {
    LaneArea area;
    std::uint32_t ring;
    LaneWriter<LaneMemory> writer;

    Sender(LaneArea to, std::int32_t pid)
        : area(to), ring(to.claim(pid, 0).value()), writer(to.memory_of(ring), to.shape().ring_bytes) {
        area.open(ring, pid);
    }
    bool put_answer(std::uint64_t value, bool confirmed) {
        if (!writer.takes_slot(300, confirmed)) return false;
        std::memcpy(area.slot(ring) + kLaneWord, &value, sizeof value);
        writer.publish_slot(1, 300, false);
        return true;
    }
    bool answer(std::uint64_t value, bool confirmed) {
        if (!put_answer(value, confirmed)) return false;
        area.wake(ring);
        return true;
    }
    // In the ring.
    bool put(std::uint64_t value, std::uint32_t bytes = 8, bool taken = false, bool is_answer = false) {
        const auto at = writer.reserve(bytes);
        if (!at) return false;
        std::memcpy(area.ring(ring) + *at, &value, sizeof value);
        writer.publish(1, bytes, is_answer, taken);
        return true;
    }
    bool send(std::uint64_t value, std::uint32_t bytes = 8, bool taken = false, bool is_answer = false) {
        if (!put(value, bytes, taken, is_answer)) return false;
        area.wake(ring);
        return true;
    }
};

struct Station {
    LaneShape shape;
    Memory memory;
    LaneArea area;
    LaneInbox inbox;
    std::vector<std::uint64_t> got;
    std::vector<std::uint32_t> damaged;
    bool senders_are_gone = false;
    LaneTake taken = LaneTake::kNext;
    std::function<void()> at_each = [] {};

    explicit Station(std::uint32_t rings, std::uint32_t ring_bytes = kMinLaneRing)
        : shape{rings, ring_bytes}, memory(LaneArea::bytes_for(shape)), area(memory.bytes.get(), shape) {
        area.prepare();
        inbox = LaneInbox(area);
    }
    int poll() {
        return inbox.poll(
            [this](std::uint8_t kind, const std::byte* body, std::uint32_t) {
                EXPECT_EQ(kind, 1);
                at_each();
                if (taken == LaneTake::kLater) return taken;
                std::uint64_t value;
                std::memcpy(&value, body, sizeof value);
                got.push_back(value);
                return taken;
            },
            [this](std::uint32_t ring) { damaged.push_back(ring); },
            [this](std::uint32_t) { return senders_are_gone; });
    }
    void poll_times(std::uint32_t times) {
        for (std::uint32_t i = 0; i < times; ++i) poll();
    }
};

TEST(LaneShape, shares_the_memory_between_the_senders) {
    EXPECT_EQ(lane_shape(16 << 20, 1, 256 << 10).ring_bytes, 256u << 10);
    const LaneShape full = lane_shape(16 << 20, 255, 256 << 10);
    EXPECT_EQ(full.rings, 255u);
    EXPECT_EQ(full.ring_bytes, 64u << 10);
    EXPECT_EQ(lane_shape(1 << 20, 255, 256 << 10).rings, 64u);  // the others use transports
    EXPECT_EQ(lane_shape(1 << 20, 255, 256 << 10).ring_bytes, kMinLaneRing);
    EXPECT_EQ(lane_shape(1u << 30, 5000, 256 << 10).rings, kMaxLaneRings);
    EXPECT_EQ(lane_shape(1000, 5, 256 << 10).rings, 0u);
    EXPECT_FALSE(LaneShape{}.valid());
}

TEST(LaneShape, never_exceeds_the_memory) {
    for (std::uint32_t senders = 1; senders < 600; senders += 13)
        for (std::uint64_t memory = kMinLaneRing; memory < 300u << 20; memory = memory * 3 / 2) {
            const LaneShape shape = lane_shape(memory, senders, 256 << 10);
            EXPECT_TRUE(shape.valid());
            EXPECT_LE(std::uint64_t{shape.rings} * shape.ring_bytes, memory);
        }
}

TEST(LaneShape, refuses_what_no_process_publishes) {
    EXPECT_FALSE((LaneShape{0, kMinLaneRing}.valid()));
    EXPECT_FALSE((LaneShape{kMaxLaneRings + 1, kMinLaneRing}.valid()));
    EXPECT_FALSE((LaneShape{1, kMinLaneRing + 1}.valid()));
    EXPECT_FALSE((LaneShape{1, kMinLaneRing / 2}.valid()));
    EXPECT_FALSE((LaneShape{1, 2 * kMaxLaneRing}.valid()));
}

TEST(LaneArea, its_parts_do_not_overlap) {
    for (const std::uint32_t rings : {1u, 2u, 63u, 64u, 65u, 300u, kMaxLaneRings}) {
        Memory memory(LaneArea::bytes_for({rings, kMinLaneRing}));
        const LaneArea area(memory.bytes.get(), {rings, kMinLaneRing});
        const auto at = [&](const void* p) { return static_cast<const std::byte*>(p) - memory.bytes.get(); };
        EXPECT_GE(at(&area.claim_of(0)), at(&area.bells(LaneArea::kBellWords)));
        EXPECT_GE(at(&area.control(0)), at(&area.claim_of(rings)));
        EXPECT_GE(at(area.slot(0)), at(&area.control(rings)));
        EXPECT_GE(at(area.ring(0)), at(area.slot(rings)));
        EXPECT_EQ(at(area.slot(rings)) % 64, 0);
        EXPECT_EQ(at(area.ring(0)) % 64, 0);
        EXPECT_LE(at(area.ring(rings)), static_cast<std::ptrdiff_t>(LaneArea::bytes_for(area.shape())));
    }
}

TEST(LaneArea, gives_each_claim_another_ring_until_there_is_none) {
    Station to(3);
    EXPECT_EQ(to.area.claim(10, 2), 2u);
    EXPECT_EQ(to.area.claim(11, 2), 0u);
    EXPECT_EQ(to.area.claim(12, 2), 1u);
    EXPECT_EQ(to.area.claim(13, 2), std::nullopt);
}

TEST(LaneArea, guests_leave_a_ring_for_each_process_of_the_job) {
    constexpr bool kGuest = true;
    for (const std::uint32_t others : {1u, 2u, 5u, 100u}) {
        Station to(others + kGuestRings);
        for (std::uint32_t i = 0; i < kGuestRings; ++i)
            EXPECT_TRUE(to.area.claim(1000, 3 * i, kGuest).has_value()) << others << " " << i;
        EXPECT_EQ(to.area.claim(1000, 0, kGuest), std::nullopt) << others;
        // The ranks on the node are those of the others and of the owner, whose own does not claim.
        for (std::uint32_t rank = 1; rank <= others; ++rank) EXPECT_TRUE(to.area.claim(10, rank).has_value()) << others;
        EXPECT_EQ(to.area.claim(10, 0), std::nullopt);
    }
}

TEST(LaneArea, of_few_rings_guests_leave_one) {
    for (const std::uint32_t rings : {2u, 3u, kGuestRings}) {
        Station to(rings);
        for (std::uint32_t i = 0; i + 1 < rings; ++i) EXPECT_TRUE(to.area.claim(1000, i, true).has_value());
        EXPECT_EQ(to.area.claim(1000, 0, true), std::nullopt);
        EXPECT_EQ(to.area.claim(10, rings - 1), 0u);
    }
    Station to(1);
    EXPECT_EQ(to.area.claim(1000, 5, true), 0u);
}

TEST(LaneArea, finds_the_ring_of_a_sender_by_its_name) {
    Station to(3);
    EXPECT_EQ(to.area.ring_of(77), std::nullopt);
    to.area.introduce(to.area.claim(10, 1).value(), 77);
    to.area.introduce(to.area.claim(10, 1).value(), 78);
    EXPECT_EQ(to.area.ring_of(77), 1u);
    EXPECT_EQ(to.area.ring_of(78), 2u);
    to.area.reset(1, false);
    EXPECT_EQ(to.area.ring_of(77), std::nullopt);
}

TEST(LaneInbox, takes_a_record_from_the_slot_and_says_so) {
    Station to(3);
    for (int round = 0; round < 3; ++round) {
        Sender from(to.area, 10);
        from.writer.use_slot();
        ASSERT_TRUE(from.send(0, 8, true, true));
        to.poll();
        const LaneTurns& turns = to.inbox.turns(from.ring);
        EXPECT_TRUE(turns.confirmed.load());
        bool confirmed = false;
        to.got.clear();
        to.at_each = [&] {
            EXPECT_EQ(turns.taken.load(), confirmed) << "a record may be overwritten while it is taken";
        };
        for (std::uint64_t i = 1; i < 8; ++i) {
            ASSERT_TRUE(from.answer(i, confirmed));
            EXPECT_EQ(to.poll(), 1);
            EXPECT_NE(turns.taken.load(), confirmed);
            confirmed = turns.taken.load();
            ASSERT_TRUE(from.send(100 + i));
            EXPECT_FALSE(from.writer.takes_slot(300, confirmed)) << "a record follows the last answer";
            ASSERT_TRUE(from.send(200 + i, 300, true, true));
            EXPECT_EQ(to.poll(), 2);
        }
        to.at_each = [] {};
        ASSERT_EQ(to.got.size(), 7u * 3);
        for (std::size_t i = 0; i < to.got.size(); ++i) EXPECT_EQ(to.got[i], i % 3 * 100 + i / 3 + 1);
        from.area.close(from.ring, 10);
        to.poll_times(2 * LaneInbox::kPatience);
        ASSERT_TRUE(to.area.is_free(from.ring));
        EXPECT_FALSE(turns.taken.load()) << "the next sender begins anew";
        EXPECT_FALSE(turns.confirmed.load());
    }
}

TEST(LaneInbox, tells_what_the_sender_has_taken) {
    Station to(1);
    Sender from(to.area, 10);
    LaneTurns& turns = to.inbox.turns(from.ring);
    alignas(64) static std::byte slot[kLaneSlot];
    turns.slot = slot;
    turns.used = kLaneSlot;
    for (const bool taken : {false, true, true, false}) {
        ASSERT_TRUE(from.send(1, 8, taken));
        to.poll();
        EXPECT_EQ(turns.confirmed.load(), taken);
    }
}

TEST(LaneInbox, finds_a_record_in_the_slot_whose_bell_was_missed) {
    Station to(70);
    Sender from(to.area, 10);
    from.writer.use_slot();
    ASSERT_TRUE(from.put(1, 8, false, true));
    ASSERT_TRUE(from.put_answer(42, false));
    to.poll_times(70 * LaneInbox::kLookAround + 1);
    EXPECT_EQ(to.got, (std::vector<std::uint64_t>{1, 42}));
}

TEST(LaneInbox, finds_the_first_record_of_a_new_sender) {
    Station to(4);
    Sender from(to.area, 10);
    ASSERT_TRUE(from.send(42));
    EXPECT_EQ(to.poll(), 1);
    EXPECT_EQ(to.got, std::vector<std::uint64_t>{42});
}

TEST(LaneInbox, finds_a_record_whose_bell_was_missed) {
    Station to(70);
    std::vector<Sender> all;
    for (int i = 0; i < 70; ++i) all.emplace_back(to.area, 10 + i);
    ASSERT_TRUE(all[66].put(42));  // rings no bell
    to.poll_times(70 * LaneInbox::kLookAround);
    EXPECT_EQ(to.got, std::vector<std::uint64_t>{42});
}

// 70 rings that have carried something, and then nothing until their writers must ring.
struct FallingAsleep : Station {
    std::vector<Sender> all;
    FallingAsleep() : Station(70) {
        for (int i = 0; i < 70; ++i) all.emplace_back(area, 10 + i);
        for (Sender& each : all) EXPECT_TRUE(each.send(1));
        do poll();
        while (area.control(all[66].ring).asleep.load() == 0);
        got.clear();
    }
};

// Without a full fence a writer may look whether the reader sleeps before its record is visible. Here it has looked
// when the reader did not sleep yet, and its record becomes visible this many polls after the reader has told that it
// sleeps.
TEST(LaneInbox, finds_at_once_a_record_that_was_on_its_way_when_the_ring_fell_asleep) {
    for (const std::uint32_t late : {0u, 1u, 10u, LaneInbox::kPatience - 2}) {
        FallingAsleep to;
        to.poll_times(late);
        ASSERT_TRUE(to.all[66].put(42));  // rings no bell
        EXPECT_EQ(to.poll(), 1) << late;
        EXPECT_EQ(to.got, std::vector<std::uint64_t>{42});
        EXPECT_EQ(to.area.control(to.all[66].ring).asleep.load(), 0u);
    }
}

TEST(LaneInbox, hears_the_bell_of_a_drowsy_ring_and_of_one_that_sleeps) {
    for (const std::uint32_t later : {0u, 5u, LaneInbox::kPatience, 3 * LaneInbox::kPatience}) {
        FallingAsleep to;
        to.poll_times(later);
        ASSERT_TRUE(to.all[66].send(42));
        EXPECT_EQ(to.poll(), 1) << later;
        EXPECT_EQ(to.got, std::vector<std::uint64_t>{42});
    }
}

TEST(LaneInbox, a_record_in_the_slot_wakes_a_ring) {
    FallingAsleep to;
    for (Sender& each : to.all) {
        each.writer.use_slot();
        ASSERT_TRUE(each.send(0, 300, false, true));
    }
    do to.poll();
    while (to.area.control(to.all[66].ring).asleep.load() == 0);
    to.poll_times(2 * LaneInbox::kPatience);
    ASSERT_TRUE(to.all[66].answer(42, false));
    EXPECT_EQ(to.poll(), 1);
    EXPECT_EQ(to.got.back(), 42u);
}

TEST(LaneInbox, frees_the_ring_of_a_watched_sender_that_has_ended) {
    for (const bool is_awake : {false, true}) {
        Station to(is_awake ? 1 : 3);
        Sender from(to.area, 10);
        to.area.watch(from.ring, 10);
        if (is_awake) {
            ASSERT_TRUE(from.send(1));
            to.poll();
            ASSERT_TRUE(from.send(2));
        }
        to.poll_times(4 * LaneInbox::kPatience);
        EXPECT_FALSE(to.area.is_free(from.ring));
        if (is_awake) {
            ASSERT_TRUE(from.send(3));
        }
        to.senders_are_gone = true;
        to.poll_times(4 * LaneInbox::kPatience);
        EXPECT_TRUE(to.area.is_free(from.ring));
        EXPECT_EQ(to.got.size(), is_awake ? 3u : 0u);
        EXPECT_EQ(to.inbox.awake(), 0u);
        Sender next(to.area, 11);
        ASSERT_TRUE(next.send(4));
        EXPECT_EQ(to.poll(), 1);
    }
}

TEST(LaneInbox, does_not_look_into_a_ring_that_is_only_claimed) {
    Station to(1);
    const std::uint32_t ring = to.area.claim(10, 0).value();
    LaneWriter<LaneMemory> writer(to.area.memory_of(ring), kMinLaneRing);
    ASSERT_TRUE(writer.reserve(8));
    writer.publish(1, 8);
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_TRUE(to.got.empty());
    EXPECT_FALSE(to.area.is_free(ring));
    to.area.open(ring, 10);
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_EQ(to.got.size(), 1u);
    EXPECT_EQ(to.area.claimant(ring), 10);
}

TEST(LaneInbox, a_ring_that_gets_no_memory_is_free_again_at_once) {
    Station to(1);
    const std::uint32_t ring = to.area.claim(10, 0).value();
    EXPECT_EQ(to.area.claim(11, 0), std::nullopt);
    to.area.give_up(ring);
    EXPECT_EQ(to.area.claim(11, 0), ring);
}

TEST(LaneInbox, frees_a_ring_that_is_only_claimed_when_its_watched_sender_has_ended) {
    Station to(1);
    const std::uint32_t ring = to.area.claim(10, 0).value();
    to.senders_are_gone = true;
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_FALSE(to.area.is_free(ring)) << "nothing tells whether it has ended";
    to.senders_are_gone = false;
    to.area.watch_claim(ring, 10);
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_FALSE(to.area.is_free(ring));
    to.senders_are_gone = true;
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_TRUE(to.area.is_free(ring));
}

TEST(LaneInbox, does_not_ask_whether_senders_have_ended_that_are_not_watched) {
    Station to(1);
    const Sender from(to.area, 10);
    to.senders_are_gone = true;
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_FALSE(to.area.is_free(from.ring));
}

TEST(LaneInbox, looks_only_at_rings_that_carried_something_lately) {
    Station to(20);
    std::vector<Sender> all;
    for (int i = 0; i < 20; ++i) all.emplace_back(to.area, 10 + i);
    for (Sender& each : all) ASSERT_TRUE(each.send(1));
    to.poll();
    EXPECT_EQ(to.got.size(), 20u);
    EXPECT_EQ(to.inbox.awake(), 20u);
    for (std::uint32_t i = 0; i < 3 * LaneInbox::kPatience; ++i) {
        ASSERT_TRUE(all[7].send(2));
        to.poll();
    }
    EXPECT_LE(to.inbox.awake(), LaneInbox::kAlwaysAwake);
    const std::size_t before = to.got.size();
    for (Sender& each : all) ASSERT_TRUE(each.send(3));
    EXPECT_EQ(to.poll(), 20);
    EXPECT_EQ(to.got.size(), before + 20);
}

TEST(LaneInbox, a_few_rings_stay_awake) {
    Station to(20);
    Sender from(to.area, 10);
    ASSERT_TRUE(from.send(1));
    to.poll_times(5 * LaneInbox::kPatience);
    EXPECT_EQ(to.inbox.awake(), 1u);
    ASSERT_TRUE(from.put(2));
    EXPECT_EQ(to.poll(), 1);
}

TEST(LaneInbox, a_busy_sender_does_not_starve_others) {
    Station to(2);
    Sender busy(to.area, 10), other(to.area, 11);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(busy.send(1));
    ASSERT_TRUE(other.send(2));
    EXPECT_EQ(to.poll(), static_cast<int>(LaneInbox::kMostRecords) + 1);
    EXPECT_NE(std::ranges::find(to.got, 2u), to.got.end());
}

TEST(LaneInbox, leaves_a_ring_after_a_record_that_ends_the_wait) {
    Station to(2);
    Sender first(to.area, 10), second(to.area, 11);
    ASSERT_TRUE(first.send(1));
    ASSERT_TRUE(first.send(2));
    ASSERT_TRUE(second.send(3));
    to.taken = LaneTake::kLast;
    EXPECT_EQ(to.poll(), 2);
    EXPECT_EQ(to.got, (std::vector<std::uint64_t>{1, 3}));
    EXPECT_EQ(to.poll(), 1);
    EXPECT_EQ(to.got.back(), 2u);
}

TEST(LaneInbox, a_record_that_is_left_is_the_next_one_and_keeps_the_ring_awake) {
    Station to(2 * LaneInbox::kAlwaysAwake);
    std::vector<std::unique_ptr<Sender>> others;
    for (std::uint32_t i = 0; i + 1 < to.shape.rings; ++i) others.push_back(std::make_unique<Sender>(to.area, 20 + i));
    Sender from(to.area, 10);
    ASSERT_TRUE(from.send(1));
    ASSERT_TRUE(from.send(2));
    for (auto& other : others) ASSERT_TRUE(other->send(3));
    to.taken = LaneTake::kLater;
    int asked = 0;
    to.at_each = [&] { ++asked; };
    to.poll_times(4 * LaneInbox::kPatience);
    EXPECT_TRUE(to.got.empty());
    const int before = asked;
    EXPECT_EQ(to.poll(), 0);
    EXPECT_EQ(asked - before, static_cast<int>(to.shape.rings));
    to.taken = LaneTake::kNext;
    EXPECT_EQ(to.poll(), static_cast<int>(to.shape.rings) + 1);
}

TEST(LaneInbox, frees_a_closed_ring_after_its_last_record) {
    Station to(1);
    for (int round = 0; round < 5; ++round) {
        Sender from(to.area, 10 + round);
        EXPECT_EQ(to.area.claim(99, 0), std::nullopt);
        to.got.clear();
        for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(from.send(i, 300));
        from.area.close(from.ring, 10 + round);
        to.poll_times(2 * LaneInbox::kPatience);
        EXPECT_EQ(to.got.size(), 40u);
        EXPECT_TRUE(to.area.is_free(0));
    }
    EXPECT_EQ(to.inbox.awake(), 0u);
}

TEST(LaneInbox, frees_a_closed_ring_that_never_carried_anything) {
    Station to(3);
    const std::uint32_t ring = to.area.claim(10, 1).value();
    to.area.close(ring, 10);
    to.poll_times(2 * LaneInbox::kPatience);
    EXPECT_TRUE(to.area.is_free(ring));
}

TEST(LaneInbox, reports_a_damaged_ring) {
    Station to(2);
    const Sender from(to.area, 10);
    const std::uint64_t lie = lane_word(1, kMinLaneRing);
    std::memcpy(to.area.ring(from.ring), &lie, sizeof lie);
    to.area.wake(from.ring);
    to.poll();
    EXPECT_EQ(to.damaged, std::vector<std::uint32_t>{from.ring});
    EXPECT_TRUE(to.got.empty());
}

TEST(LaneInbox, ignores_bells_of_rings_that_do_not_exist) {
    Station to(3);
    to.area.bells(0).store(~std::uint64_t{0});
    EXPECT_EQ(to.poll(), 0);
    EXPECT_EQ(to.inbox.awake(), 3u);
}

}  // namespace
}  // namespace coop::node
