// SPDX-License-Identifier: BSD-3-Clause
//
// Resolves names on the command line to objects of a subnet.
//
// Errors: the name that was not found, and examples of existing ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/shm/segment.h"

namespace coop::fabric {

using Indices = std::vector<std::uint32_t>;

Error find_host(const Segment& subnet, const std::string& name, std::uint32_t& host);
Error find_hca(const Segment& subnet, const std::string& name, std::uint32_t& hca);  // HOST/HCA
Error find_ports(const Segment& subnet, const std::string& name,
                 Indices& ports);  // HOST/HCA: all its ports; HOST/HCA/PORT: one
Error find_lid(const Segment& subnet, const std::string& name, std::uint32_t& lid);
// A-B: the links from A to B of all cables between the two; A-B:K: only that of the K-th. A and B may contain '-'.
Error find_links(const Segment& subnet, const std::string& name, Indices& links);

}  // namespace coop::fabric
