// SPDX-License-Identifier: BSD-3-Clause
//
// A topology as text: the part of the software subnet's files (coop-fabric(1)) that
// describes nodes and cables:
//
//     # a comment
//     switch leaf0 leaf1 spine0
//     host   h0 h1
//     link   h0 leaf0 rate=1GB/s
//     link   leaf0 spine0
//
// A host's end may include its HCA and port (h0/coop0/1), although a host has only one
// port here. rate= is the rate in each direction; the default depends on the kind of
// cable. Other settings and statements (hca, subnet, latency=, …) are ignored.
//
// Errors: "FILE:LINE: what is wrong".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "sim/topology.h"

namespace coop::sim {

// The string is an error message. defect() in topology.h checks the topology, this function does not.
std::variant<Topology, std::string> parse_topology(const std::string& name, std::string_view text, const Rates& rates);

// "1.4GB/s", "20Gbit/s": bytes per second.
std::optional<double> parse_rate(std::string_view text);

}  // namespace coop::sim
