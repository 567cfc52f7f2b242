// SPDX-License-Identifier: BSD-3-Clause
//
// What the parameter `pairing` says of the ports of a process. Ports of one plane are paired before anything else (port_pairs.h).
//
//     rate                 no port has a plane: ports of the same rate are paired
//     position             HCAs of the same place on their nodes are paired, whatever their rates: each place is a plane
//     mlx5_0=1,mlx5_1:2=2  all ports of mlx5_0 are of plane 1, and port 2 of mlx5_1 of plane 2; the others have none
//
// Each node may say it in its own words: only the numbers travel.
//
// Threading: pure functions. Errors: a sentence.
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

constexpr std::uint16_t kMostPlane = 9999;  // as it is given, from 0 on

struct Planes {
    struct Entry {
        std::string hca;
        std::uint8_t port;  // 0: all of the HCA
        std::uint16_t plane;

        bool operator==(const Entry&) const = default;
    };
    bool by_position = false;
    std::vector<Entry> entries;  // of a list

    // As PortRecord has it, of a port of the HCA of this name.
    COOP_EXPORT std::uint16_t of(std::string_view hca, const PortRecord& port) const;

    bool operator==(const Planes&) const = default;
};

// The value of the parameter, or what would be allowed.
COOP_EXPORT std::variant<Planes, std::string> parse_planes(std::string_view text);

}  // namespace coop::path
