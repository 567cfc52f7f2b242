// SPDX-License-Identifier: BSD-3-Clause
//
// rma/packet.h: packets that no process of ours has sent. All are in memory of exactly their size, so that a sanitizer
// notices what is read outside of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "coop/rma/packet.h"
#include "frames.h"

namespace coop::rma {
namespace {

std::string damage_of(const Bytes& bytes) {
    const char* const why = find_damage(bytes);
    return why ? why : "";
}

// Reads every byte of a packet that has passed.
std::uint64_t sum_of_all(const Bytes& bytes) {
    if (read_packet(bytes).kind == Packets::kSignal) return read_signal(bytes).epoch;
    std::uint64_t sum = 0;
    const auto add = [&](const std::byte* at, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) sum += static_cast<std::uint64_t>(at[i]);
    };
    FrameReader reader(bytes);
    while (!reader.at_end()) {
        if (read_packet(bytes).kind == Packets::kFrame) {
            const ReadRecord read = reader.next_record();
            add(read.runs.data(), read.runs.size());
            add(read.data, padded(data_bytes(read.record)));
        } else {
            const std::byte* data = nullptr;
            const Reply reply = reader.next_reply(&data);
            add(data, padded(reply.bytes));
        }
    }
    return sum;
}

// Frames with every kind of record, replies, and a signal.
std::vector<Bytes> samples(std::mt19937& random) {
    std::vector<Written> records, replies;
    for (int kind = 1; kind <= kKinds; ++kind)
        for (const bool with_runs : {false, true})
            if (may_have_runs(kind) || !with_runs)
                records.push_back(random_record(static_cast<Kind>(kind), with_runs, data_of(kind) == '!' || kind == 4,
                                                has_bytes(kind) ? 1 + random() % 20 : 0, random));
    records.push_back(random_record(Kind::kFetch, true, false, 8, random));
    std::ranges::shuffle(records, random);
    for (int i = 0; i < 12; ++i) replies.push_back(random_reply(random));
    return {packed(Packets::kFrame, records, random), packed(Packets::kReply, replies, random),
            packed(Packets::kFrame, {}, random), packed(Packets::kReply, {}, random), packed_signal(random)};
}

TEST(RmaDamage, every_flipped_bit_of_headers_records_and_runs_is_found) {
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round)
        for (Bytes bytes : samples(random)) {
            ASSERT_EQ(damage_of(bytes), "");
            const std::vector<bool> covered = parse(bytes).covered;
            for (std::size_t i = 0; i < bytes.size(); ++i)
                for (int bit = 0; bit < 8; ++bit) {
                    const std::byte was = bytes[i];
                    bytes[i] ^= std::byte{1} << bit;
                    // The check word does not cover data.
                    ASSERT_EQ(find_damage(bytes) != nullptr, covered[i]) << "byte " << i << ", bit " << bit;
                    bytes[i] = was;
                }
        }
}

TEST(RmaDamage, every_changed_word_is_found) {
    std::mt19937 random(2);
    for (int round = 0; round < 20; ++round)
        for (Bytes bytes : samples(random)) {
            const std::vector<bool> covered = parse(bytes).covered;
            for (std::size_t i = 0; i < bytes.size(); i += 8) {
                if (!covered[i]) continue;
                std::uint64_t was = 0;
                std::memcpy(&was, &bytes[i], sizeof was);
                for (const std::uint64_t now : {std::uint64_t{0}, ~std::uint64_t{0}, was + 1, was << 1,
                                                was << 32 | was >> 32, random_word(random)}) {
                    if (now == was) continue;
                    std::memcpy(&bytes[i], &now, sizeof now);
                    ASSERT_NE(find_damage(bytes), nullptr) << "word at " << i;
                }
                std::memcpy(&bytes[i], &was, sizeof was);
            }
        }
}

// Longer ones would have a negative count as messages of the PML.
TEST(RmaDamage, messages_have_no_more_bytes_than_a_pml_counts) {
    for (const Kind kind : {Kind::kReceive, Kind::kSend})
        for (const std::uint32_t bytes : {1u, kMostOfMessage, kMostOfMessage + 1, ~0u}) {
            Bytes memory(sizeof(Packet) + sizeof(Record));
            FrameWriter writer(memory);
            Record record{};
            record.kind = kind;
            record.bytes = bytes;
            ASSERT_NE(writer.add(record), nullptr);
            Packet packet{};
            packet.kind = Packets::kFrame;
            const std::span<const std::byte> sealed = writer.seal(packet);
            EXPECT_EQ(damage_of(Bytes(sealed.begin(), sealed.end())),
                      bytes <= kMostOfMessage ? "" : "bytes of a record");
        }
}

