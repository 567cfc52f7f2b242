// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/port.h"

#include <algorithm>
#include <cstring>

#include "coop/path/seal.h"

namespace coop::path {
namespace {

constexpr std::uint32_t kMaxQpNumber = (1u << 24) - 1;
constexpr std::uint16_t kMaxUnicastLid = 0xBFFF;

std::uint16_t list_check(std::span<const std::byte> bytes) noexcept {
    return check_of(bytes, offsetof(ListHeader, check), kListMagic);
}

void check_header(Fields& fields, const ListHeader& h, std::span<const std::byte> bytes) {
    fields.in("magic number", h.magic, kListMagic, kListMagic)
        .in("version", h.version, kPortVersion, kPortVersion)
        .in("number of ports", h.count, 0, kMaxPorts);
    if (!fields.ok()) return;
    fields.in("length in bytes", bytes.size(), packed_bytes(h.count), packed_bytes(h.count));
    if (!fields.ok()) return;
    const std::uint16_t check = list_check(bytes);
    fields.in("check word", h.check, check, check)
        .in("queue pairs on a path", h.limits.qps_per_port, 1, UINT8_MAX)
        .in("has queue pairs for reads", h.limits.reads_apart, 0, 1);
}

constexpr std::array<std::uint8_t, 12> kMappedIpv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

enum Form : std::uint8_t { kIpv4, kLinkLocal, kGlobal };  // form of address in a RoCE GID

Form form_of(const Gid& gid) noexcept {
    if (std::equal(kMappedIpv4.begin(), kMappedIpv4.end(), gid.begin())) return kIpv4;
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? kLinkLocal : kGlobal;
}

void check_addresses(Fields& fields, const PortRecord& r) {
    const bool ib = r.link_layer == LinkLayer::kInfiniband;
    fields.in("version of RoCE", r.roce, ib ? 0 : 1, ib ? 0 : 2)
        .in("LMC", r.lmc, 0, ib ? kMaxLmc : 0)
        .in("length of the network's prefix", r.prefix_bits, 0,
            ib                        ? 0
            : form_of(r.gid) == kIpv4 ? 32
                                      : 128);
    if (!ib || !fields.ok()) return;
    const std::uint16_t lids = static_cast<std::uint16_t>(1u << r.lmc);
    fields.in("LID", r.lid, 1, kMaxUnicastLid - (lids - 1u))
        .in("the part that the LMC takes of the LID", r.lid % lids, 0, 0);
}

void check_record(Fields& fields, const PortRecord& r, std::size_t most_hcas) {
    fields.in("port number", r.port, 1, UINT8_MAX)
        .in("HCA", r.hca, 0, most_hcas - 1)
        .in("link layer", static_cast<std::uint8_t>(r.link_layer), 1, 2);
    if (!fields.ok()) return;
    check_addresses(fields, r);
    fields.in("MTU code", r.mtu, 1, 5)
        .in("has SRQ", r.has_srq, 0, 1)
        .in("number of the UD queue pair", r.ud_qpn, 0, kMaxQpNumber)
        .in("partition of the P_Key", partition_of(r.pkey), 1, kPartitionBits)
        .in("needs a global routing header", r.needs_grh, 0, 1)
        .in("crosses subnets", r.crosses_subnets, 0, 1)
        .in("alternate paths", r.apm, 0, 3)
        .in("has path migration", r.migrates, 0, 1);
}

// Prefix lengths for networks that count as similar: the networks of one site usually share this much of their
// address.
constexpr unsigned kAlikeIpv4Bits = 16, kAlikeGlobalBits = 64;

void copy_prefix(Network& network, const Gid& gid, std::size_t first, unsigned bits) noexcept {
    const std::size_t most = std::min(gid.size() - first, network.prefix.size());
    for (std::size_t i = 0; i < most && bits != 0; ++i) {
        const unsigned here = std::min(bits, 8u);
        network.prefix[i] = static_cast<std::uint8_t>(gid[first + i] & 0xff00u >> here);
        bits -= here;
    }
}

Network network_of_roce(const PortRecord& port, Reach reach) noexcept {
    const Form form = form_of(port.gid);
    Network network{LinkLayer::kEthernet, static_cast<std::uint8_t>(port.roce * 4 + form), {}, partition_of(port.pkey)};
    const bool known = port.prefix_bits != 0 && (reach == Reach::kNetwork || port.roce == 1);
    switch (form) {
    case kIpv4: copy_prefix(network, port.gid, 12, known ? port.prefix_bits : kAlikeIpv4Bits); break;
    case kLinkLocal: break;
    case kGlobal: copy_prefix(network, port.gid, 0, known ? port.prefix_bits : kAlikeGlobalBits); break;
    }
    return network;
}

std::string as_text(const Gid& gid) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < gid.size(); ++i) {
        if (i != 0 && i % 2 == 0) text += ':';
        text += {kDigits[gid[i] >> 4], kDigits[gid[i] & 15]};
    }
    return text;
}

}  // namespace

