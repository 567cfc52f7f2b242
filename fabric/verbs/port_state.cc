// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/port_state.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace coop::fabric {
namespace {

constexpr std::uint8_t kPolling = 2, kDisabled = 3, kLinkUp = 5;  // InfiniBand 14.2.5.6, PortPhysicalState

constexpr LinkSpeed kSpeeds[] = {
    {1, 1, 250, "2.5 Gb/sec (1X SDR)"},     {1, 2, 500, "5 Gb/sec (1X DDR)"},
    {2, 1, 1000, "10 Gb/sec (4X SDR)"},     {2, 2, 2000, "20 Gb/sec (4X DDR)"},
    {2, 4, 4000, "40 Gb/sec (4X QDR)"},     {2, 16, 6818, "56 Gb/sec (4X FDR)"},
    {2, 32, 12121, "100 Gb/sec (4X EDR)"},  {2, 64, 24242, "200 Gb/sec (4X HDR)"},
    {2, 128, 48484, "400 Gb/sec (4X NDR)"},
};
constexpr const LinkSpeed& kUnlimited = kSpeeds[6];

bool is_cut(const Segment& subnet, std::uint32_t link) {
    return link < subnet.links().size() && subnet.links()[link].down.load(std::memory_order_acquire) != 0;
}

std::uint32_t capabilities(const Profile& profile, const Port& port) {
    if (is_ethernet(port)) return IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
    const std::uint32_t always = IBV_PORT_TRAP_SUP | IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_CM_SUP |
                                 IBV_PORT_CLIENT_REG_SUP;
    return profile.apm != 0 ? always | IBV_PORT_AUTO_MIGR_SUP : always;
}

}  // namespace

ibv_mtu to_mtu(std::uint32_t bytes) {
    return bytes < 256 ? IBV_MTU_256 : static_cast<ibv_mtu>(std::bit_width(bytes >= 4096 ? 4096 : bytes) - 8);
}

ibv_gid_type gid_type(const Port& port, std::uint32_t index) {
    static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // ::ffff:0:0/96
    if (!is_ethernet(port)) return IBV_GID_TYPE_IB;
    return std::memcmp(port.gids[index], kMapped, sizeof kMapped) == 0 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

const LinkSpeed& link_speed(std::uint64_t rate) {
    if (rate == 0) return kUnlimited;
    const LinkSpeed* best = &kSpeeds[0];
    for (const LinkSpeed& speed : kSpeeds)
        if (std::uint64_t{speed.data_mbytes} * 1'000'000 <= rate) best = &speed;
    return *best;
}

ibv_port_attr describe_port(const Segment& subnet, const Port& port) {
    const Hca& hca = subnet.hcas()[port.hca];
    const bool disabled = port.down.load(std::memory_order_acquire) != 0 ||
                          hca.down.load(std::memory_order_acquire) != 0;
    const bool cut = is_cut(subnet, port.link_out) || is_cut(subnet, port.link_in);
    const LinkSpeed& speed = link_speed(
        port.link_out < subnet.links().size() ? subnet.links()[port.link_out].rate.load(std::memory_order_relaxed) : 0);
    ibv_port_attr attr{};
    attr.state = disabled || cut ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    attr.phys_state = disabled ? kDisabled : cut ? kPolling : kLinkUp;
    attr.max_mtu = IBV_MTU_4096;
    attr.active_mtu = to_mtu(port.mtu_bytes);
    attr.gid_tbl_len = static_cast<int>(port.gid_count);
    attr.port_cap_flags = capabilities(hca.profile, port);
    attr.max_msg_sz = hca.profile.max_message;
    attr.pkey_tbl_len = static_cast<std::uint16_t>(port.pkey_count);
    attr.bad_pkey_cntr = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(port.counters.bad_pkeys.load(std::memory_order_relaxed), UINT32_MAX));
    attr.max_vl_num = 4;  // code: VL0 to VL7
    attr.active_width = speed.width;
    attr.active_speed = speed.speed;
    attr.link_layer = static_cast<std::uint8_t>(port.link_layer);
    if (is_ethernet(port)) {
        attr.flags = IBV_QPF_GRH_REQUIRED;
        return attr;
    }
    if (port.grh_required != 0) attr.flags = IBV_QPF_GRH_REQUIRED;
    attr.lid = static_cast<std::uint16_t>(port.lid);
    attr.lmc = static_cast<std::uint8_t>(port.lmc);
    attr.sm_lid = 1;
    attr.subnet_timeout = 18;
    return attr;
}

}  // namespace coop::fabric
