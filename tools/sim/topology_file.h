// SPDX-License-Identifier: BSD-3-Clause
//
// A topology as text, the part of the software subnet's files (coop-fabric(1))
// that says who is connected with whom:
//
//     # a comment
//     switch leaf0 leaf1 spine0
//     host   h0 h1
//     link   h0 leaf0 rate=1GB/s
//     link   leaf0 spine0
//
// A host's end may be written with its HCA and port (h0/coop0/1): a host has one
// port here. rate= is of both directions; without it the cable has the rate of its
// kind. Other settings and statements (hca, subnet, latency=, …) do not matter here
// and are passed over.
//
// Errors: "FILE:LINE: what is wrong".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "sim/topology.h"

namespace coop::sim {

// Text: what is wrong. The topology is checked by defect() in topology.h, not here.
std::variant<Topology, std::string> parse_topology(const std::string& name, std::string_view text, const Rates& rates);

// "1.4GB/s", "20Gbit/s": bytes per second.
std::optional<double> parse_rate(std::string_view text);

}  // namespace coop::sim
