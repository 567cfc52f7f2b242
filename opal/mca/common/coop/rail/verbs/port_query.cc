// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/port_query.h"

#include <endian.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

namespace coop::rail {
namespace {

// Data rate of one lane in MB/s, after encoding (8b/10b up to QDR, 64b/66b above).
std::uint32_t lane_mbytes_per_s(std::uint8_t speed) noexcept {
    switch (speed) {
    case 1: return 250;      // SDR
    case 2: return 500;      // DDR
    case 4: return 1000;     // QDR
    case 8: return 1250;     // FDR10
    case 16: return 1704;    // FDR
    case 32: return 3125;    // EDR
    case 64: return 6250;    // HDR
    case 128: return 12500;  // NDR
    default: return 0;
    }
}

std::uint32_t lanes(std::uint8_t width) noexcept {
    switch (width) {
    case 1: return 1;
    case 2: return 4;
    case 4: return 8;
    case 8: return 12;
    case 16: return 2;
    default: return 0;
    }
}

bool is_ipv4(const ibv_gid& gid) noexcept {
    static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

bool is_zero(const ibv_gid& gid) noexcept {
    return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](std::uint8_t b) { return b == 0; });
}

// Smaller is better: v2 before v1, then IPv4, then a global address, then link-local.
int rank_of(const ibv_gid_entry& entry) noexcept {
    const int form = is_ipv4(entry.gid) ? 0 : path::is_link_local(entry.gid.raw) ? 2 : 1;
    return (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 0 : 10) + form;
}

std::optional<ibv_gid_entry> gid_of_roce(ibv_context* device, std::uint8_t number, int index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(device, number, static_cast<std::uint32_t>(index), &entry, 0) != 0 || is_zero(entry.gid))
        return std::nullopt;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 && entry.gid_type != IBV_GID_TYPE_ROCE_V1) return std::nullopt;
    return entry;
}

std::optional<ibv_gid_entry> best_gid_of_roce(ibv_context* device, std::uint8_t number, int entries) {
    std::optional<ibv_gid_entry> best;
    for (int i = 0; i < std::min(entries, UINT8_MAX + 1); ++i)
        if (const auto entry = gid_of_roce(device, number, i); entry && (!best || rank_of(*entry) < rank_of(*best)))
            best = entry;
    return best;
}

// The bytes of an IPv4 or IPv6 address; empty for other address families.
std::span<const std::uint8_t> bytes_of(const sockaddr* address) noexcept {
    if (address == nullptr) return {};
    if (address->sa_family == AF_INET)
        return {reinterpret_cast<const std::uint8_t*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr), 4};
    if (address->sa_family == AF_INET6) return {reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr.s6_addr, 16};
    return {};
}

// Prefix length of the IP address in the GID, from the interface with this address; 0 if this process sees no
// such interface.
std::uint8_t prefix_bits_of(const ibv_gid& gid) {
    const std::span<const std::uint8_t> wanted(gid.raw + (is_ipv4(gid) ? 12 : 0), gid.raw + sizeof gid.raw);
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return 0;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
        const auto address = bytes_of(each->ifa_addr), mask = bytes_of(each->ifa_netmask);
        if (!std::ranges::equal(address, wanted) || mask.size() != address.size()) continue;
        int bits = 0;
        for (const std::uint8_t byte : mask) bits += std::popcount(byte);
        return static_cast<std::uint8_t>(bits);
    }
    return 0;
}

void take_gid(path::PortRecord& record, const ibv_gid& gid) noexcept {
    std::copy(std::begin(gid.raw), std::end(gid.raw), record.gid.begin());
}

// Returns the indices of the port's GIDs, such as "0, 1, 4".
std::string indices_of_gids(ibv_context* device, std::uint8_t number, int entries) {
    std::string text;
    for (int i = 0; i < std::min(entries, UINT8_MAX + 1); ++i) {
        ibv_gid gid{};
        if (ibv_query_gid(device, number, i, &gid) == 0 && !is_zero(gid))
            text += (text.empty() ? "" : ", ") + std::to_string(i);
    }
    return text.empty() ? "none" : text;
}

using Wrong = std::optional<PortFlaw>;

