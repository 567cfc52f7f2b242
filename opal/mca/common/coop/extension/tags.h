// SPDX-License-Identifier: BSD-3-Clause
//
// BTL tags outside the range of the PML whose callbacks expect the asynchronous handler
// (async/handler.h). A transport keeps messages with other tags for the application.
//
// Pure.
#pragma once

#include <cstdint>

namespace coop {

constexpr std::uint8_t kAllgatherTag = 0x90;  // coll/rdmaag

}  // namespace coop
