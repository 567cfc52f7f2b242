// SPDX-License-Identifier: BSD-3-Clause
//
// The communication marker (dissertation 6.2.3): what the layer above knows of
// the call that a message belongs to. It reaches a transport with an RDMA
// operation, in RdmaOptions (coop/extension/btl_extension.h).
//
// An operation carries a marker; fragments do not: they are never cut, so there
// is nothing to decide by it. Every operation of pml/coop has one other than
// kNone; an operation without a marker is another component's.
//
// Threading: constants and pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::sched {

enum class Marker : std::uint8_t { kNone, kBlocking, kNonblocking, kCollective };
constexpr std::size_t kMarkers = 4;

// A point-to-point call that waits for this message (or whose partner does) has
// no other one under way between the two; then the message may have all rails.
constexpr Marker marker_of(bool collective, bool somebody_waits) noexcept {
    return collective ? Marker::kCollective : somebody_waits ? Marker::kBlocking : Marker::kNonblocking;
}
static_assert(marker_of(false, false) != Marker::kNone && marker_of(false, true) != Marker::kNone && marker_of(true, false) != Marker::kNone);

}  // namespace coop::sched
