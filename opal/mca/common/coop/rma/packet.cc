// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rma/packet.h"

#include <algorithm>

namespace coop::rma {
namespace {

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ull, kSeed = 0x616D723A706F6F63ull;

// Each step is invertible in the state and in the word, so a single changed word always changes the 64-bit sum. The
// packet carries its lower half.
std::uint64_t mix(std::uint64_t sum, std::uint64_t word) noexcept {
    sum = (sum ^ word) * kFactor;
    return sum ^ sum >> 32;
}
std::uint64_t mix(std::uint64_t sum, const void* bytes, std::size_t count) noexcept {
    const auto* at = static_cast<const std::byte*>(bytes);
    for (std::size_t i = 0; i < count; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, at + i, sizeof word);
        sum = mix(sum, word);
    }
    return sum;
}

// The header enters the sum after the records, because it is written last.
std::uint32_t check_of(Packet packet, std::uint64_t sum_of_records) noexcept {
    packet.check = 0;
    return static_cast<std::uint32_t>(mix(mix(kSeed, sum_of_records), &packet, sizeof packet));
}

constexpr const char* find_damage(const Record& record) noexcept {
    if (record.kind < Kind::kPut || record.kind > Kind::kLast) return "kind of a record";
    if (record.flags & ~kAllFlags) return "flags of a record";
    if (!has_place(record.kind) && (record.flags != 0 || record.bytes != 0)) return "bytes of a record";
    if (has_place(record.kind) && record.bytes == 0) return "bytes of a record";
    if (is_message(record.kind) && record.flags != 0) return "flags of a record";
    if (is_message(record.kind) && record.bytes > kMostOfMessage) return "bytes of a record";
    const bool needs_data = record.kind == Kind::kPut || record.kind == Kind::kAccumulate || record.kind == Kind::kSwap;
    const bool may_have_data = needs_data || record.kind == Kind::kFetch;
    const bool has_data = record.flags & kHasData;
    return has_data ? (may_have_data ? nullptr : "flags of a record") : (needs_data ? "flags of a record" : nullptr);
}

// Reads the header of a record from `rest`; false: it does not fit.
bool read(std::span<const std::byte> rest, Record& record) noexcept {
    record = {};
    if (rest.size() < 24) return false;
    std::memcpy(&record, rest.data(), 24);
    if (!has_position(record.kind)) return true;
    if (rest.size() < sizeof record) return false;
    std::memcpy(&record, rest.data(), sizeof record);
    return true;
}

// Walks over the records of a frame. Returns what is wrong with their shape, and adds their headers to `sum`.
const char* walk_records(std::span<const std::byte> rest, std::uint64_t& sum) noexcept {
    while (!rest.empty()) {
        Record record;
        if (!read(rest, record)) return "length of a record";
        if (const char* why = find_damage(record)) return why;
        const std::size_t header = header_bytes(record.kind);
        const bool has_runs = record.flags & kHasRuns;
        if (has_runs && (record.at == 0 || record.at > (rest.size() - header) / sizeof(Run))) return "number of runs";
        const std::size_t fixed = header + (has_runs ? record.at * sizeof(Run) : 0);
        if (padded(data_bytes(record)) > rest.size() - fixed) return "length of a record";
        sum = mix(sum, rest.data(), fixed);
        rest = rest.subspan(fixed + padded(data_bytes(record)));
    }
    return nullptr;
}

const char* walk_replies(std::span<const std::byte> rest, std::uint64_t& sum) noexcept {
    while (!rest.empty()) {
        Reply reply;
        if (rest.size() < sizeof reply) return "length of a reply";
        std::memcpy(&reply, rest.data(), sizeof reply);
        if (reply.answer < Answer::kData || reply.answer > Answer::kLast) return "kind of a reply";
        if ((reply.answer == Answer::kData) != (reply.bytes > 0)) return "bytes of a reply";
        if (padded(reply.bytes) > rest.size() - sizeof reply) return "length of a reply";
        sum = mix(sum, &reply, sizeof reply);
        rest = rest.subspan(sizeof reply + padded(reply.bytes));
    }
    return nullptr;
}

const char* read_signal(std::span<const std::byte> rest, std::uint64_t& sum) noexcept {
    if (rest.size() != sizeof(Signal)) return "length of a signal";
    sum = mix(sum, rest.data(), rest.size());
    return nullptr;
}

const char* walk(Packets kind, std::span<const std::byte> rest, std::uint64_t& sum) noexcept {
    switch (kind) {
    case Packets::kFrame: return walk_records(rest, sum);
    case Packets::kReply: return walk_replies(rest, sum);
    case Packets::kSignal: return read_signal(rest, sum);
    }
    return "kind";
}

}  // namespace