Wrong add_address_of_infiniband(path::PortRecord& record, ibv_context* device, const ibv_port_attr& attr,
                                int gid_index) {
    ibv_gid gid{};
    const int index = std::max(gid_index, 0);
    if (ibv_query_gid(device, record.port, index, &gid) != 0 || is_zero(gid)) {
        if (gid_index >= 0) return PortFlaw{About::kGidIndex, indices_of_gids(device, record.port, attr.gid_tbl_len)};
        return PortFlaw{About::kDevice, "it has no GID"};
    }
    if (attr.lid == 0) return PortFlaw{About::kDevice, "it has no LID (is a subnet manager running?)"};
    record.link_layer = path::LinkLayer::kInfiniband;
    record.lid = attr.lid;
    record.lmc = attr.lmc;
    record.gid_index = static_cast<std::uint8_t>(index);
    record.needs_grh = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0 ? 1 : 0;
    take_gid(record, gid);
    return std::nullopt;
}

Wrong add_address_of_roce(path::PortRecord& record, ibv_context* device, const ibv_port_attr& attr, int gid_index) {
    const auto entry = gid_index >= 0 ? gid_of_roce(device, record.port, gid_index)
                                      : best_gid_of_roce(device, record.port, attr.gid_tbl_len);
    if (!entry && gid_index >= 0)
        return PortFlaw{About::kGidIndex, indices_of_gids(device, record.port, attr.gid_tbl_len)};
    if (!entry) return PortFlaw{About::kDevice, "it has no GID (has its network interface an address?)"};
    record.link_layer = path::LinkLayer::kEthernet;
    record.roce = entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 1;
    record.gid_index = static_cast<std::uint8_t>(entry->gid_index);
    take_gid(record, entry->gid);
    record.prefix_bits = prefix_bits_of(entry->gid);
    return std::nullopt;
}

// Reading an entry means reading a file, and a table may have 128 entries; so this stops at a key that no later
// one can beat.
std::vector<std::uint16_t> read_pkeys(ibv_context* device, std::uint8_t number, int entries, std::uint16_t wanted) {
    const auto is_best = [=](std::uint16_t key) {
        return path::is_full_member(key) && path::partition_of(key) != 0 &&
               (wanted == 0 || path::partition_of(key) == path::partition_of(wanted));
    };
    std::vector<std::uint16_t> table;
    for (int i = 0; i < entries; ++i) {
        __be16 key = 0;
        table.push_back(ibv_query_pkey(device, number, i, &key) == 0 ? be16toh(key) : std::uint16_t{0});
        if (is_best(table.back())) break;
    }
    return table;
}

Wrong add_pkey(path::PortRecord& record, ibv_context* device, const ibv_port_attr& attr, std::uint16_t wanted) {
    const std::vector<std::uint16_t> table = read_pkeys(device, record.port, attr.pkey_tbl_len, wanted);
    const auto choice = path::choose_pkey(table, wanted);
    if (!choice && wanted != 0) return PortFlaw{About::kPkey, path::pkeys_text(table)};
    if (!choice) return PortFlaw{About::kDevice, "it has no P_Key"};
    record.pkey = choice->pkey;
    record.pkey_index = choice->index;
    return std::nullopt;
}

}  // namespace

std::uint32_t rate_mbytes_per_s(std::uint8_t active_width, std::uint8_t active_speed) noexcept {
    return lanes(active_width) * lane_mbytes_per_s(active_speed);
}

std::variant<path::PortRecord, PortFlaw> query_port(ibv_context* device, std::uint8_t number, const PortWishes& wishes,
                                                    std::uint32_t& max_message_bytes) {
    ibv_port_attr attr{};
    if (const int error = ibv_query_port(device, number, &attr); error != 0)
        return PortFlaw{About::kDevice, "it cannot be queried: " + std::generic_category().message(error)};
    if (attr.state != IBV_PORT_ACTIVE)
        return PortFlaw{About::kDevice, std::string("its state is ") + ibv_port_state_str(attr.state) + ", not active"};
    path::PortRecord record;
    record.port = number;
    record.mtu = static_cast<std::uint8_t>(attr.active_mtu);
    record.rate_mbytes_per_s = rate_mbytes_per_s(attr.active_width, attr.active_speed);
    record.crosses_subnets = wishes.crosses_subnets ? 1 : 0;
    const bool ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    if (auto wrong = ethernet ? add_address_of_roce(record, device, attr, wishes.gid_index)
                              : add_address_of_infiniband(record, device, attr, wishes.gid_index))
        return std::move(*wrong);
    if (auto wrong = add_pkey(record, device, attr, wishes.pkey)) return std::move(*wrong);
    max_message_bytes = attr.max_msg_sz;
    return record;
}

}  // namespace coop::rail
