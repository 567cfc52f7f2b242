// SPDX-License-Identifier: BSD-3-Clause
// node/lane_ring.h, node/lane_parts.h: records in order and whole, full rings, the slot, damage, records in parts. Orders of
// memory: lane_model_test.cc.
#include "coop/node/lane_ring.h"

#include "coop/node/lane_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace coop::node {
namespace {

constexpr std::uint32_t kRing = kMinLaneRing;

struct Ring {
    alignas(64) std::byte bytes[kRing] = {};
    alignas(64) std::byte slot[kLaneSlot] = {};
    std::atomic<std::uint64_t> freed{0};
    LaneWriter<LaneMemory> writer{{bytes, &freed, slot}, kRing};
    LaneReader<LaneMemory> reader{{bytes, &freed, slot}, kRing};
    std::uint32_t sent = 0;

    bool send(std::uint8_t kind, std::uint32_t length) {
        const auto at = writer.reserve(length);
        if (!at) return false;
        for (std::uint32_t i = 0; i < length; ++i) bytes[*at + i] = static_cast<std::byte>(kind + i);
        writer.publish(kind, length, ++sent % 3 != 0);
        return true;
    }
    bool receives(std::uint8_t kind, std::uint32_t length) {
        const auto record = reader.look();
        if (!record || record->kind != kind || record->bytes != length) return false;
        for (std::uint32_t i = 0; i < length; ++i)
            if (bytes[record->at + i] != static_cast<std::byte>(kind + i)) return false;
        reader.pass(*record);
        return true;
    }
};

TEST(LaneRing, a_short_record_takes_one_cache_line) {
    EXPECT_EQ(lane_record_bytes(0), 64u);
    EXPECT_EQ(lane_record_bytes(56), 64u);
    EXPECT_EQ(lane_record_bytes(57), 128u);
}

TEST(LaneRing, is_empty_at_first) {
    Ring ring;
    EXPECT_FALSE(ring.reader.look());
}

TEST(LaneRing, shows_nothing_before_it_is_published) {
    Ring ring;
    ASSERT_TRUE(ring.writer.reserve(100));
    EXPECT_FALSE(ring.reader.look());
    ASSERT_TRUE(ring.send(3, 100));  // reserves again
    EXPECT_TRUE(ring.receives(3, 100));
    EXPECT_FALSE(ring.reader.look());
}

TEST(LaneRing, keeps_order_and_contents_over_many_laps_with_every_length) {
    Ring ring;
    for (std::uint32_t lap = 0; lap < 3; ++lap)
        for (std::uint32_t length = 0; length <= ring.writer.longest(); length += 1 + length / 7) {
            const auto kind = static_cast<std::uint8_t>(1 + length % 200);
            ASSERT_TRUE(ring.send(kind, length)) << length;
            ASSERT_TRUE(ring.receives(kind, length)) << length;
            ASSERT_FALSE(ring.reader.look());
        }
}

TEST(LaneRing, old_bytes_that_look_like_a_record_are_not_one) {
    Ring ring;
    const std::uint64_t lie = lane_word(7, 8);
    for (int i = 0; i < 2000; ++i) {
        const auto at = ring.writer.reserve(1000);
        ASSERT_TRUE(at);
        for (std::uint32_t k = 0; k + 8 <= 1000; k += 8) std::memcpy(ring.bytes + *at + k, &lie, 8);
        ring.writer.publish(9, 1000);
        const auto record = ring.reader.look();
        ASSERT_TRUE(record);
        ASSERT_EQ(record->kind, 9);
        ASSERT_EQ(record->bytes, 1000u);
        ring.reader.pass(*record);
        ASSERT_FALSE(ring.reader.look());
        if (i % 3 == 0) {
            ASSERT_TRUE(ring.send(1, 40));
            ASSERT_TRUE(ring.receives(1, 40));
        }
    }
}

// Between records of one line the next word is cleared before it is needed. Runs of these, of every length, between records
// whose bytes look like records.
TEST(LaneRing, old_bytes_do_not_show_behind_runs_of_short_records) {
    Ring ring;
    const std::uint64_t lie = lane_word(7, 8);
    for (int i = 0; i < 3000; ++i) {
        const std::uint32_t bytes = i % 11 == 0 ? 200 : 1000;
        const auto at = ring.writer.reserve(bytes);
        ASSERT_TRUE(at);
        for (std::uint32_t k = 0; k + 8 <= bytes; k += 8) std::memcpy(ring.bytes + *at + k, &lie, 8);
        ring.writer.publish(9, bytes);
        const auto record = ring.reader.look();
        ASSERT_TRUE(record);
        ASSERT_EQ(record->bytes, bytes);
        ring.reader.pass(*record);
        ASSERT_FALSE(ring.reader.look()) << "round " << i;
        for (int run = 0; run < i % 7; ++run) {
            ASSERT_TRUE(ring.send(1, 40));
            ASSERT_TRUE(ring.receives(1, 40));
            ASSERT_FALSE(ring.reader.look()) << "round " << i << ", short record " << run;
        }
    }
}

// A body that was written and not published, or longer than what was published, must not show either.
TEST(LaneRing, what_was_written_and_not_published_does_not_show) {
    Ring ring;
    const std::uint64_t lie = lane_word(7, 8);
    for (int i = 0; i < 2000; ++i) {
        const std::uint32_t before = i % 5 == 0 ? 100 : 40, reserved = i % 4 == 0 ? 100 : 400;
        for (int run = 0; run < 1 + i % 3; ++run) {
            ASSERT_TRUE(ring.send(1, before));
            ASSERT_TRUE(ring.receives(1, before));
        }
        const auto at = ring.writer.reserve(reserved);
        ASSERT_TRUE(at);
        for (std::uint32_t k = 0; k + 8 <= reserved; k += 8) std::memcpy(ring.bytes + *at + k, &lie, 8);
        if (i % 2 == 0) {
            ring.writer.publish(9, before, i % 3 == 0);
            const auto record = ring.reader.look();
            ASSERT_TRUE(record);
            ring.reader.pass(*record);
        } else {
            ASSERT_TRUE(ring.send(1, 40));
            ASSERT_TRUE(ring.receives(1, 40));
        }
        ASSERT_FALSE(ring.reader.look()) << "round " << i;
    }
}

// A record of one line is not always followed by another, and the reader may be far behind.
TEST(LaneRing, a_word_is_not_cleared_where_the_reader_has_not_read) {
    Ring ring;
    std::uint32_t sent = 0, received = 0;
    for (int lap = 0; lap < 50; ++lap) {
        while (ring.send(1 + sent % 100, 40)) ++sent;
        for (std::uint32_t n = sent - received; n > 0; --n, ++received) {
            ASSERT_TRUE(ring.receives(1 + received % 100, 40)) << "record " << received;
        }
        ASSERT_FALSE(ring.reader.look());
    }
}

TEST(LaneRing, a_full_ring_refuses_until_the_reader_has_read_an_eighth) {
    Ring ring;
    int sent = 0;
    while (ring.send(1, 100)) ++sent;
    EXPECT_EQ(sent, static_cast<int>(kRing / 128) - 1);  // the word after the last one needs a line
    EXPECT_FALSE(ring.send(1, 100));
    int read = 0;
    while (!ring.send(2, 100)) {
        ASSERT_TRUE(ring.receives(1, 100));
        ++read;
    }
    EXPECT_LE(read, static_cast<int>(kRing / 8 / 128));
    for (; read < sent; ++read) ASSERT_TRUE(ring.receives(1, 100));
    EXPECT_TRUE(ring.receives(2, 100));
}

// A ring of which only the beginning is used: what lies behind it must not be touched.
struct ShortRing : Ring {
    explicit ShortRing(std::uint32_t end) {
        writer = {{bytes, &freed, slot}, kRing, end};
        std::fill(bytes + end, bytes + kRing, kUntouched);
    }
    bool is_rest_untouched() const {
        return std::all_of(bytes + writer.end(), bytes + kRing, [](std::byte each) { return each == kUntouched; });
    }
    static constexpr std::byte kUntouched{0x5a};
};

TEST(LaneRing, records_that_are_read_at_once_need_only_the_beginning) {
    for (const std::uint32_t most : {8u, 100u, 500u, 1000u, 2000u, 4000u}) {
        ShortRing ring(first_lane_end(kRing, most));
        for (std::uint32_t i = 0; i < 3000; ++i) {
            const auto kind = static_cast<std::uint8_t>(1 + i % 200);
            ASSERT_TRUE(ring.send(kind, i * 7919 % (most + 1))) << most << ", record " << i;
            ASSERT_TRUE(ring.receives(kind, i * 7919 % (most + 1))) << most << ", record " << i;
            ASSERT_FALSE(ring.reader.look());
        }
        EXPECT_TRUE(ring.is_rest_untouched()) << most;
    }
}

TEST(LaneRing, a_shorter_beginning_does_not_suffice) {
    bool seems_full = false;
    ShortRing ring(first_lane_end(kRing, 2000) - 4096);
    for (int i = 0; i < 100 && !seems_full; ++i) seems_full = !ring.send(1, 2000) || !ring.receives(1, 2000);
    EXPECT_TRUE(seems_full);
}

// Otherwise a writer that uses only the beginning would wait for news of an eighth of the ring.
TEST(LaneRing, the_reader_tells_after_an_eighth_of_what_is_used) {
    ShortRing ring(4096);
    std::uint64_t told = 0;
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(ring.send(1, 50));
        ASSERT_TRUE(ring.receives(1, 50));
        const std::uint64_t now = ring.freed.load();
        if (now != told && i < 60) {
            EXPECT_EQ(now - told, lane_delay(4096)) << i;
        }
        told = now;
    }
    EXPECT_EQ(lane_delay(kRing), kRing / 8);
}

