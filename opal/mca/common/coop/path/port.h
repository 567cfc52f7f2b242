// SPDX-License-Identifier: BSD-3-Clause
//
// What a process tells its peers of the ports it can use: a list of records, in
// the order in which it would like to use them (port_pairs.h says what follows
// from that). The list travels in the modex, once, and is all that a peer needs to
// find paths to this process and to send it datagrams.
//
// Words: a port belongs to an HCA. Its network is what it reaches: a partition of
// a subnet of InfiniBand (its P_Key and its prefix), or for RoCE the IP network
// of its GID, as its interface is configured. Two ports reach each other if they
// are of one network and not both limited members of its partition.
// RoCE v2 can also be routed between networks; nobody tells where. So two
// processes without a network in common try those that are alike (Reach::kRouted);
// of InfiniBand, where both allow it, any two subnets.
//
// Wire form: ListHeader, then count records, in the byte order of the host (as
// wire/headers.h). What was received is checked by unpack(), field by field, and
// only then used. Threading: pure functions. Errors: the first field that does
// not hold, as a sentence.
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

constexpr std::uint16_t kPortVersion = 3;
constexpr std::size_t kMaxPorts = 32;  // of a process
constexpr unsigned kMaxLmc = 7;        // IBTA: three bits
constexpr std::uint32_t kMostReads = 255;  // of a queue pair at once: its attributes have eight bits for them

using Gid = std::array<std::uint8_t, 16>;

enum class LinkLayer : std::uint8_t { kInfiniband = 1, kEthernet = 2 };

struct PortRecord {
    std::uint8_t hca = 0;               // counts the opened HCAs of the process
    std::uint8_t port = 1;              // its number on the HCA, from 1
    LinkLayer link_layer = LinkLayer::kInfiniband;
    std::uint8_t roce = 0;              // Ethernet: version of RoCE that the GID is for, 1 or 2; otherwise 0
    std::uint8_t lmc = 0;               // the port has 2^lmc LIDs; Ethernet: 0
    std::uint8_t mtu = 5;               // active; code of IBTA: 1 is 256 bytes, 5 is 4096
    std::uint8_t max_dest_rd_atomic = 0;  // reads and atomics that a queue pair answers at once
    std::uint8_t has_srq = 0;           // 1: the HCA has shared receive queues
    std::uint16_t lid = 0;              // the first one; InfiniBand only
    std::uint8_t gid_index = 0;         // of `gid`; means something to the port's own process only
    std::uint8_t prefix_bits = 0;       // Ethernet: how much of the IP address in `gid` names its network; 0: not known
    std::uint32_t rate_mbytes_per_s = 0;  // active width x speed, data only
    std::uint32_t ud_qpn = 0;           // takes datagrams of connect.h; 0: this port has no such queue pair
    std::uint32_t ud_qkey = 0;
    Gid gid{};                          // InfiniBand: subnet prefix and GUID
    std::uint16_t pkey = kDefaultPkey;  // of its queue pairs
    std::uint16_t pkey_index = 0;       // of `pkey`; means something to the port's own process only
    std::uint8_t needs_grh = 0;         // 1: it takes no packet without a global routing header; InfiniBand only
    std::uint8_t crosses_subnets = 0;   // 1: its process allows paths to other subnets of InfiniBand
    std::uint16_t position = 0;         // of the HCA among those of the node, by name
    std::uint16_t plane = 0;            // ports of one plane are paired first; 0: none
    std::uint16_t reserved = 0;

    bool operator==(const PortRecord&) const = default;
};
static_assert(sizeof(PortRecord) == 52 && offsetof(PortRecord, lid) == 8 && offsetof(PortRecord, ud_qpn) == 16 &&
              offsetof(PortRecord, gid) == 24 && offsetof(PortRecord, pkey) == 40 && offsetof(PortRecord, plane) == 48 &&
              std::is_trivially_copyable_v<PortRecord>);

constexpr unsigned mtu_bytes(std::uint8_t code) noexcept { return 128u << code; }

// How many paths a process wants; what two processes do is agreed() of both (pairing.h).
struct Limits {
    std::uint16_t num_rails = 0;     // at most; 0: all
    std::uint16_t qps_per_port = 1;  // queue pairs on each path
    std::uint16_t max_paths = 0;     // at most, between two ports: of those that LMC gives; 0: all

    bool operator==(const Limits&) const = default;
};

struct PortList {
    Limits limits;
    std::vector<PortRecord> ports;  // those it would rather use first

    bool operator==(const PortList&) const = default;
};

// The form in which a list travels. At most kMaxPorts ports are taken along.
struct ListHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t count;
    Limits limits;
    std::uint16_t check;  // over header and records, itself taken as zero
};
static_assert(sizeof(ListHeader) == 16 && offsetof(ListHeader, check) == 14);
constexpr std::uint32_t kListMagic = 0x636f7074;

constexpr std::size_t packed_bytes(std::size_t ports) noexcept { return sizeof(ListHeader) + ports * sizeof(PortRecord); }
COOP_EXPORT std::vector<std::byte> pack(const PortList& list);

// The list, or what is wrong with the bytes.
using Unpacked = std::variant<PortList, std::string>;
COOP_EXPORT Unpacked unpack(std::span<const std::byte> bytes);

// How two processes may reach each other: inside of a network, or, where none is in common, across routers.
enum class Reach : std::uint8_t { kNetwork, kRouted };

// What a port reaches. Equal: each reaches the other.
struct Network {
    LinkLayer link_layer;
    std::uint8_t kind;                   // of InfiniBand 0, across subnets 1; of RoCE its version x 4 + form of address
    std::array<std::uint8_t, 8> prefix;  // as much of the GID as names the network
    std::uint16_t partition;

    auto operator<=>(const Network&) const = default;
};
COOP_EXPORT Network network_of(const PortRecord& port, Reach reach = Reach::kNetwork) noexcept;
inline bool reach_each_other(const PortRecord& a, const PortRecord& b, Reach reach = Reach::kNetwork) noexcept {
    return network_of(a, reach) == network_of(b, reach) && may_talk(a.pkey, b.pkey);
}
// kNetwork if any port of one is in a network of the other; the same seen from either side.
COOP_EXPORT Reach reach_between(std::span<const PortRecord> a, std::span<const PortRecord> b) noexcept;

// "hca 0 port 1, LID 4, LMC 0"; "hca 1 port 1, GID fe80::…"; behind it the P_Key, if it is not the default one.
COOP_EXPORT std::string describe(const PortRecord& port);

}  // namespace coop::path
