// SPDX-License-Identifier: BSD-3-Clause
//
// The datagrams by which two processes connect (connect.h says when which one is
// sent). All kinds have one form: who, to whom, and the sender's end of
// each rail. Byte order: the host's. Sealed with a check word; what arrives is
// bounded by decode() before anything looks at it. Over UD a datagram may be
// lost, doubled, late, or meant for a process that had the queue pair before.
//
// Threading: pure functions. Errors: decode() names the first field that does
// not hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/pairing.h"

namespace coop::path {

constexpr std::uint8_t kDatagramVersion = 2;
constexpr std::size_t kMaxDatagramBytes = 2048;

enum class Kind : std::uint8_t {
    kRequest = 1,  // "connect: these are my queue pairs"
    kReply,        // "mine are ready to receive from yours; these they are"; without any open rail: "no"
    kReady,        // "and mine from yours"
    kProbed,       // "over these rails a read has come back to me; tell me yours"
    kDone,         // the same, and "I know yours"
};
COOP_EXPORT const char* name(Kind kind) noexcept;

struct DatagramHeader {
    std::uint32_t magic;
    std::uint8_t version;
    Kind kind;
    std::uint16_t rails;       // entries that follow
    std::uint64_t sender;      // process: job and rank
    std::uint64_t receiver;
    std::uint64_t word;        // address of the word that names the sender, for the receiver to read over each rail
    std::uint32_t generation;  // of the sender's connection
    std::uint32_t echo;        // the receiver's, as far as known; 0: not yet
    std::uint16_t check;       // over all of the datagram, itself taken as zero
    std::uint8_t reserved[6];  // zero
};
static_assert(sizeof(DatagramHeader) == 48 && offsetof(DatagramHeader, sender) == 8 && offsetof(DatagramHeader, check) == 40);

// The sender's end of a rail, and what it thinks the rail is.
struct RailEntry {
    std::uint32_t qpn;         // 0: this rail did not open
    std::uint32_t psn;         // first packet sequence number the sender will send
    std::uint32_t rkey;        // of its word, on the HCA of this rail
    std::uint8_t sender_port, receiver_port, sender_bits, receiver_bits;

    bool operator==(const RailEntry&) const = default;
};
static_assert(sizeof(RailEntry) == 16);
static_assert(sizeof(DatagramHeader) + kMaxRails * sizeof(RailEntry) <= kMaxDatagramBytes);

// How many rails a datagram of this MTU (code of IBTA) can tell of.
constexpr std::size_t most_rails(std::uint8_t mtu) noexcept {
    return std::min(kMaxRails, (mtu_bytes(mtu) - sizeof(DatagramHeader)) / sizeof(RailEntry));
}
static_assert(most_rails(1) == 13);

struct Datagram {
    Kind kind = Kind::kRequest;
    std::uint64_t sender = 0, receiver = 0;
    std::uint64_t word = 0;
    std::uint32_t generation = 0, echo = 0;
    std::vector<RailEntry> rails;

    bool operator==(const Datagram&) const = default;
};

COOP_EXPORT std::vector<std::byte> encode(const Datagram& datagram);
// The datagram, or what is wrong with the bytes.
using Decoded = std::variant<Datagram, std::string>;
COOP_EXPORT Decoded decode(std::span<const std::byte> bytes);

}  // namespace coop::path
