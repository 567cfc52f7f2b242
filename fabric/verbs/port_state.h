// SPDX-License-Identifier: BSD-3-Clause
//
// The attributes of a port as verbs and the files of /sys report them.
#pragma once

#include "fabric/shm/segment.h"
#include "fabric/verbs/exports.h"

namespace coop::fabric {

ibv_port_attr describe_port(const Segment& subnet, const Port& port);

ibv_mtu to_mtu(std::uint32_t bytes);
inline std::uint32_t to_bytes(ibv_mtu mtu) { return 128u << mtu; }

inline bool is_ethernet(const Port& port) { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }
// On Ethernet a GID that holds an IPv4 address is of RoCE v2, any other of RoCE v1.
ibv_gid_type gid_type(const Port& port, std::uint32_t index);

// An InfiniBand width and speed, and their data rate.
struct LinkSpeed {
    std::uint8_t width;         // as in ibv_port_attr: 1 is 1X, 2 is 4X
    std::uint8_t speed;         // as in ibv_port_attr: 1 SDR, 2 DDR, 4 QDR, 16 FDR, 32 EDR, 64 HDR, 128 NDR
    std::uint32_t data_mbytes;  // 10^6 bytes/s after line coding
    const char* text;           // as in /sys
};
// The fastest that carries at most `rate` bytes/s, or else the slowest; 0 means unlimited and gives 4X EDR.
const LinkSpeed& link_speed(std::uint64_t rate);

}  // namespace coop::fabric