TEST(RmaDamage, packets_are_whole_or_damaged) {
    std::mt19937 random(3);
    for (const Bytes& bytes : samples(random)) {
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
            ASSERT_EQ(damage_of(part), "length") << length;
            // Also if the packet itself says that it is so short.
            if (length < sizeof(Packet)) continue;
            const auto rest = static_cast<std::uint32_t>(length - sizeof(Packet));
            std::memcpy(&part[20], &rest, sizeof rest);
            ASSERT_NE(damage_of(part), "") << length;
        }
        Bytes longer = bytes;
        longer.push_back(std::byte{0});
        EXPECT_EQ(damage_of(longer), "length");
        longer.resize(bytes.size() + 24);
        EXPECT_EQ(damage_of(longer), "length");
    }
    EXPECT_EQ(std::string(find_damage({})), "length");
}

TEST(RmaDamage, packets_of_another_kind_or_version_are_named) {
    std::mt19937 random(10);
    for (int value = 0; value <= 255; ++value) {
        // The check word of an unknown kind is right, that of another version need not be.
        const Bytes kind = packed(static_cast<Packets>(value), {}, random);
        EXPECT_EQ(damage_of(kind), value == 1 || value == 2 ? "" : value == 3 ? "length of a signal" : "kind") << value;
        Bytes version = packed(Packets::kFrame, {}, random);
        version[5] = static_cast<std::byte>(value);
        EXPECT_EQ(damage_of(version), value == kPacketVersion ? "" : "version") << value;
    }
}

TEST(RmaDamage, as_much_of_a_packet_as_there_is_can_be_printed) {
    std::mt19937 random(4);
    const Bytes bytes = packed(Packets::kFrame, {}, random);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
        const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        const Packet packet = read_packet(part);
        Bytes expected = part;
        expected.resize(sizeof packet);
        EXPECT_EQ(std::memcmp(&packet, expected.data(), sizeof packet), 0) << length;
    }
    EXPECT_EQ(read_packet({}).bytes, 0u);
}

TEST(RmaDamage, a_record_has_what_its_kind_needs_and_nothing_else) {
    std::mt19937 random(5);
    for (int kind = 0; kind <= 255; ++kind)
        for (int flags = 0; flags <= 255; ++flags)
            for (const std::uint32_t bytes : {0u, 5u}) {
                Written written = random_record(Kind::kPut, (flags & 1) != 0, false, bytes, random);
                written.record.kind = static_cast<Kind>(kind);
                written.record.flags = static_cast<std::uint8_t>(flags);
                const Bytes frame = packed(Packets::kFrame, {written}, random);
                const bool good = kind >= 1 && kind <= kKinds && flags <= 3 && has_bytes(kind) == (bytes > 0) &&
                                  (may_have_runs(kind) || flags == 0) &&
                                  (data_of(kind) == '?' || (data_of(kind) == '!') == ((flags & 2) != 0));
                ASSERT_EQ(damage_of(frame).empty(), good) << kind << ", flags " << flags << ", bytes " << bytes;
                if (kind == 0 || kind > kKinds) {
                    ASSERT_EQ(damage_of(frame), "kind of a record");
                }
                if (good) sum_of_all(frame);
            }
}

TEST(RmaDamage, a_reply_has_data_or_not_as_its_kind_says) {
    std::mt19937 random(6);
    for (int answer = 0; answer <= 255; ++answer)
        for (const std::uint32_t bytes : {0u, 5u}) {
            Written written;
            written.reply.answer = static_cast<Answer>(answer);
            written.reply.bytes = bytes;
            const Bytes packet = packed(Packets::kReply, {written}, random);
            const bool known = answer >= 1 && answer <= 6;
            const std::string why = !known ? "kind of a reply" : (answer == 1) == (bytes > 0) ? "" : "bytes of a reply";
            EXPECT_EQ(damage_of(packet), why) << answer << ", bytes " << bytes;
        }
}

// A record and bytes behind it, which need not agree. The check word is right if the packet is.
Bytes frame_of(const Record& record, std::size_t following, std::mt19937& random) {
    Bytes frame(sizeof(Packet) + header_bytes(record.kind) + following, std::byte{0x11});
    Packet packet = random_packet(Packets::kFrame, random);
    packet.version = kPacketVersion;
    packet.bytes = static_cast<std::uint32_t>(frame.size() - sizeof packet);
    std::memcpy(frame.data(), &packet, sizeof packet);
    std::memcpy(frame.data() + sizeof packet, &record, header_bytes(record.kind));
    const std::uint32_t check = parse(frame).check;
    std::memcpy(frame.data(), &check, sizeof check);
    return frame;
}

TEST(RmaDamage, a_message_has_no_more_bytes_than_a_pml_counts) {
    std::mt19937 random(11);
    for (const Kind kind : {Kind::kReceive, Kind::kSend})
        for (const std::uint32_t bytes : {1u << 30, (1u << 30) + 1, 1u << 31, UINT32_MAX}) {
            Record record{};
            record.kind = kind;
            record.bytes = bytes;
            EXPECT_EQ(damage_of(frame_of(record, 0, random)), bytes == 1u << 30 ? "" : "bytes of a record") << bytes;
        }
}

