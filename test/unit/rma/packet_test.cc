// SPDX-License-Identifier: BSD-3-Clause
// rma/packet.h: the bytes on the wire, and that what is written is read. packet_damage_test.cc has the damaged ones.
#include "coop/rma/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "frames.h"

namespace coop::rma {
namespace {

// Another layout is another version.
static_assert(kPacketVersion == 3);
#define EXPECT_FIELD(type, field, offset, bytes) \
    static_assert(offsetof(type, field) == (offset) && sizeof(type::field) == (bytes))
EXPECT_FIELD(Packet, check, 0, 4);
EXPECT_FIELD(Packet, kind, 4, 1);
EXPECT_FIELD(Packet, version, 5, 1);
EXPECT_FIELD(Packet, unused, 6, 2);
EXPECT_FIELD(Packet, window, 8, 4);
EXPECT_FIELD(Packet, source, 12, 4);
EXPECT_FIELD(Packet, sequence, 16, 4);
EXPECT_FIELD(Packet, bytes, 20, 4);
EXPECT_FIELD(Record, kind, 0, 1);
EXPECT_FIELD(Record, type, 1, 1);
EXPECT_FIELD(Record, operation, 2, 1);
EXPECT_FIELD(Record, flags, 3, 1);
EXPECT_FIELD(Record, bytes, 4, 4);
EXPECT_FIELD(Record, at, 8, 8);
EXPECT_FIELD(Record, cookie, 16, 8);
EXPECT_FIELD(Record, position, 24, 8);
EXPECT_FIELD(Reply, answer, 0, 1);
EXPECT_FIELD(Reply, refused, 1, 1);
EXPECT_FIELD(Reply, unused, 2, 2);
EXPECT_FIELD(Reply, bytes, 4, 4);
EXPECT_FIELD(Reply, cookie, 8, 8);
EXPECT_FIELD(Reply, position, 16, 8);
EXPECT_FIELD(SignalPacket, packet, 0, 24);
EXPECT_FIELD(SignalPacket, signal, 24, 8);
EXPECT_FIELD(Signal, epoch, 0, 4);
EXPECT_FIELD(Signal, end, 4, 1);
EXPECT_FIELD(Signal, touched, 5, 1);
EXPECT_FIELD(Signal, place, 6, 1);
EXPECT_FIELD(Signal, signals, 7, 1);
EXPECT_FIELD(Run, offset, 0, 8);
EXPECT_FIELD(Run, bytes, 8, 8);
EXPECT_FIELD(Run, stride, 16, 8);
EXPECT_FIELD(Run, repeat, 24, 8);
#undef EXPECT_FIELD
static_assert(std::has_unique_object_representations_v<Packet> && std::has_unique_object_representations_v<Record> &&
              std::has_unique_object_representations_v<Reply> && std::has_unique_object_representations_v<Run> &&
              std::has_unique_object_representations_v<SignalPacket>);
static_assert(static_cast<int>(Packets::kFrame) == 1 && static_cast<int>(Packets::kReply) == 2 &&
              static_cast<int>(Packets::kSignal) == 3);
static_assert(static_cast<int>(End::kComplete) == 1 && static_cast<int>(End::kFence) == 2);
static_assert(static_cast<int>(Kind::kPut) == 1 && static_cast<int>(Kind::kGet) == 2 &&
              static_cast<int>(Kind::kAccumulate) == 3 && static_cast<int>(Kind::kFetch) == 4 &&
              static_cast<int>(Kind::kSwap) == 5 && static_cast<int>(Kind::kLock) == 6 &&
              static_cast<int>(Kind::kUnlock) == 7 && static_cast<int>(Kind::kFlush) == 8 &&
              static_cast<int>(Kind::kPost) == 9 && static_cast<int>(Kind::kComplete) == 10 &&
              static_cast<int>(Kind::kReceive) == 11 && static_cast<int>(Kind::kSend) == 12 &&
              static_cast<int>(Kind::kFence) == 13);
static_assert(static_cast<int>(Answer::kData) == 1 && static_cast<int>(Answer::kRefused) == 2 &&
              static_cast<int>(Answer::kFlushed) == 3 && static_cast<int>(Answer::kGranted) == 4 &&
              static_cast<int>(Answer::kUnlocked) == 5 && static_cast<int>(Answer::kReceived) == 6);

void expect_equal(const ReadRecord& read, const Written& written) {
    EXPECT_EQ(std::memcmp(&read.record, &written.record, sizeof(Record)), 0);
    ASSERT_EQ(read.runs.size(), written.runs.size() * sizeof(Run));
    if (!written.runs.empty()) {
        EXPECT_EQ(std::memcmp(read.runs.data(), written.runs.data(), read.runs.size()), 0);
    }
    EXPECT_TRUE(std::equal(written.data.begin(), written.data.end(), read.data));
    for (std::size_t i = written.data.size(); i < padded(written.data.size()); ++i)
        EXPECT_EQ(read.data[i], std::byte{0}) << "padding " << i;
}
void expect_equal(const Reply& read, const std::byte* data, const Written& written) {
    EXPECT_EQ(std::memcmp(&read, &written.reply, sizeof(Reply)), 0);
    EXPECT_TRUE(std::equal(written.data.begin(), written.data.end(), data));
    for (std::size_t i = written.data.size(); i < padded(written.data.size()); ++i)
        EXPECT_EQ(data[i], std::byte{0}) << "padding " << i;
}

void expect_read(Packets kind, const Bytes& bytes, const std::vector<Written>& all) {
    ASSERT_EQ(find_damage(bytes), nullptr) << find_damage(bytes);
    EXPECT_EQ(read_packet(bytes).bytes, bytes.size() - sizeof(Packet));
    FrameReader reader(bytes);
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE("record " + std::to_string(i));
        ASSERT_FALSE(reader.at_end());
        if (kind == Packets::kFrame) {
            expect_equal(reader.next_record(), all[i]);
        } else {
            const std::byte* data = nullptr;
            const Reply reply = reader.next_reply(&data);
            expect_equal(reply, data, all[i]);
        }
    }
    EXPECT_TRUE(reader.at_end());
}

// All shapes of records: each kind, with and without runs and data, of any padding.
std::vector<Written> all_shapes(std::mt19937& random) {
    std::vector<Written> all;
    for (int kind = 1; kind <= kKinds; ++kind) {
        if (!may_have_runs(kind)) {
            all.push_back(random_record(static_cast<Kind>(kind), false, false, has_bytes(kind) ? 9 : 0, random));
            continue;
        }
        for (const bool with_runs : {false, true})
            for (const bool with_data : {false, true})
                for (std::uint32_t bytes = 1; bytes <= 17; ++bytes)
                    if (data_of(kind) == '?' || (data_of(kind) == '!') == with_data)
                        all.push_back(random_record(static_cast<Kind>(kind), with_runs, with_data, bytes, random));
    }
    return all;
}

std::vector<Written> all_replies(std::mt19937& random) {
    std::vector<Written> all;
    for (int i = 0; i < 300; ++i) all.push_back(random_reply(random));
    return all;
}

TEST(RmaPacket, every_record_is_read_as_it_was_written) {
    std::mt19937 random(1);
    const std::vector<Written> all = all_shapes(random);
    EXPECT_EQ(all.size(), 6u * 2 * 17 + 8);
    for (const Written& written : all)
        expect_read(Packets::kFrame, packed(Packets::kFrame, {written}, random), {written});
    expect_read(Packets::kFrame, packed(Packets::kFrame, all, random), all);
}

TEST(RmaPacket, every_reply_is_read_as_it_was_written) {
    std::mt19937 random(2);
    const std::vector<Written> all = all_replies(random);
    for (const Written& written : all)
        expect_read(Packets::kReply, packed(Packets::kReply, {written}, random), {written});
    expect_read(Packets::kReply, packed(Packets::kReply, all, random), all);
}

TEST(RmaPacket, random_frames_are_read_as_they_were_written) {
    std::mt19937 random(3);
    for (int round = 0; round < 300 && !HasFailure(); ++round) {
        std::vector<Written> all(random() % 12);
        for (Written& written : all) written = random_record(random);
        expect_read(Packets::kFrame, packed(Packets::kFrame, all, random), all);
    }
}

TEST(RmaPacket, the_packet_has_what_the_sender_gave) {
    std::mt19937 random(4);
    for (const Packets kind : {Packets::kFrame, Packets::kReply}) {
        Bytes memory(64);
        FrameWriter writer(memory);
        EXPECT_TRUE(writer.empty());
        EXPECT_EQ(writer.room(), 40u);
        const Packet given = random_packet(kind, random);
        const auto bytes = writer.seal(given);
        ASSERT_EQ(bytes.size(), sizeof(Packet));
        EXPECT_EQ(find_damage(bytes), nullptr);
        const Packet read = read_packet(bytes);
        EXPECT_EQ(read.kind, kind);
        EXPECT_EQ(read.version, kPacketVersion);
        EXPECT_EQ(read.window, given.window);
        EXPECT_EQ(read.source, given.source);
        EXPECT_EQ(read.sequence, given.sequence);
        EXPECT_EQ(read.bytes, 0u);
        EXPECT_TRUE(FrameReader(bytes).at_end());
    }
}

TEST(RmaPacket, a_signal_is_read_as_it_was_written) {
    std::mt19937 random(12);
    for (int i = 0; i < 100; ++i) {
        const Signal signal{static_cast<std::uint32_t>(random()), i % 2 ? End::kFence : End::kComplete,
                            static_cast<std::uint8_t>(random()), static_cast<std::uint8_t>(random()),
                            static_cast<std::uint8_t>(random())};
        SignalPacket packet{random_packet(Packets::kReply, random), signal};
        seal(packet);
        const auto bytes = std::as_bytes(std::span(&packet, 1));
        ASSERT_EQ(find_damage(bytes), nullptr);
        EXPECT_EQ(read_packet(bytes).kind, Packets::kSignal);
        const Signal read = read_signal(bytes), of_record = signal_of(record_of(signal));
        EXPECT_EQ(std::memcmp(&read, &signal, sizeof signal), 0);
        EXPECT_EQ(std::memcmp(&of_record, &signal, sizeof signal), 0);
        EXPECT_TRUE(is_end(record_of(signal).kind));
    }
}

// A put of five bytes, and a get, as they were on the wire when version 1 was new.
TEST(RmaPacket, bytes_on_the_wire) {
    Bytes memory(256, std::byte{0xCC});
    FrameWriter writer(memory);
    Record put{};
    put.kind = Kind::kPut, put.flags = kHasData, put.bytes = 5, put.at = 0x1122334455667788, put.cookie = 9;
    put.position = ~0ull;  // a put has none, so that it is not sent
    std::memcpy(writer.add(put), "abcde", 5);
    const rma::Run runs[] = {{0x10, 4, -8, 2}};
    Record get{};
    get.kind = Kind::kGet, get.flags = kHasRuns, get.bytes = 8, get.at = 1, get.cookie = 0x0A, get.position = 0x0B;
    EXPECT_NE(writer.add(get, runs), nullptr);
    Packet packet{};
    packet.kind = Packets::kFrame, packet.window = 3, packet.source = 4, packet.sequence = 5;
    const auto sealed = writer.seal(packet);
    std::string text;
    for (std::size_t i = 4; i < sealed.size(); ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        text += kDigits[static_cast<int>(sealed[i]) >> 4];
        text += kDigits[static_cast<int>(sealed[i]) & 15];
        if (i % 8 == 7) text += i + 1 < sealed.size() ? " " : "";
    }
    EXPECT_EQ(text,
              "01030000 0300000004000000 0500000060000000 "                            // packet
              "0100000205000000 8877665544332211 0900000000000000 "                    // put
              "6162636465000000 "                                                      // its data
              "0200000108000000 0100000000000000 0a00000000000000 0b00000000000000 "   // get
              "1000000000000000 0400000000000000 f8ffffffffffffff 0200000000000000");  // its run
    EXPECT_EQ(read_packet(sealed).check, parse(sealed).check);
}

// Each record in memory that has exactly its size, and in memory that has a byte less.
void check_fit(Packets kind, const std::vector<Written>& all, std::mt19937& random) {
    for (const Written& written : all) {
        const Written before = kind == Packets::kFrame ? random_record(random) : random_reply(random);
        const Bytes both = packed(kind, {before, written}, random), first = packed(kind, {before}, random);
        Bytes exact(both.size());
        FrameWriter fits(exact);
        ASSERT_NE(append(fits, kind, before), nullptr);
        ASSERT_NE(append(fits, kind, written), nullptr);
        EXPECT_EQ(fits.room(), 0u);
        EXPECT_EQ(append(fits, kind, written), nullptr);
        fits.seal(random_packet(kind, random));
        expect_read(kind, exact, {before, written});

        // What does not fit leaves the frame as it was.
        Bytes less(both.size() - 1);
        FrameWriter fails(less);
        ASSERT_NE(append(fails, kind, before), nullptr);
        EXPECT_EQ(fails.used(), first.size());
        EXPECT_EQ(append(fails, kind, written), nullptr);
        EXPECT_EQ(fails.used(), first.size());
        EXPECT_EQ(fails.room(), less.size() - first.size());
        const auto sealed = fails.seal(random_packet(kind, random));
        expect_read(kind, {sealed.begin(), sealed.end()}, {before});
        if (testing::Test::HasFailure()) return;
    }
}

TEST(RmaPacket, records_fit_exactly_or_not_at_all) {
    std::mt19937 random(5);
    check_fit(Packets::kFrame, all_shapes(random), random);
}

TEST(RmaPacket, replies_fit_exactly_or_not_at_all) {
    std::mt19937 random(6);
    check_fit(Packets::kReply, all_replies(random), random);
}

TEST(RmaPacket, no_memory_has_no_room) {
    Record flush{};
    flush.kind = Kind::kFlush;
    Reply reply{};
    reply.answer = Answer::kFlushed;
    for (std::size_t size = 0; size <= sizeof(Packet); ++size) {
        Bytes memory(size);
        FrameWriter writer(memory);
        EXPECT_TRUE(writer.empty());
        EXPECT_EQ(writer.room(), 0u);
        EXPECT_EQ(writer.add(flush), nullptr);
        EXPECT_EQ(writer.add(reply), nullptr);
    }
    FrameWriter none;
    EXPECT_EQ(none.room(), 0u);
    EXPECT_EQ(none.add(flush), nullptr);
}

TEST(RmaPacket, data_longer_than_any_frame_does_not_fit) {
    Bytes memory(1024);
    FrameWriter writer(memory);
    Record record{};
    for (const Kind kind : {Kind::kPut, Kind::kSwap})
        for (const std::uint32_t bytes : {1024u, 1u << 31, ~0u - 7, ~0u}) {
            record.kind = kind, record.flags = kHasData, record.bytes = bytes;
            EXPECT_EQ(writer.add(record), nullptr);
            Reply reply{};
            reply.answer = Answer::kData, reply.bytes = bytes;
            EXPECT_EQ(writer.add(reply), nullptr);
        }
    EXPECT_TRUE(writer.empty());
}

}  // namespace
}  // namespace coop::rma
