// SPDX-License-Identifier: BSD-3-Clause
//
// A process's usable ports, as a list of records in order of preference (by_preference() in pairing.h). The
// list is published once, in the modex, and is all that a peer needs to compute paths to this process and to
// send it datagrams.
//
// The network of a port is what it can reach: a partition of an InfiniBand subnet (P_Key and subnet prefix), or
// for RoCE the IP network of its GID, as configured on its interface. Two ports reach each other if they are in
// the same network and not both limited members of its partition. RoCE v2 can also be routed between networks,
// but nothing tells which ones. So two processes without a common network try networks with similar addresses
// (Reach::kRouted), and on InfiniBand, if both sides permit it, any two subnets.
//
// Wire form: ListHeader, then count records, in the byte order of the host (as in wire/headers.h). unpack()
// validates received lists field by field. Threading: pure functions. Errors: a message that names the first
// invalid field.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/partition.h"

namespace coop::path {

constexpr std::uint16_t kPortVersion = 5;
constexpr std::size_t kMaxPorts = 32;     // of a process
constexpr unsigned kMaxLmc = 7;           // IBTA: three bits
constexpr std::uint32_t kMaxReads = 255;  // outstanding reads of a queue pair: its attributes have eight bits for them

using Gid = std::array<std::uint8_t, 16>;
constexpr bool is_link_local(std::span<const std::uint8_t, 16> gid) noexcept {
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

enum class LinkLayer : std::uint8_t { kInfiniband = 1, kEthernet = 2 };

struct PortRecord {
    std::uint8_t hca = 0;   // index among the opened HCAs of the process
    std::uint8_t port = 1;  // port number on the HCA, from 1
    LinkLayer link_layer = LinkLayer::kInfiniband;
    std::uint8_t roce = 0;                // Ethernet: RoCE version of the GID, 1 or 2; otherwise 0
    std::uint8_t lmc = 0;                 // the port has 2^lmc LIDs; Ethernet: 0
    std::uint8_t mtu = 5;                 // active MTU as IBTA code: 1 is 256 bytes, 5 is 4096
    std::uint8_t max_dest_rd_atomic = 0;  // reads and atomics that a queue pair serves at the same time
    std::uint8_t has_srq = 0;             // 1: the HCA has shared receive queues
    std::uint16_t lid = 0;                // the first one; InfiniBand only
    std::uint8_t gid_index = 0;           // of `gid`; meaningful only to the port's own process
    std::uint8_t prefix_bits = 0;  // Ethernet: prefix length of the network of the IP address in `gid`; 0: unknown
    std::uint32_t rate_mbytes_per_s = 0;  // active width x speed, data only
    std::uint32_t ud_qpn = 0;             // queue pair for the datagrams of connect.h; 0: this port has none
    std::uint32_t ud_qkey = 0;
    Gid gid{};                          // InfiniBand: subnet prefix and GUID
    std::uint16_t pkey = kDefaultPkey;  // of its queue pairs
    std::uint16_t pkey_index = 0;       // of `pkey`; meaningful only to the port's own process
    std::uint8_t needs_grh = 0;         // 1: the port requires a global routing header; InfiniBand only
    std::uint8_t crosses_subnets = 0;   // 1: the process permits paths to other InfiniBand subnets
    std::uint16_t position = 0;         // index of the HCA among those of the node, ordered by name
    std::uint16_t plane = 0;            // ports of the same plane are paired first; 0: no plane
    std::uint8_t apm = 0;               // Apm (alternates.h): which alternate paths the process wants
    std::uint8_t migrates = 0;          // 1: the HCA has automatic path migration

    bool operator==(const PortRecord&) const = default;
};
static_assert(sizeof(PortRecord) == 52 && offsetof(PortRecord, lid) == 8 && offsetof(PortRecord, ud_qpn) == 16 &&
              offsetof(PortRecord, gid) == 24 && offsetof(PortRecord, pkey) == 40 &&
              offsetof(PortRecord, plane) == 48 && std::is_trivially_copyable_v<PortRecord>);

// Ports of a process, with a bit for each of the first two ports of an HCA. Ports that share a bit are in the set together.
using PortSet = std::uint64_t;
constexpr PortSet set_of(const PortRecord& port) noexcept {
    return PortSet{1} << (port.hca % 32 * 2 + (port.port + 1) % 2);
}

constexpr unsigned mtu_bytes(std::uint8_t code) noexcept { return 128u << code; }

// Limits on the paths of a process. agreed() (pairing.h) gives those between two processes.
struct Limits {
    std::uint16_t num_rails = 0;    // at most this many; 0: no limit
    std::uint8_t qps_per_port = 1;  // rails on each path
    std::uint8_t reads_apart = 0;   // 1: each rail has a second queue pair, for reads
    std::uint16_t max_paths = 0;    // at most this many LMC paths between two ports; 0: all

    bool operator==(const Limits&) const = default;
};

struct PortList {
    Limits limits;
    std::vector<PortRecord> ports;  // in order of preference
    bool survives = false;          // the process continues without rails that fail; not in the wire form

    bool operator==(const PortList&) const = default;
};

// The wire form of a list, which has at most kMaxPorts ports.
struct ListHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t count;
    Limits limits;
    std::uint16_t check;  // over header and records, with this field as zero
};
static_assert(sizeof(ListHeader) == 16 && offsetof(ListHeader, check) == 14);
constexpr std::uint32_t kListMagic = 0x636f7074;

constexpr std::size_t packed_bytes(std::size_t ports) noexcept {
    return sizeof(ListHeader) + ports * sizeof(PortRecord);
}
COOP_EXPORT std::vector<std::byte> pack(const PortList& list);

// The list, or an error message. `most_hcas`: the HCAs that the caller can handle; numbers of HCAs are smaller.
using Unpacked = std::variant<PortList, std::string>;
COOP_EXPORT Unpacked unpack(std::span<const std::byte> bytes, std::size_t most_hcas = kMaxPorts);

// How two processes reach each other: within a common network or, if they have none, across routers.
enum class Reach : std::uint8_t { kNetwork, kRouted };

// The network of a port. Ports with equal networks reach each other.
struct Network {
    LinkLayer link_layer;
    std::uint8_t kind;  // 0: InfiniBand; 1: InfiniBand across subnets; RoCE: version x 4 + form of address
    std::array<std::uint8_t, 8> prefix;  // the part of the GID that identifies the network
    std::uint16_t partition;

    auto operator<=>(const Network&) const = default;
};
COOP_EXPORT Network network_of(const PortRecord& port, Reach reach = Reach::kNetwork) noexcept;
inline bool reach_each_other(const PortRecord& a, const PortRecord& b, Reach reach = Reach::kNetwork) noexcept {
    return network_of(a, reach) == network_of(b, reach) && may_talk(a.pkey, b.pkey);
}
// kNetwork if any port of `a` has a network in common with a port of `b`. Both sides compute the same value.
COOP_EXPORT Reach reach_between(std::span<const PortRecord> a, std::span<const PortRecord> b) noexcept;

// Returns "hca 0 port 1, LID 4, LMC 0" or "hca 1 port 1, RoCE v2 GID fe80:…", followed by the P_Key unless it
// is the default.
COOP_EXPORT std::string describe(const PortRecord& port);

}  // namespace coop::path
