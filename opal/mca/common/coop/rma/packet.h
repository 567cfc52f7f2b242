// SPDX-License-Identifier: BSD-3-Clause
//
// The packets of one-sided communication. There are three kinds. A frame carries records from an origin to a target,
// which executes them in order, and the frames of an origin in the order of their numbers. A reply packet carries
// results back. A signal ends an epoch, and travels behind RDMA writes (sync_counters.h); it is not in the sequence of
// frames. All begin with the header Packet.
//
//     frame: Packet | Record [runs] [data] | Record … |
//     reply: Packet | Reply [data] | Reply … |
//     signal: Packet | Signal
//
// A record names its place in the target's memory by `at`, or by runs (runs.h) if it has several blocks; the data is
// packed, and padded to 8 bytes. One check word covers all headers and the runs, but not the data. The
// receiver checks the whole packet before it executes anything. It compares places with its window when it executes a
// record, because a frame does not know the window.
//
// Units: bytes. Processes of different architectures do not use these packets (a window compares them first).
// Threading: none. Errors: find_damage() names what is wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "coop/base/export.h"
#include "coop/rma/runs.h"

namespace coop::rma {

constexpr std::uint8_t kPacketVersion = 3;

enum class Packets : std::uint8_t { kFrame = 1, kReply, kSignal };

struct Packet {
    std::uint32_t check;
    Packets kind;
    std::uint8_t version;
    std::uint16_t unused;
    std::uint32_t window;    // context id of its communicator
    std::uint32_t source;    // rank of the sender
    std::uint32_t sequence;  // kFrame: number of the frame from this source, from 0; else 0
    std::uint32_t bytes;     // that follow
};
static_assert(sizeof(Packet) == 24);

enum class Kind : std::uint8_t {
    kPut = 1,     // data to `at`
    kGet,         // `bytes` from `at`; the reply has them
    kAccumulate,  // data onto `at`
    kFetch,       // as kAccumulate; the reply has what was there before
    kSwap,        // compare and swap: data is the comparand, then the new value
    kLock,        // `type`: LockType; `operation`: 1 if it overtakes (lock_queue.h)
    kUnlock,
    kFlush,     // the answer tells that all earlier records have been executed
    kPost,      // an exposure epoch of the sender has begun
    kComplete,  // an access epoch of the sender has ended; signal_of() tells which
    kReceive,   // a message of the PML with the tag `position` brings `bytes` to `at`; kReceived answers
    kSend,      // `bytes` from `at` are wanted as such a message
    kFence,     // as kComplete, by a fence
    kLast = kFence
};

constexpr bool is_end(Kind kind) noexcept { return kind == Kind::kComplete || kind == Kind::kFence; }

constexpr bool is_message(Kind kind) noexcept { return kind == Kind::kReceive || kind == Kind::kSend; }
constexpr std::uint32_t kMostOfMessage = std::uint32_t{1} << 30;  // bytes of one; PMLs count elements with an int
constexpr bool has_place(Kind kind) noexcept { return kind <= Kind::kSwap || is_message(kind); }
constexpr bool has_position(Kind kind) noexcept {
    return kind == Kind::kGet || kind == Kind::kFetch || kind == Kind::kSwap || is_message(kind);
}

enum Flags : std::uint8_t { kHasRuns = 1, kHasData = 2, kAllFlags = kHasRuns | kHasData };

// kComplete and kFence carry a Signal in `type` and `cookie`: record_of(), signal_of().
struct Record {
    Kind kind;
    std::uint8_t type;       // accumulates: number of the predefined datatype; kLock: LockType
    std::uint8_t operation;  // accumulates: number of the operation; kLock: whether it overtakes
    std::uint8_t flags;
    std::uint32_t bytes;   // that the record accesses; kSwap: of one value
    std::uint64_t at;      // without runs: the place; with runs: their number
    std::uint64_t cookie;  // returned by the reply
    // Only if has_position(): of these bytes in the result of the whole call; is_message(): the tag.
    std::uint64_t position;
};
static_assert(sizeof(Record) == 32);
constexpr std::size_t header_bytes(Kind kind) noexcept { return has_position(kind) ? 32 : 24; }
constexpr std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + 7) & ~std::uint64_t{7}; }
constexpr std::uint64_t data_bytes(const Record& record) noexcept {
    return (record.flags & kHasData) == 0 ? 0 : record.kind == Kind::kSwap ? 2ull * record.bytes : record.bytes;
}

enum class Answer : std::uint8_t {
    kData = 1,
    kRefused,  // no data, because the memory of a dynamic window is not attached; `position` is the number of bytes
    kFlushed,
    kGranted,
    kUnlocked,
    kReceived,  // the message of a kReceive has arrived
    kLast = kReceived
};

