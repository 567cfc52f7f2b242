// SPDX-License-Identifier: BSD-3-Clause
//
// For the tests of rma/packet.h: random records, and a reader of packets of its own that knows the bytes on the wire
// by their offsets only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "coop/rma/packet.h"

namespace coop::rma {

using Bytes = std::vector<std::byte>;

inline Bytes random_bytes(std::size_t count, std::mt19937& random) {
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}
inline std::uint64_t random_word(std::mt19937& random) {
    return std::uint64_t{static_cast<std::uint32_t>(random())} << 32 | static_cast<std::uint32_t>(random());
}

// Whether a record of this kind has data: '!' always, '-' never, '?' as its flag says.
inline char data_of(int kind) { return std::string_view("?!-!?!--------")[static_cast<std::size_t>(kind)]; }
constexpr int kKinds = 13;
constexpr bool may_have_runs(int kind) { return kind >= 1 && kind <= 5; }
constexpr bool has_bytes(int kind) { return may_have_runs(kind) || kind == 11 || kind == 12; }
constexpr bool has_long_header(int kind) { return kind == 2 || kind == 4 || kind == 5 || kind == 11 || kind == 12; }

// A record with what follows it, or a reply.
struct Written {
    Record record{};
    Reply reply{};
    std::vector<Run> runs;
    Bytes data;
};

inline Written random_record(Kind kind, bool with_runs, bool with_data, std::uint32_t bytes, std::mt19937& random) {
    Written written;
    Record& record = written.record;
    record.kind = kind;
    record.type = static_cast<std::uint8_t>(random());
    record.operation = static_cast<std::uint8_t>(random());
    record.flags = static_cast<std::uint8_t>((with_runs ? 1 : 0) | (with_data ? 2 : 0));
    record.bytes = bytes;
    record.at = random_word(random);
    record.cookie = random_word(random);
    if (has_long_header(static_cast<int>(kind))) record.position = random_word(random);
    if (with_runs) {
        written.runs.resize(1 + random() % 4);
        for (Run& run : written.runs)
            run = {random_word(random), random_word(random), static_cast<std::int64_t>(random_word(random)),
                   random_word(random)};
        record.at = written.runs.size();
    }
    if (with_data) written.data = random_bytes(kind == Kind::kSwap ? 2ull * bytes : bytes, random);
    return written;
}
inline Written random_record(std::mt19937& random) {
    const int kind = 1 + static_cast<int>(random() % kKinds);
    const bool with_data = data_of(kind) == '!' || (data_of(kind) == '?' && random() % 2 == 0);
    return random_record(static_cast<Kind>(kind), may_have_runs(kind) && random() % 2 == 0, with_data,
                         has_bytes(kind) ? 1 + random() % 20 : 0, random);
}
inline Written random_reply(std::mt19937& random) {
    Written written;
    written.reply.answer = static_cast<Answer>(1 + random() % 6);
    if (written.reply.answer == Answer::kData) written.data = random_bytes(1 + random() % 20, random);
    written.reply.bytes = static_cast<std::uint32_t>(written.data.size());
    written.reply.cookie = random_word(random);
    written.reply.position = random_word(random);
    return written;
}

inline std::byte* append(FrameWriter& writer, Packets kind, const Written& written) {
    std::byte* const at = kind == Packets::kFrame ? writer.add(written.record, written.runs)
                                                  : writer.add(written.reply);
    if (at && !written.data.empty()) std::memcpy(at, written.data.data(), written.data.size());
    return at;
}

inline Packet random_packet(Packets kind, std::mt19937& random) {
    Packet packet{};
    packet.kind = kind;
    packet.window = static_cast<std::uint32_t>(random());
    packet.source = static_cast<std::uint32_t>(random());
    packet.sequence = kind == Packets::kFrame ? static_cast<std::uint32_t>(random()) : 0;
    return packet;
}

// A sealed packet in memory of its size, which a sanitizer guards.
inline Bytes packed(Packets kind, const std::vector<Written>& all, std::mt19937& random) {
    Bytes memory(4096 + 512 * all.size(), std::byte{0xCC});
    FrameWriter writer(memory);
    for (const Written& written : all) append(writer, kind, written);
    const std::span<const std::byte> sealed = writer.seal(random_packet(kind, random));
    return {sealed.begin(), sealed.end()};
}

inline Bytes packed_signal(std::mt19937& random) {
    SignalPacket signal{random_packet(Packets::kSignal, random), {}};
    const std::uint64_t word = random_word(random);
    std::memcpy(&signal.signal, &word, sizeof word);
    seal(signal);
    Bytes bytes(sizeof signal);
    std::memcpy(bytes.data(), &signal, sizeof signal);
    return bytes;
}

// What the wire format says about a packet.
struct Parsed {
    bool good = false;            // but for the check word
    std::uint32_t check = 0;      // that it should have, if it is good
    std::vector<bool> covered{};  // by byte: the check word covers it
};
inline Parsed parse(std::span<const std::byte> bytes) {
    Parsed parsed{.covered = std::vector<bool>(bytes.size())};
    const auto load = [&](std::size_t at, std::size_t count) {
        std::uint64_t value = 0;
        for (std::size_t i = count; i > 0; --i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i - 1]);
        return value;
    };
    const auto step = [](std::uint64_t sum, std::uint64_t word) {
        const std::uint64_t product = (sum ^ word) * 0x9E3779B97F4A7C15;
        return product ^ product >> 32;
    };
    std::uint64_t sum = 0;
    if (bytes.size() < 24 || load(5, 1) != 3 || load(20, 4) != bytes.size() - 24) return parsed;
    const std::uint64_t packet_kind = load(4, 1);
    if (packet_kind < 1 || packet_kind > 3) return parsed;
    for (std::size_t i = 0; i < 24; ++i) parsed.covered[i] = true;
    if (packet_kind == 3 && bytes.size() != 32) return parsed;
    for (std::size_t at = 24; packet_kind == 3 && at < bytes.size(); at += 8) {
        sum = step(sum, load(at, 8));
        for (std::size_t i = 0; i < 8; ++i) parsed.covered[at + i] = true;
    }
    for (std::size_t at = 24; packet_kind != 3 && at < bytes.size();) {
        const std::size_t left = bytes.size() - at;
        if (left < 24) return parsed;
        const std::uint64_t kind = load(at, 1), flags = load(at + 3, 1), count = load(at + 4, 4);
        std::uint64_t header = 24, data = 0;
        if (packet_kind == 1) {
            if (kind == 0 || kind > kKinds || flags > 3) return parsed;
            const int number = static_cast<int>(kind);
            if ((!may_have_runs(number) && flags != 0) || has_bytes(number) != (count > 0)) return parsed;
            if ((kind == 11 || kind == 12) && count > 1u << 30) return parsed;  // a message of the PML
            const char wanted = data_of(number);
            if (wanted != '?' && (wanted == '!') != ((flags & 2) != 0)) return parsed;
            if (has_long_header(number)) header = 32;
            if (left < header) return parsed;
            if (flags & 1) {
                const std::uint64_t runs = load(at + 8, 8);
                if (runs == 0 || runs > (left - header) / 32) return parsed;
                header += 32 * runs;
            }
            if (flags & 2) data = kind == 5 ? 2 * count : count;
        } else {
            if (kind == 0 || kind > 6 || (kind == 1) != (count > 0)) return parsed;
            data = count;
        }
        data = (data + 7) / 8 * 8;
        if (data > left - header) return parsed;
        for (std::size_t i = 0; i < header; i += 8) sum = step(sum, load(at + i, 8));
        for (std::size_t i = 0; i < header; ++i) parsed.covered[at + i] = true;
        at += header + data;
    }
    sum = step(0x616D723A706F6F63, sum);
    for (const std::uint64_t word : {load(4, 4) << 32, load(8, 8), load(16, 8)}) sum = step(sum, word);
    parsed.check = static_cast<std::uint32_t>(sum);
    parsed.good = true;
    return parsed;
}

}  // namespace coop::rma