TEST(LaneRing, records_that_fit_for_sure_into_a_beginning_always_do) {
    for (const std::uint32_t end : {4096u - 64, 8192u - 128, 8192u}) {
        const std::uint32_t longest = longest_record_of(end);
        ShortRing ring(end);
        for (std::uint32_t i = 0; i < 5000; ++i) {
            const std::uint32_t length = i % 3 == 0 ? longest : i * 7919 % (longest + 1);
            ASSERT_TRUE(ring.send(1, length)) << end << ", record " << i;
            ASSERT_TRUE(ring.receives(1, length)) << end << ", record " << i;
        }
        EXPECT_TRUE(ring.is_rest_untouched()) << end;
    }
}

TEST(LaneRing, a_beginning_that_is_full_refuses_until_more_may_be_used) {
    ShortRing ring(4096);
    EXPECT_EQ(ring.writer.end(), 4096u);
    EXPECT_FALSE(ring.send(1, 5000));
    int sent = 0;
    while (ring.send(1, 100)) ++sent;
    EXPECT_EQ(sent, 4096 / 128 - 1);
    EXPECT_TRUE(ring.is_rest_untouched());
    EXPECT_FALSE(ring.send(1, 5000));
    ring.writer.use(8192);
    while (ring.send(1, 100)) ++sent;
    EXPECT_EQ(sent, 8192 / 128 - 1);
    ring.writer.use(kRing);
    while (ring.send(1, 100)) ++sent;
    EXPECT_EQ(sent, static_cast<int>(kRing / 128) - 1);
    for (int read = 0; read < sent; ++read) ASSERT_TRUE(ring.receives(1, 100)) << read;
    EXPECT_FALSE(ring.reader.look());
}

