// SPDX-License-Identifier: BSD-3-Clause
//
// Forwarding tables of a real subnet manager, as text. 'coop-sim opensm' converts
// opensm's dump to this:
//
//     host h0 16          base LID of a host
//     leaf0 16 3          switch, LID, port number, from 1 as in opensm
//
// Port n of a switch is its n-th cable (Topology::ports); coop-sim gives the subnet
// manager the same numbers. LIDs of switches are ignored.
//
// Errors: "FILE:LINE: what is wrong".
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "sim/routes.h"

namespace coop::sim {

std::variant<Routes, std::string> parse_forwarding(const std::string& name, std::string_view text,
                                                   const Topology& topology, std::uint32_t lmc);

}  // namespace coop::sim