struct Reply {
    Answer answer;
    std::uint8_t refused;  // kFlushed, kUnlocked: some record before was refused
    std::uint8_t unused[2];
    std::uint32_t bytes;  // kData: that follow; else 0
    std::uint64_t cookie;
    std::uint64_t position;  // kData: in the result of the call; kRefused: the number of bytes
};
static_assert(sizeof(Reply) == 24);

// How an epoch ends.
enum class End : std::uint8_t { kComplete = 1, kFence, kLast = kFence };

struct Signal {
    std::uint32_t epoch;  // number of the epoch of this origin and target, from 0
    End end;
    std::uint8_t touched;  // kFence: some target may not have executed all records of the sender
    std::uint8_t place;    // of this signal among those of the epoch, from 0
    std::uint8_t signals;  // of the epoch
};
static_assert(sizeof(Signal) == 8);

// A signal as a record: the one behind the records of the epoch.
constexpr Record record_of(const Signal& signal) noexcept {
    Record record{};
    record.kind = signal.end == End::kFence ? Kind::kFence : Kind::kComplete;
    record.type = signal.touched;
    record.cookie = std::uint64_t{signal.place} << 40 | std::uint64_t{signal.signals} << 32 | signal.epoch;
    return record;
}
// Precondition: is_end(record.kind).
constexpr Signal signal_of(const Record& record) noexcept {
    return {static_cast<std::uint32_t>(record.cookie), record.kind == Kind::kFence ? End::kFence : End::kComplete,
            record.type, static_cast<std::uint8_t>(record.cookie >> 40),
            static_cast<std::uint8_t>(record.cookie >> 32)};
}

// A signal as a packet. Both are sealed.
struct SignalPacket {
    Packet packet;
    Signal signal;
};
static_assert(sizeof(SignalPacket) == 32);

COOP_EXPORT void seal(SignalPacket& packet) noexcept;
// Precondition: find_damage() has passed it, and its kind is kSignal.
inline Signal read_signal(std::span<const std::byte> packet) noexcept {
    Signal signal;
    std::memcpy(&signal, packet.data() + sizeof(Packet), sizeof signal);
    return signal;
}

// A record as the receiver reads it.
struct ReadRecord {
    Record record{};
    std::span<const std::byte> runs;  // not aligned
    const std::byte* data = nullptr;
};

// Writes records or replies into memory of the caller, after room for the header Packet.
class FrameWriter {
public:
    FrameWriter() = default;
    explicit FrameWriter(std::span<std::byte> memory) noexcept : memory_(memory) {}

    bool empty() const noexcept { return used_ == sizeof(Packet); }
    std::size_t used() const noexcept { return used_; }
    std::size_t room() const noexcept { return memory_.size() - std::min(memory_.size(), used_); }

    // Appends a record and returns where its data goes; null: no room. The caller writes the data before it appends
    // another record. record.flags and .at must agree with `runs`.
    COOP_EXPORT std::byte* add(const Record& record, std::span<const Run> runs = {}) noexcept;
    // The same for replies.
    COOP_EXPORT std::byte* add(const Reply& reply) noexcept;
    // Writes the header. Nothing may be appended after that.
    COOP_EXPORT std::span<const std::byte> seal(Packet packet) noexcept;

private:
    std::byte* append(const void* header, std::size_t bytes, std::uint64_t following) noexcept;

    std::span<std::byte> memory_;
    std::size_t used_ = sizeof(Packet);
    std::uint64_t sum_ = 0;
};

// Returns what is wrong with the packet and its records, as far as that can be seen without the window; null: nothing.
COOP_EXPORT const char* find_damage(std::span<const std::byte> packet) noexcept;

// Reads a packet in which find_damage() has found nothing. The memory must outlive the reader.
class FrameReader {
public:
    explicit FrameReader(std::span<const std::byte> packet) noexcept : rest_(packet.subspan(sizeof(Packet))) {}

    bool at_end() const noexcept { return rest_.empty(); }
    COOP_EXPORT ReadRecord next_record() noexcept;
    // The bytes of kData follow at `data`.
    COOP_EXPORT Reply next_reply(const std::byte** data) noexcept;

private:
    std::span<const std::byte> rest_;
};

inline Packet read_packet(std::span<const std::byte> bytes) noexcept {
    Packet packet{};
    if (!bytes.empty()) std::memcpy(&packet, bytes.data(), std::min(bytes.size(), sizeof packet));
    return packet;
}

}  // namespace coop::rma
