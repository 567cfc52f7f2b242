// SPDX-License-Identifier: BSD-3-Clause
//
// The value of the parameter `pairing`, which assigns the ports of a process to planes. Ports of the same plane
// are paired first (port_pairs.h).
//
//     rate                 no port has a plane: ports of the same rate are paired
//     position             HCAs at the same position on their nodes are paired, whatever their rates: each position
//                          is a plane
//     mlx5_0=1,mlx5_1:2=2  all ports of mlx5_0 are in plane 1, and port 2 of mlx5_1 in plane 2; other ports have none
//
// Nodes may use different values: only the resulting plane numbers are sent to peers.
//
// Threading: pure functions. Errors: an error message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/port.h"

namespace coop::path {

constexpr std::uint16_t kMaxPlane = 9999;  // largest number in the parameter; the smallest is 0

struct Planes {
    struct Entry {
        std::string hca;
        std::uint8_t port;  // 0: all ports of the HCA
        std::uint16_t plane;

        bool operator==(const Entry&) const = default;
    };
    bool by_position = false;
    std::vector<Entry> entries;  // empty unless the value is a list

    // Returns PortRecord::plane for a port of the HCA with this name.
    COOP_EXPORT std::uint16_t of(std::string_view hca, const PortRecord& port) const;

    bool operator==(const Planes&) const = default;
};

// Parses the parameter; returns the allowed values if it is invalid.
COOP_EXPORT std::variant<Planes, std::string> parse_planes(std::string_view text);

}  // namespace coop::path