std::vector<std::byte> pack(const PortList& list) {
    const std::size_t count = std::min(list.ports.size(), kMaxPorts);
    std::vector<std::byte> bytes(packed_bytes(count));
    ListHeader header{kListMagic, kPortVersion, static_cast<std::uint16_t>(count), list.limits, 0};
    std::memcpy(bytes.data(), &header, sizeof header);
    if (count != 0) std::memcpy(bytes.data() + sizeof header, list.ports.data(), count * sizeof(PortRecord));
    header.check = list_check(bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

Unpacked unpack(std::span<const std::byte> bytes, std::size_t most_hcas) {
    Fields fields("list of ports");
    ListHeader header{};
    if (!fields.in("length in bytes", bytes.size(), sizeof header, packed_bytes(kMaxPorts)).ok()) return fields.wrong();
    std::memcpy(&header, bytes.data(), sizeof header);
    check_header(fields, header, bytes);
    if (!fields.ok()) return fields.wrong();
    PortList list{header.limits, std::vector<PortRecord>(header.count)};
    for (std::size_t i = 0; i < list.ports.size(); ++i) {
        std::memcpy(&list.ports[i], bytes.data() + packed_bytes(i), sizeof(PortRecord));
        check_record(fields, list.ports[i], most_hcas);
    }
    if (!fields.ok()) return fields.wrong();
    return list;
}

Network network_of(const PortRecord& port, Reach reach) noexcept {
    if (port.link_layer == LinkLayer::kEthernet) return network_of_roce(port, reach);
    if (reach == Reach::kRouted && port.crosses_subnets != 0)
        return {LinkLayer::kInfiniband, 1, {}, partition_of(port.pkey)};
    Network network{LinkLayer::kInfiniband, 0, {}, partition_of(port.pkey)};
    std::copy_n(port.gid.begin(), 8, network.prefix.begin());
    return network;
}

Reach reach_between(std::span<const PortRecord> a, std::span<const PortRecord> b) noexcept {
    for (const PortRecord& here : a)
        for (const PortRecord& there : b)
            if (reach_each_other(here, there)) return Reach::kNetwork;
    return Reach::kRouted;
}

std::string describe(const PortRecord& port) {
    const std::string who = "hca " + std::to_string(port.hca) + " port " + std::to_string(port.port);
    const std::string pkey = port.pkey == kDefaultPkey ? "" : ", P_Key " + pkey_text(port.pkey);
    if (port.link_layer == LinkLayer::kEthernet)
        return who + ", RoCE v" + std::to_string(port.roce) + " GID " + as_text(port.gid) + pkey;
    return who + ", LID " + std::to_string(port.lid) + ", LMC " + std::to_string(port.lmc) + pkey;
}

}  // namespace coop::path