std::byte* FrameWriter::append(const void* header, std::size_t bytes, std::uint64_t following) noexcept {
    if (bytes > room() || following > room() - bytes) return nullptr;
    std::byte* const at = memory_.data() + used_;
    std::memcpy(at, header, bytes);
    sum_ = mix(sum_, header, bytes);
    used_ += bytes;
    return at + bytes;
}

std::byte* FrameWriter::add(const Record& record, std::span<const Run> runs) noexcept {
    const std::uint64_t data = padded(data_bytes(record));
    std::byte* at = append(&record, header_bytes(record.kind), runs.size_bytes() + data);
    if (!at) return nullptr;
    if (!runs.empty()) at = append(runs.data(), runs.size_bytes(), data);
    if (data > 0) std::memset(at + data - 8, 0, 8);  // the padding is sent, too
    used_ += data;
    return at;
}

std::byte* FrameWriter::add(const Reply& reply) noexcept {
    const std::uint64_t data = padded(reply.bytes);
    std::byte* const at = append(&reply, sizeof reply, data);
    if (!at) return nullptr;
    if (data > 0) std::memset(at + data - 8, 0, 8);
    used_ += data;
    return at;
}

std::span<const std::byte> FrameWriter::seal(Packet packet) noexcept {
    packet.version = kPacketVersion;
    packet.bytes = static_cast<std::uint32_t>(used_ - sizeof packet);
    packet.check = check_of(packet, sum_);
    std::memcpy(memory_.data(), &packet, sizeof packet);
    return memory_.first(used_);
}

void seal(SignalPacket& packet) noexcept {
    packet.packet.version = kPacketVersion;
    packet.packet.kind = Packets::kSignal;
    packet.packet.bytes = sizeof packet.signal;
    packet.packet.check = check_of(packet.packet, mix(0, &packet.signal, sizeof packet.signal));
}

const char* find_damage(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < sizeof(Packet)) return "length";
    const Packet packet = read_packet(bytes);
    if (packet.version != kPacketVersion) return "version";
    if (packet.bytes != bytes.size() - sizeof packet) return "length";
    const std::span<const std::byte> rest = bytes.subspan(sizeof packet);
    std::uint64_t sum = 0;
    if (const char* const why = walk(packet.kind, rest, sum)) return why;
    return packet.check == check_of(packet, sum) ? nullptr : "check word";
}

ReadRecord FrameReader::next_record() noexcept {
    ReadRecord found;
    read(rest_, found.record);
    std::size_t used = header_bytes(found.record.kind);
    if (found.record.flags & kHasRuns) {
        found.runs = rest_.subspan(used, found.record.at * sizeof(Run));
        used += found.runs.size();
    }
    found.data = rest_.data() + used;
    rest_ = rest_.subspan(used + padded(data_bytes(found.record)));
    return found;
}

Reply FrameReader::next_reply(const std::byte** data) noexcept {
    Reply reply;
    std::memcpy(&reply, rest_.data(), sizeof reply);
    *data = rest_.data() + sizeof reply;
    rest_ = rest_.subspan(sizeof reply + padded(reply.bytes));
    return reply;
}

}  // namespace coop::rma
