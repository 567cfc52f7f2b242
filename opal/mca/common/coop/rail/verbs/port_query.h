// SPDX-License-Identifier: BSD-3-Clause
//
// From what verbs say of a port to its record (path/port.h).
//
// Threading: pure but for the verbs. Errors: why a port cannot serve.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "coop/path/port.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

// Data of an InfiniBand link in MB/s (10^6), of codes of IBTA; 0 for unknown codes.
std::uint32_t rate_mbytes_per_s(std::uint8_t active_width, std::uint8_t active_speed) noexcept;

// What a port has to have.
struct PortWishes {
    std::uint16_t pkey = 0;  // a key of this partition (path::choose_pkey); 0: any
    int gid_index = -1;      // a GID there; -1: InfiniBand 0, of RoCE v2 with an IPv4 address before any other v2, that before v1
    bool crosses_subnets = false;  // goes into the record
};

// What it is about that a port, or an HCA, does not serve.
enum class About : std::uint8_t {
    kDevice,      // itself: a note
    kInterfaces,  // the lists of HCAs name what is not there
    kPkey,        // it has not the key that is wished for; the sentence says which ones it has
    kGidIndex,    // likewise
};
constexpr std::size_t kAbouts = 4;

struct PortFlaw {
    About about;
    std::string why;
};

// The record of an active port, without its HCA's part; or why the port cannot serve.
std::variant<path::PortRecord, PortFlaw> query_port(ibv_context* device, std::uint8_t number, const PortWishes& wishes,
                                                    std::uint32_t& max_message_bytes);

}  // namespace coop::rail
