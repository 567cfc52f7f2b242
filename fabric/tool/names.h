// SPDX-License-Identifier: BSD-3-Clause
//
// What the names on a command line mean on a subnet.
//
// Errors: the name, and what there would have been.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/shm/segment.h"

namespace coop::fabric {

using Indices = std::vector<std::uint32_t>;

Error find_host(const Segment& subnet, const std::string& name, std::uint32_t& host);
Error find_hca(const Segment& subnet, const std::string& name, std::uint32_t& hca);     // HOST/HCA
Error find_ports(const Segment& subnet, const std::string& name, Indices& ports);       // HOST/HCA: all of it; HOST/HCA/PORT
Error find_lid(const Segment& subnet, const std::string& name, std::uint32_t& lid);
// A-B: the links from A to B, of all cables between the two; A-B:K: of the K-th. Names may have a '-' themselves.
Error find_links(const Segment& subnet, const std::string& name, Indices& links);

// The other direction of the cable.
inline std::uint32_t opposite(std::uint32_t link) { return link ^ 1; }

}  // namespace coop::fabric
