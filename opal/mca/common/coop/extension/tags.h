// SPDX-License-Identifier: BSD-3-Clause
//
// BTL tags of our components, outside the range of the PML. Their callbacks expect the asynchronous handler
// (async/handler.h); a transport keeps messages with other tags for the application.
//
// Pure.
#pragma once

#include <cstdint>

namespace coop {

constexpr std::uint8_t kAllgatherTag = 0x90;  // coll/rdmaag
constexpr std::uint8_t kOneSidedTag = 0x91;   // osc/multirail

}  // namespace coop
