// SPDX-License-Identifier: BSD-3-Clause
//
// The datagrams that two processes exchange to connect (connect.h describes the protocol), and to take a rail out of
// service and connect it again (rail_life.h). All kinds have the same form: sender, receiver, the present address of a
// port of the sender, and the sender's end of each rail. Byte order: the host's. Datagrams are sealed with a check word,
// and decode() validates them before any other use. Over UD a datagram may be lost,
// duplicated, late, or meant for a process that had the queue pair before.
//
// Threading: pure functions. Errors: decode() names the first invalid field.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/pairing.h"

namespace coop::path {

constexpr std::uint8_t kDatagramVersion = 6;
constexpr std::size_t kMaxDatagramBytes = 2048;

enum class Kind : std::uint8_t {
    kRequest = 1,  // "connect: these are my queue pairs"
    kReply,        // "mine can receive from yours, and here they are"; without entries: a refusal
    kReady,        // "mine can receive from yours, too"
    kProbed,       // "my reads succeeded over these rails; tell me about yours"
    kDone,         // "my reads succeeded over these rails; I know about yours"
    kDown,         // "this rail has failed; close it". Without entries
    kClosed,       // "my end of this rail is closed, and nothing of mine is under way over it". Without entries
    kBusy,  // "I have your datagram about this rail; my application will see it when it calls MPI". Without entries
    kLeft,  // "my process ends; you have no more to do with me". Without entries
};
constexpr bool is_about_connecting(Kind kind) noexcept { return kind <= Kind::kDone; }
constexpr bool is_about_closing(Kind kind) noexcept { return kind == Kind::kDown || kind == Kind::kClosed; }

constexpr std::uint8_t kNoAddress = 0xff;
constexpr std::uint8_t kAllRails = 0xff;  // the datagram connects two processes, not one rail again
COOP_EXPORT const char* name(Kind kind) noexcept;

struct DatagramHeader {
    std::uint32_t magic;
    std::uint8_t version;
    Kind kind;
    std::uint16_t rails;   // entries that follow
    std::uint64_t sender;  // a process: job and rank
    std::uint64_t receiver;
    std::uint64_t word;  // address of the word that identifies the sender, for the receiver to read over each rail
    std::uint32_t generation;   // of the sender's connection
    std::uint32_t echo;         // generation of the receiver's connection; 0: unknown
    std::uint16_t check;        // over the whole datagram, with this field as zero
    std::uint8_t rail;          // kAllRails, or the rail that it is about
    std::uint8_t wants;         // kDown, kClosed: 1: the sender does not know that the receiver is closed; otherwise 0
    std::uint32_t life;         // generation of the rail that it is about; 0 for kAllRails
    std::uint32_t expected;     // kDown, kClosed: the first message of the sequence that the sender has not got
    std::uint32_t unordered;    // kDown, kClosed: the same, of messages without a place in the sequence
    std::uint32_t follower;     // kClosed: the last message behind stripes that the sender has got over this rail
    std::uint8_t has_follower;  // 1: there was one; otherwise 0
    std::uint8_t port;          // index in the sender's port list; kNoAddress: the datagram has no address
    std::uint16_t lid;          // of that port, now; 0 without an address, and over Ethernet
    Gid gid;                    // the same; zero without an address
};
static_assert(sizeof(DatagramHeader) == 80 && offsetof(DatagramHeader, gid) == 64 &&
              offsetof(DatagramHeader, sender) == 8 && offsetof(DatagramHeader, check) == 40 &&
              offsetof(DatagramHeader, life) == 44);

// The sender's end of a rail, and the ports and path bits by which the sender identifies it.
struct RailEntry {
    std::uint32_t qpn;   // 0: this rail did not open
    std::uint32_t psn;   // first packet sequence number the sender will send
    std::uint32_t rkey;  // for the sender's word, on the HCA of this rail
    std::uint8_t sender_port, receiver_port, sender_bits, receiver_bits;

    bool operator==(const RailEntry&) const = default;
};
static_assert(sizeof(RailEntry) == 16);
static_assert(sizeof(DatagramHeader) + kMaxConnectionRails * sizeof(RailEntry) <= kMaxDatagramBytes);

// Number of rails that fit into a datagram of this MTU (IBTA code).
constexpr std::size_t most_rails(std::uint8_t mtu) noexcept {
    return std::min(kMaxConnectionRails, (mtu_bytes(mtu) - sizeof(DatagramHeader)) / sizeof(RailEntry));
}
static_assert(most_rails(1) == 11);

// The address that a port of the sender has now. Ports may get another one when they come up again.
struct PortAddress {
    std::uint8_t port = 0;  // index in the sender's port list
    std::uint16_t lid = 0;
    Gid gid{};

    bool operator==(const PortAddress&) const = default;
};

struct Datagram {
    Kind kind = Kind::kRequest;
    std::uint64_t sender = 0, receiver = 0;
    std::uint64_t word = 0;
    std::uint32_t generation = 0, echo = 0;
    std::vector<RailEntry> rails;
    std::uint8_t rail = kAllRails;
    bool wants_answer = false;
    std::uint32_t life = 0, expected = 0, unordered = 0;
    std::optional<std::uint32_t> follower;
    std::optional<PortAddress> address = std::nullopt;

    bool operator==(const Datagram&) const = default;
};

COOP_EXPORT std::vector<std::byte> encode(const Datagram& datagram);
// The datagram, or an error message.
using Decoded = std::variant<Datagram, std::string>;
COOP_EXPORT Decoded decode(std::span<const std::byte> bytes);

}  // namespace coop::path
