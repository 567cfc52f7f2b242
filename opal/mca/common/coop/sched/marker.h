// SPDX-License-Identifier: BSD-3-Clause
//
// The communication marker (dissertation 6.2.3): the kind of MPI call that a message belongs to, passed to the
// transport with an RDMA operation in RdmaOptions (coop/extension/btl_extension.h).
//
// Operations carry a marker; fragments do not, because they are never cut. Every operation of pml/coop has a
// marker other than kNone; an operation with kNone comes from another component.
//
// Threading: constants and pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::sched {

enum class Marker : std::uint8_t { kNone, kBlocking, kNonblocking, kCollective };
constexpr std::size_t kMarkers = 4;

// A point-to-point call that waits for this message, or whose partner waits, has no other message in flight
// between the two processes; so the message may use all rails.
constexpr Marker marker_of(bool collective, bool somebody_waits) noexcept {
    return collective ? Marker::kCollective : somebody_waits ? Marker::kBlocking : Marker::kNonblocking;
}
static_assert(marker_of(false, false) != Marker::kNone && marker_of(false, true) != Marker::kNone &&
              marker_of(true, false) != Marker::kNone);

}  // namespace coop::sched
