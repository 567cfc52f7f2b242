// SPDX-License-Identifier: BSD-3-Clause
//
// Builds the record of a port (path/port.h) from verbs.
//
// Threading: pure except for the verbs. Errors: the reason why a port cannot be used.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "coop/path/port.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

// Data rate of a link in MB/s (10^6), from IBTA codes; 0 for unknown codes.
std::uint32_t rate_mbytes_per_s(std::uint8_t active_width, std::uint8_t active_speed) noexcept;

// Requirements on a port.
struct PortWishes {
    std::uint16_t pkey = 0;  // partition of its key (path::choose_pkey); 0: any
    int gid_index =
        -1;  // index of its GID; -1: 0 on InfiniBand; on RoCE the best one: v2 with IPv4, then other v2, then v1
    bool crosses_subnets = false;  // copied to the record
};

// Why a port or HCA is not used.
enum class About : std::uint8_t {
    kDevice,      // the device or port itself; only informative
    kInterfaces,  // a list of HCAs names a missing device or port, or both lists are given
    kPkey,        // it does not have the requested key; the message lists those it has
    kGidIndex,    // it has no GID at the requested index; likewise
};
constexpr std::size_t kAbouts = 4;

struct PortFlaw {
    About about;
    std::string why;
};

// Returns the record of an active port, without the fields that depend on its HCA; or why the port cannot be
// used.
std::variant<path::PortRecord, PortFlaw> query_port(ibv_context* device, std::uint8_t number, const PortWishes& wishes,
                                                    std::uint32_t& max_message_bytes);

}  // namespace coop::rail
