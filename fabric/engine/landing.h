// SPDX-License-Identifier: BSD-3-Clause
//
// The order in which the bytes of a message become visible in the responder's
// memory. An HCA whose profile is `in_order` shows the last bytes last. Any
// other one lands the packets in the order of its dice, as an HCA may whose
// packets take several ways; when the last packet is early, the others follow
// kEarlyNs later, so that whoever polls the last byte sees a damaged message.
#pragma once

#include "fabric/engine/responder.h"

namespace coop::fabric {

inline constexpr std::int64_t kEarlyNs = 20'000;
inline constexpr std::size_t kMostParts = 16;  // of a message of more packets, several neighbours land together

// Copies from this process to process `pid`; both lists hold the same number of bytes.
CopyResult land(Hca& hca, std::int32_t pid, std::span<const Range> from, std::span<const Range> to, std::uint32_t mtu_bytes) noexcept;

}  // namespace coop::fabric
