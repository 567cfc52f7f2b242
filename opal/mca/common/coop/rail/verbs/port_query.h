// SPDX-License-Identifier: BSD-3-Clause
//
// From what verbs say of a port to its record (path/port.h).
//
// Threading: pure but for the verbs. Errors: a port that cannot serve is a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "coop/path/port.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

// Data of an InfiniBand link in MB/s (10^6), of codes of IBTA; 0 for unknown codes.
std::uint32_t rate_mbytes_per_s(std::uint8_t active_width, std::uint8_t active_speed) noexcept;

// The record of an active port, without its HCA's part; or why the port cannot serve.
std::variant<path::PortRecord, std::string> query_port(ibv_context* device, std::uint8_t number, std::uint32_t& max_message_bytes);

}  // namespace coop::rail