TEST(LaneRing, more_may_be_used_at_any_time) {
    for (std::uint32_t before = 0; before < 200; ++before) {
        ShortRing ring(8192);
        const auto send_and_receive = [&](std::uint32_t i) {
            return ring.send(3, i * 37 % 700) && ring.receives(3, i * 37 % 700);
        };
        for (std::uint32_t i = 0; i < before; ++i) ASSERT_TRUE(send_and_receive(i));
        ASSERT_TRUE(ring.is_rest_untouched());
        ring.writer.use(kRing);
        for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(send_and_receive(i)) << before;
        ASSERT_TRUE(ring.send(5, ring.writer.longest()));
        ASSERT_TRUE(ring.receives(5, ring.writer.longest()));
    }
}

// The reader tells seldom in a long lap, and the next lap may be shorter.
TEST(LaneRing, less_may_be_used_from_lap_to_lap) {
    constexpr std::uint32_t kLong = 1024 * 1024, kShort = 128 * 1024, kLongest = longest_record_of(kShort);
    std::vector<std::byte> memory(kLong + 64);
    std::byte* const bytes = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    alignas(64) std::byte slot[kLaneSlot] = {};
    std::atomic<std::uint64_t> freed{0};
    LaneWriter<LaneMemory> writer({bytes, &freed, slot}, kLong, kShort - 64);
    LaneReader<LaneMemory> reader({bytes, &freed, slot}, kLong);
    std::minstd_rand random(1);
    std::deque<std::uint32_t> lengths;
    const auto receive = [&] {
        const auto record = reader.look();
        ASSERT_TRUE(record);
        ASSERT_EQ(record->bytes, lengths.front());
        if (record->bytes > 0) {
            ASSERT_EQ(bytes[record->at + record->bytes - 1], static_cast<std::byte>(record->bytes));
        }
        lengths.pop_front();
        reader.pass(*record);
    };
    int laps = 0, full = 0;
    for (int i = 0; i < 200'000; ++i) {
        const std::uint32_t length = random() % 5 == 0 ? random() % (kLongest + 1) : random() % 2000;
        LanePlace at;
        while (!(at = writer.reserve(length))) {
            ASSERT_FALSE(lengths.empty())
                << "a record of " << length << " bytes must fit when all before it are read, lap " << laps;
            ++full;
            receive();
            ASSERT_FALSE(HasFatalFailure());
        }
        if (length > 0) bytes[*at + length - 1] = static_cast<std::byte>(length);
        writer.publish(1, length, random() % 2 == 0);
        lengths.push_back(length);
        if (*at == kLaneWord) writer.use(++laps % 3 == 0 ? kLong : laps % 3 == 1 ? kShort : 2 * kShort - 64);
        while (laps % 4 == 0 && !lengths.empty()) {  // else: only when the ring is full
            receive();
            ASSERT_FALSE(HasFatalFailure());
        }
    }
    EXPECT_GT(laps, 1000);
    EXPECT_GT(full, 1000);
}

