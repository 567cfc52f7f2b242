// SPDX-License-Identifier: BSD-3-Clause
//
// The address vector from a port here to one of a peer: by LID in a subnet of
// InfiniBand, by GID over Ethernet. Of queue pairs and of address handles alike.
//
// Threading: pure.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

#include "coop/path/port.h"

namespace coop::rail {

inline ibv_ah_attr address_of(const path::PortRecord& local, const path::PortRecord& remote, std::uint8_t local_bits,
                              std::uint8_t remote_bits, std::uint8_t service_level) noexcept {
    ibv_ah_attr address{};
    address.port_num = local.port;
    address.sl = service_level;
    if (local.link_layer == path::LinkLayer::kInfiniband) {
        address.dlid = static_cast<std::uint16_t>(remote.lid + remote_bits);
        address.src_path_bits = local_bits;
        return address;
    }
    address.is_global = 1;
    std::copy(remote.gid.begin(), remote.gid.end(), address.grh.dgid.raw);
    address.grh.sgid_index = local.gid_index;
    address.grh.hop_limit = 64;  // RoCE v2 is routed
    return address;
}

}  // namespace coop::rail
