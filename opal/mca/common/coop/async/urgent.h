// SPDX-License-Identifier: BSD-3-Clause
//
// The mark of a message that shall interrupt a receiver which has asked for that:
// one bit of a descriptor's flags (Open MPI 4.1 uses the bits 0 to 6, and its
// transports pass over the rest).
#pragma once

#include <cstdint>

namespace coop::async {

constexpr std::uint32_t kUrgentFlag = 1u << 27;

}  // namespace coop::async
