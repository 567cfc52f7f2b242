// SPDX-License-Identifier: BSD-3-Clause
//
// The order in which the bytes of a message become visible in the responder's
// memory. An HCA whose profile is `in_order` makes the last bytes visible last.
// Others land the packets in random order, like an HCA whose packets take several
// paths. If the last packet lands early, the remaining ones follow kEarlyNs later,
// so that a receiver which polls on the last byte sees an incomplete message.
#pragma once

#include "fabric/engine/responder.h"

namespace coop::fabric {

inline constexpr std::int64_t kEarlyNs = 20'000;
inline constexpr std::size_t kMostParts = 16;  // a longer message lands several adjacent packets together

// Copies from this process to process `pid`; both lists hold the same number of bytes.
CopyResult land(Hca& hca, std::int32_t pid, std::span<const Range> from, std::span<const Range> to,
                std::uint32_t mtu_bytes) noexcept;

}  // namespace coop::fabric
