// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/datagram.h"

#include <cstring>

#include "coop/path/seal.h"

namespace coop::path {
namespace {

constexpr std::uint32_t kMagic = 0x636f6e6e;
constexpr std::uint32_t kMax24Bits = (1u << 24) - 1;  // queue pair and packet sequence numbers
constexpr std::uint16_t kMaxLid = 0xbfff;             // the largest unicast LID
constexpr std::uint8_t kMaxPathBits = (1u << kMaxLmc) - 1;

std::uint16_t datagram_check(std::span<const std::byte> bytes) noexcept {
    return check_of(bytes, offsetof(DatagramHeader, check), kMagic);
}

constexpr std::size_t bytes_of(std::size_t rails) noexcept {
    return sizeof(DatagramHeader) + rails * sizeof(RailEntry);
}

void check_header(Fields& fields, const DatagramHeader& h, std::span<const std::byte> bytes) {
    fields.in("magic number", h.magic, kMagic, kMagic)
        .in("version", h.version, kDatagramVersion, kDatagramVersion)
        .in("kind", static_cast<std::uint8_t>(h.kind), 1, static_cast<std::uint8_t>(Kind::kLeft))
        .in("number of rails", h.rails, 0, kMaxConnectionRails);
    if (!fields.ok()) return;
    // The length must match exactly: the check word must cover everything.
    fields.in("length in bytes", bytes.size(), bytes_of(h.rails), bytes_of(h.rails));
    if (!fields.ok()) return;
    const std::uint16_t check = datagram_check(bytes);
    fields.in("check word", h.check, check, check)
        .in("generation", h.generation, 1, UINT32_MAX)
        .in("question", h.wants, 0, 1)
        .in("mark of a follower", h.has_follower, 0, 1)
        .in("LID of a port", h.lid, 0, h.port == kNoAddress ? std::uint16_t{0} : kMaxLid);
    if (h.port != kNoAddress) fields.in("port with an address", h.port, 0, kMaxPorts - 1);
    const bool may_be_about_all = is_about_connecting(h.kind) || h.kind == Kind::kLeft;
    if (h.rail == kAllRails && may_be_about_all) fields.in("generation of the rail", h.life, 0, 0);
    else fields.in("rail", h.rail, 0, kMaxConnectionRails - 1).in("generation of the rail", h.life, 1, UINT32_MAX);
}

void check_entry(Fields& fields, const RailEntry& e) {
    fields.in("number of a queue pair", e.qpn, 0, kMax24Bits)
        .in("packet sequence number", e.psn, 0, kMax24Bits)
        .in("sender's port", e.sender_port, 0, kMaxPorts - 1)
        .in("receiver's port", e.receiver_port, 0, kMaxPorts - 1)
        .in("sender's path bits", e.sender_bits, 0, kMaxPathBits)
        .in("receiver's path bits", e.receiver_bits, 0, kMaxPathBits);
}

}  // namespace

const char* name(Kind kind) noexcept {
    switch (kind) {
    case Kind::kRequest: return "request";
    case Kind::kReply: return "reply";
    case Kind::kReady: return "ready";
    case Kind::kProbed: return "probed";
    case Kind::kDone: return "done";
    case Kind::kDown: return "down";
    case Kind::kClosed: return "closed";
    case Kind::kBusy: return "busy";
    case Kind::kLeft: return "left";
    }
    return "?";
}

std::vector<std::byte> encode(const Datagram& d) {
    const std::size_t rails = std::min(d.rails.size(), kMaxConnectionRails);
    std::vector<std::byte> bytes(bytes_of(rails));
    DatagramHeader header{kMagic,
                          kDatagramVersion,
                          d.kind,
                          static_cast<std::uint16_t>(rails),
                          d.sender,
                          d.receiver,
                          d.word,
                          d.generation,
                          d.echo,
                          0,
                          d.rail,
                          static_cast<std::uint8_t>(d.wants_answer ? 1 : 0),
                          d.life,
                          d.expected,
                          d.unordered,
                          d.follower.value_or(0),
                          static_cast<std::uint8_t>(d.follower ? 1 : 0),
                          d.address ? d.address->port : kNoAddress,
                          d.address ? d.address->lid : std::uint16_t{0},
                          d.address ? d.address->gid : Gid{}};
    std::memcpy(bytes.data(), &header, sizeof header);
    if (rails != 0) std::memcpy(bytes.data() + sizeof header, d.rails.data(), rails * sizeof(RailEntry));
    header.check = datagram_check(bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

Decoded decode(std::span<const std::byte> bytes) {
    Fields fields("connection datagram");
    if (!fields.in("length in bytes", bytes.size(), sizeof(DatagramHeader), bytes_of(kMaxConnectionRails)).ok())
        return fields.wrong();
    DatagramHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    check_header(fields, header, bytes);
    if (!fields.ok()) return fields.wrong();
    Datagram d{
        header.kind,
        header.sender,
        header.receiver,
        header.word,
        header.generation,
        header.echo,
        std::vector<RailEntry>(header.rails),
        header.rail,
        header.wants != 0,
        header.life,
        header.expected,
        header.unordered,
        header.has_follower != 0 ? std::optional(header.follower) : std::nullopt,
        header.port != kNoAddress ? std::optional(PortAddress{header.port, header.lid, header.gid}) : std::nullopt};
    for (std::size_t i = 0; i < d.rails.size(); ++i) {
        std::memcpy(&d.rails[i], bytes.data() + bytes_of(i), sizeof(RailEntry));
        check_entry(fields, d.rails[i]);
    }
    if (!fields.ok()) return fields.wrong();
    return d;
}

}  // namespace coop::path
