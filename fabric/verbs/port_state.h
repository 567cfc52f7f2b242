// SPDX-License-Identifier: BSD-3-Clause
//
// What a port looks like to those who ask: verbs, and the files of /sys.
#pragma once

#include "fabric/shm/segment.h"
#include "fabric/verbs/exports.h"

namespace coop::fabric {

ibv_port_attr describe_port(const Segment& subnet, const Port& port);

ibv_mtu to_mtu(std::uint32_t bytes);
inline std::uint32_t to_bytes(ibv_mtu mtu) { return 128u << mtu; }

inline bool is_ethernet(const Port& port) { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }
// On Ethernet a GID that is an IPv4 address is one of RoCE v2, and any other one of RoCE v1.
ibv_gid_type gid_type(const Port& port, std::uint32_t index);

// A width and a speed that InfiniBand has, and the data that it carries.
struct LinkSpeed {
    std::uint8_t width;  // as in ibv_port_attr: 1 is 1X, 2 is 4X
    std::uint8_t speed;  // as there: 1 SDR, 2 DDR, 4 QDR, 16 FDR, 32 EDR, 64 HDR, 128 NDR
    std::uint32_t data_mbytes;  // 10^6 bytes/s behind the line's coding
    const char* text;    // as /sys says it
};
// The fastest that carries no more than `rate` bytes/s; the slowest, if that is too much; 0 is unlimited, shown as 4X EDR.
const LinkSpeed& link_speed(std::uint64_t rate);

}  // namespace coop::fabric
