// SPDX-License-Identifier: BSD-3-Clause
//
// Converts an address vector between the verbs form and the form of the shared tables.
#pragma once

#include <infiniband/verbs.h>

#include <cstring>

#include "fabric/shm/layout.h"

namespace coop::fabric {

inline Path path_of(const ibv_ah_attr& address, std::uint8_t timeout = 0, std::uint16_t pkey_index = 0) {
    Path path{};
    path.port = address.port_num;
    path.source_path_bits = address.src_path_bits;
    path.sl = address.sl;
    path.timeout = timeout;
    path.dlid = address.dlid;
    path.pkey_index = pkey_index;
    path.is_global = address.is_global;
    path.sgid_index = address.grh.sgid_index;
    path.flow_label = address.grh.flow_label;
    path.hop_limit = address.grh.hop_limit;
    path.traffic_class = address.grh.traffic_class;
    std::memcpy(path.dgid, address.grh.dgid.raw, sizeof path.dgid);
    return path;
}

inline ibv_ah_attr address_of(const Path& path) {
    ibv_ah_attr address{};
    address.port_num = path.port;
    address.src_path_bits = path.source_path_bits;
    address.sl = path.sl;
    address.dlid = path.dlid;
    address.is_global = path.is_global;
    address.grh.sgid_index = path.sgid_index;
    address.grh.flow_label = path.flow_label;
    address.grh.hop_limit = path.hop_limit;
    address.grh.traffic_class = path.traffic_class;
    std::memcpy(address.grh.dgid.raw, path.dgid, sizeof path.dgid);
    return address;
}

}  // namespace coop::fabric
