// SPDX-License-Identifier: BSD-3-Clause
//
// The address vector from a local port to a port of a peer, for queue pairs and address handles: by LID on
// InfiniBand, by GID over Ethernet. InfiniBand also gets a global routing header (GRH) if one of the ports
// requires it (IBV_QPF_GRH_REQUIRED) or if the path crosses subnets, because routers read it.
//
// Threading: pure.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

#include "coop/path/port.h"

namespace coop::rail {

struct AddressOptions {
    std::uint8_t service_level = 0;  // 0..15
    std::uint8_t traffic_class = 0;  // of the global routing header
};

inline bool needs_header(const path::PortRecord& local, const path::PortRecord& remote) noexcept {
    if (local.link_layer == path::LinkLayer::kEthernet || local.needs_grh != 0 || remote.needs_grh != 0) return true;
    return !std::equal(local.gid.begin(), local.gid.begin() + 8, remote.gid.begin());  // subnet prefixes
}

inline ibv_ah_attr address_of(const path::PortRecord& local, const path::PortRecord& remote, std::uint8_t local_bits,
                              std::uint8_t remote_bits, const AddressOptions& options) noexcept {
    ibv_ah_attr address{};
    address.port_num = local.port;
    address.sl = options.service_level;
    if (local.link_layer == path::LinkLayer::kInfiniband) {
        address.dlid = static_cast<std::uint16_t>(remote.lid + remote_bits);
        address.src_path_bits = local_bits;
    }
    if (!needs_header(local, remote)) return address;
    address.is_global = 1;
    std::copy(remote.gid.begin(), remote.gid.end(), address.grh.dgid.raw);
    address.grh.sgid_index = local.gid_index;
    address.grh.hop_limit = 64;  // the path may be routed
    address.grh.traffic_class = options.traffic_class;
    return address;
}

}  // namespace coop::rail