TEST(LaneRing, a_lap_is_one_of_answers_if_half_of_it_is) {
    for (const bool answers : {true, false}) {
        Ring ring;
        const auto lap = [&ring](std::uint32_t answered) {
            for (std::uint32_t i = 0; i < kRing / 128; ++i) {
                ASSERT_TRUE(ring.writer.reserve(100));
                ring.writer.publish(1, 100, i < answered);
                ring.reader.pass(*ring.reader.look());
            }
        };
        EXPECT_EQ(ring.writer.end_lap().bytes, 0u) << "before the first lap";
        lap(kRing / 128 / 2 - !answers);
        EXPECT_EQ(ring.writer.end_lap().of_answers, answers);
        lap(1);
        const Lap last = ring.writer.end_lap();
        EXPECT_EQ(last.bytes, kRing);
        EXPECT_FALSE(last.of_answers) << "it must not count what came before the last call";
    }
}

TEST(LaneRing, a_lap_has_the_bytes_of_its_records) {
    Ring ring;
    ring.writer.use(8192);
    const auto send_until_next_lap = [&ring] {
        do {
            ASSERT_TRUE(ring.send(1, 1500));
            ASSERT_TRUE(ring.receives(1, 1500));
        } while (*ring.writer.reserve(1500) != kLaneWord);
        ASSERT_TRUE(ring.send(1, 1500));
        ASSERT_TRUE(ring.receives(1, 1500));
    };
    ring.writer.end_lap();
    send_until_next_lap();
    EXPECT_EQ(ring.writer.end_lap().bytes, 5 * lane_record_bytes(1500));
    send_until_next_lap();
    EXPECT_EQ(ring.writer.end_lap().bytes, 5 * lane_record_bytes(1500));
}