TEST(RmaDamage, absurd_numbers_of_runs_are_found) {
    std::mt19937 random(7);
    for (const Kind kind : {Kind::kPut, Kind::kGet, Kind::kAccumulate, Kind::kFetch, Kind::kSwap}) {
        const bool with_data = data_of(static_cast<int>(kind)) == '!';
        const std::size_t data = !with_data ? 0 : kind == Kind::kSwap ? 16 : 8;
        for (const std::size_t runs : {0u, 1u, 3u})
            for (const std::uint64_t claimed :
                 {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{4},
                  std::uint64_t{1} << 27, std::uint64_t{1} << 58, (std::uint64_t{1} << 59) - 1, std::uint64_t{1} << 59,
                  (std::uint64_t{1} << 59) + 1, std::uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX}) {
                Record record{};
                record.kind = kind, record.bytes = 8, record.at = claimed;
                record.flags = static_cast<std::uint8_t>(kHasRuns | (with_data ? kHasData : 0));
                const Bytes frame = frame_of(record, runs * sizeof(rma::Run) + data, random);
                if (claimed == 0 || claimed > runs) {
                    ASSERT_EQ(damage_of(frame), "number of runs") << claimed << " of " << runs;
                } else if (claimed < runs) {
                    ASSERT_NE(damage_of(frame), "") << claimed << " of " << runs;
                } else {
                    ASSERT_EQ(damage_of(frame), "") << claimed << " of " << runs;
                    sum_of_all(frame);
                }
            }
    }
}

TEST(RmaDamage, absurd_numbers_of_bytes_are_found) {
    std::mt19937 random(8);
    for (const Kind kind : {Kind::kPut, Kind::kAccumulate, Kind::kFetch, Kind::kSwap})
        for (const std::uint32_t claimed :
             {9u, 12u, 16u, 17u, 1u << 30, 1u << 31, (1u << 31) + 8, ~0u - 7, ~0u - 6, ~0u}) {
            Record record{};
            record.kind = kind, record.flags = kHasData, record.bytes = claimed;
            const Bytes frame = frame_of(record, 8, random);
            ASSERT_EQ(damage_of(frame), "length of a record") << claimed;
        }
    for (const std::uint32_t claimed : {9u, 16u, 1u << 31, ~0u - 7, ~0u - 6, ~0u}) {
        Written written;
        written.reply.answer = Answer::kData;
        written.reply.bytes = 8;
        Bytes reply = packed(Packets::kReply, {written}, random);
        ASSERT_EQ(damage_of(reply), "");
        std::memcpy(&reply[28], &claimed, sizeof claimed);
        ASSERT_EQ(damage_of(reply), "length of a reply") << claimed;
    }
}

// Any bytes, mostly nearly right ones, and most with the right check word: find_damage() must agree with the format,
// and what it passes must be readable.
TEST(RmaDamage, random_packets_pass_exactly_if_the_format_permits_them) {
    std::mt19937 random(9);
    std::size_t passed = 0, refused = 0, forged = 0;
    for (int round = 0; round < 60'000; ++round) {
        const Packets kind = random() % 4 ? Packets::kFrame : Packets::kReply;
        std::vector<Written> all(random() % 5);
        for (Written& written : all) written = kind == Packets::kFrame ? random_record(random) : random_reply(random);
        Bytes bytes = packed(kind, all, random);
        std::vector<std::size_t> headers;
        const std::vector<bool> covered = parse(bytes).covered;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (covered[i]) headers.push_back(i);
        const std::uint32_t changes = random() % 4;
        for (std::uint32_t i = 0; i < changes; ++i) {
            constexpr int kLikely[] = {0, 1, 2, 3, 4, 8, 9, 16, 32, 127, 128, 255};
            bytes[headers[random() % headers.size()]] = static_cast<std::byte>(
                random() % 2 ? kLikely[random() % std::size(kLikely)] : static_cast<int>(random()));
        }
        if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 40));
        bytes.shrink_to_fit();
        if (bytes.size() >= sizeof(Packet) && random() % 4) {
            const auto rest = static_cast<std::uint32_t>(bytes.size() - sizeof(Packet));
            std::memcpy(&bytes[20], &rest, sizeof rest);
        }
        const Parsed parsed = parse(bytes);
        if (parsed.good && random() % 4) {
            std::memcpy(bytes.data(), &parsed.check, sizeof parsed.check);
            ++forged;
        }
        const bool right = parsed.good && read_packet(bytes).check == parsed.check;
        ASSERT_EQ(find_damage(bytes) == nullptr, right) << "round " << round << ": " << damage_of(bytes);
        ++(right ? passed : refused);
        if (right) sum_of_all(bytes);
    }
    EXPECT_GT(passed, 10'000u);
    EXPECT_GT(refused, 10'000u);
    EXPECT_GT(forged, 10'000u);
}

}  // namespace
}  // namespace coop::rma