TEST(LaneRing, the_beginning_is_pages_of_the_ring) {
    EXPECT_EQ(first_lane_end(kMinLaneRing, 100'000), kMinLaneRing);
    EXPECT_EQ(first_lane_end(128 * 1024, 4096), 12u * 1024);
    EXPECT_EQ(first_lane_end(128 * 1024, 1100), 4096u);
}

TEST(LaneRing, the_longest_record_fits_any_empty_ring) {
    for (std::uint32_t before = 0; before < kRing / 64; ++before) {
        Ring ring;
        for (std::uint32_t i = 0; i < before; ++i) {
            ASSERT_TRUE(ring.send(1, 0));
            ASSERT_TRUE(ring.receives(1, 0));
        }
        ASSERT_TRUE(ring.send(5, ring.writer.longest())) << before;
        ASSERT_TRUE(ring.receives(5, ring.writer.longest())) << before;
    }
}

TEST(LaneRing, refuses_words_that_no_writer_writes) {
    for (const std::uint64_t word : {lane_word(1, kRing), lane_word(1, kRing / 8 * 3), lane_word(0, 8),
                                     lane_word(0xff, 8), lane_word(0xff, 0), ~std::uint64_t{0}}) {
        Ring ring;
        std::memcpy(ring.bytes, &word, sizeof word);
        const auto record = ring.reader.look();
        ASSERT_TRUE(record) << word;
        EXPECT_EQ(record->kind, 0) << word;
    }
}

// -- the slot

// The first record in the ring has told of the slot.
struct SlotRing : Ring {
    SlotRing() {
        writer.use_slot();
        EXPECT_TRUE(put(1, 8, true));
        EXPECT_TRUE(receives(1, 8));
    }
    bool put(std::uint8_t kind, std::uint32_t length, bool is_answer, bool taken = false) {
        const auto at = writer.reserve(length);
        if (!at) return false;
        for (std::uint32_t i = 0; i < length; ++i) bytes[*at + i] = static_cast<std::byte>(kind + i);
        writer.publish(kind, length, is_answer, taken);
        return true;
    }
    bool put_in_slot(std::uint8_t kind, std::uint32_t length, bool confirmed) {
        if (!writer.takes_slot(length, confirmed)) return false;
        for (std::uint32_t i = 0; i < length; ++i) slot[kLaneWord + i] = static_cast<std::byte>(kind + i);
        writer.publish_slot(kind, length, false);
        return true;
    }
    bool receives_in_slot(std::uint8_t kind, std::uint32_t length) {
        const auto record = reader.look();
        if (!record || !record->is_in_slot() || record->kind != kind || record->bytes != length) return false;
        for (std::uint32_t i = 0; i < length; ++i)
            if (slot[kLaneWord + i] != static_cast<std::byte>(kind + i)) return false;
        reader.pass_slot();
        return true;
    }
};

TEST(LaneSlot, is_not_used_before_the_ring_tells_of_it) {
    Ring ring;
    EXPECT_FALSE(ring.writer.takes_slot(300, false)) << "its memory is not provided";
    ring.writer.use_slot();
    EXPECT_FALSE(ring.writer.takes_slot(300, false)) << "the reader does not know of it";
    ASSERT_TRUE(ring.writer.reserve(8));
    ring.writer.publish(1, 8, true);
    EXPECT_TRUE(ring.writer.takes_slot(300, false));
    const std::uint64_t word = lane_word(1, 8, kLaneSlotState);
    std::memcpy(ring.slot, &word, sizeof word);
    EXPECT_FALSE(ring.reader.has_slot());
    EXPECT_FALSE(ring.reader.look()->is_in_slot());
    ring.reader.pass(*ring.reader.look());
    EXPECT_TRUE(ring.reader.has_slot());
    EXPECT_TRUE(ring.reader.look()->is_in_slot());
}

TEST(LaneSlot, keeps_its_place_in_the_order) {
    SlotRing ring;
    ASSERT_TRUE(ring.put_in_slot(1, 300, false));
    ASSERT_TRUE(ring.put(2, 100, false));
    ASSERT_TRUE(ring.receives_in_slot(1, 300));
    ASSERT_TRUE(ring.put(3, 100, false));
    EXPECT_FALSE(ring.put_in_slot(9, 300, true)) << "records follow the last answer";
    ASSERT_TRUE(ring.put(4, 300, true));
    ASSERT_TRUE(ring.put_in_slot(5, 300, true));
    ASSERT_TRUE(ring.put(6, 100, false));
    EXPECT_TRUE(ring.receives(2, 100));
    EXPECT_TRUE(ring.receives(3, 100));
    EXPECT_TRUE(ring.receives(4, 300));
    EXPECT_TRUE(ring.receives_in_slot(5, 300));
    EXPECT_TRUE(ring.receives(6, 100));
    EXPECT_FALSE(ring.reader.look());
}

TEST(LaneSlot, is_used_again_only_after_its_reader_has_taken_the_record) {
    SlotRing ring;
    bool confirmed = false;
    for (std::uint8_t i = 1; i < 100; ++i) {
        ASSERT_TRUE(ring.put_in_slot(i, 200 + i, confirmed));
        ASSERT_FALSE(ring.writer.takes_slot(300, confirmed)) << "it is not read yet";
        ASSERT_TRUE(ring.put(i, 300, true));
        ASSERT_TRUE(ring.receives_in_slot(i, 200 + i));
        ASSERT_TRUE(ring.receives(i, 300));
        ASSERT_FALSE(ring.reader.look());
        confirmed = ring.reader.turn();
    }
}

TEST(LaneSlot, takes_records_of_some_lengths_only) {
    for (const std::uint32_t bytes : {0u, 8u, kShortestInSlot - 1, kLaneSlot - kLaneWord + 1, 100'000u})
        EXPECT_FALSE(SlotRing().writer.takes_slot(bytes, false)) << bytes;
    for (const std::uint32_t bytes : {kShortestInSlot, kLaneSlot - kLaneWord}) {
        SlotRing ring;
        EXPECT_TRUE(ring.put_in_slot(7, bytes, false)) << bytes;
        EXPECT_TRUE(ring.receives_in_slot(7, bytes)) << bytes;
    }
}

// In a ring that is used to its end, a skip may come before or behind the record in the slot.
TEST(LaneSlot, keeps_the_order_over_many_laps) {
    SlotRing ring;
    std::minstd_rand random(1);
    struct Sent {
        std::uint8_t kind;
        std::uint32_t bytes;
        bool in_slot;
    };
    std::deque<Sent> sent;
    bool confirmed = false, answers = true;
    int used = 0, full = 0;
    const auto receive = [&] {
        const Sent next = sent.front();
        sent.pop_front();
        return next.in_slot ? ring.receives_in_slot(next.kind, next.bytes) : ring.receives(next.kind, next.bytes);
    };
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        const auto kind = static_cast<std::uint8_t>(1 + i % 200);
        const std::uint32_t bytes = random() % 3 == 0 ? random() % 5000 : 193 + random() % 1800;
        const bool is_answer = std::exchange(answers, false);
        if (is_answer && ring.put_in_slot(kind, bytes, confirmed)) {
            sent.push_back({kind, bytes, true});
            ++used;
        } else if (ring.put(kind, bytes, is_answer)) {
            sent.push_back({kind, bytes, false});
        } else {
            ++full;  // and perhaps a skip is published
        }
        while (!sent.empty() && random() % 5 > 0) {
            ASSERT_TRUE(receive()) << "record " << i;
            confirmed = ring.reader.turn();
            answers = random() % 4 > 0;
        }
        while (sent.size() > 6) ASSERT_TRUE(receive()) << "record " << i;
    }
    while (!sent.empty()) ASSERT_TRUE(receive());
    EXPECT_FALSE(ring.reader.look());
    EXPECT_GT(used, 3000);
    EXPECT_GT(full, 10);
}

TEST(LaneSlot, refuses_words_that_no_writer_writes) {
    for (const std::uint64_t word :
         {lane_word(1, kLaneSlot - kLaneWord + 1, kLaneSlotState), lane_word(0, 8, kLaneSlotState),
          lane_word(kLaneSkip, 0, kLaneSlotState), lane_word(1, 8, kLaneTurn), ~std::uint64_t{0}}) {
        SlotRing ring;
        std::memcpy(ring.slot, &word, sizeof word);
        const auto record = ring.reader.look();
        ASSERT_TRUE(record) << word;
        EXPECT_EQ(record->kind, 0) << word;
    }
    Ring behind;  // a skip that is not one, behind the beginning
    ASSERT_TRUE(behind.send(1, 8));
    ASSERT_TRUE(behind.receives(1, 8));
    const std::uint64_t no_skip = lane_word(kLaneSkip, 0, 0, true);
    std::memcpy(behind.bytes + 64, &no_skip, sizeof no_skip);
    ASSERT_TRUE(behind.reader.look());
    EXPECT_EQ(behind.reader.look()->kind, 0);
    for (const std::uint64_t slot : {kLaneTurn, kLaneSlotState}) {  // follows a record in the slot, where there is none
        Ring ring;
        const std::uint64_t word = lane_word(1, 8, slot);
        std::memcpy(ring.bytes, &word, sizeof word);
        ASSERT_TRUE(ring.reader.look());
        EXPECT_EQ(ring.reader.look()->kind, 0) << slot;
    }
}

// A sender that provides no slot, and whose ring is damaged.
TEST(LaneSlot, is_not_touched_if_its_memory_may_not_exist) {
    alignas(64) std::byte bytes[kRing] = {};
    std::atomic<std::uint64_t> freed{0};
    LaneReader<LaneMemory> reader({bytes, &freed, nullptr}, kRing);  // a load from the slot ends this test
    EXPECT_FALSE(reader.look());
    const std::uint64_t word = lane_word(1, 8, kLaneTurn);
    std::memcpy(bytes, &word, sizeof word);
    ASSERT_TRUE(reader.look());
    EXPECT_EQ(reader.look()->kind, 0);
}

TEST(LaneSlot, words_tell_what_has_been_taken) {
    SlotRing ring;
    for (const bool taken : {true, false}) {
        ASSERT_TRUE(ring.put(1, 100, true, taken));
        EXPECT_EQ(ring.reader.look()->taken, taken);
        ring.reader.pass(*ring.reader.look());
    }
    ASSERT_TRUE(ring.writer.takes_slot(300, false));
    ring.writer.publish_slot(1, 300, true);
    EXPECT_TRUE(ring.reader.look()->taken);
}

TEST(LaneParts, tell_no_more_than_there_is_and_no_less_than_is_known) {
    Ring ring;
    LaneParts<LaneMemory> parts({ring.bytes, &ring.freed, ring.slot}, 64);
    parts.begin();
    EXPECT_EQ(parts.written(0, 1000), 0u);
    parts.tell(400);
    EXPECT_EQ(parts.written(0, 1000), 400u);
    EXPECT_EQ(parts.written(400, 1000), 400u);
    EXPECT_EQ(parts.written(500, 1000), 500u);  // the writer is damaged
    parts.tell(5000);
    EXPECT_EQ(parts.written(400, 1000), 1000u);
}

}  // namespace
}  // namespace coop::node
