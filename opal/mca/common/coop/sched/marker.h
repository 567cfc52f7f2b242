// SPDX-License-Identifier: BSD-3-Clause
//
// The communication marker (dissertation 6.2.3): what the layer above knows of
// the call behind a message, and how it reaches a transport: as two bits of the
// flags of an RDMA operation.
//
// Open MPI 4.1 uses the bits 0 to 6 of these flags (descriptor flags, and those
// of atomic operations). Its transports test single bits and hand the rest on in
// words of 32 bits (seen in the sources of 4.1.4: vader, tcp, self, openib, and
// the others), so a transport that knows nothing of the marker is not disturbed.
//
// An operation carries a marker; fragments do not: they are never cut, so there
// is nothing to decide by it. Every operation of pml/coop has one other than
// kNone; an operation without a marker is another component's.
//
// Threading: constants and pure functions. Errors: none; all four values of the
// two bits mean something.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::sched {

enum class Marker : std::uint8_t { kNone, kBlocking, kNonblocking, kCollective };
constexpr std::size_t kMarkers = 4;

constexpr unsigned kMarkerShift = 28;  // below the sign of an int
constexpr std::uint32_t kMarkerBits = 3u << kMarkerShift;

constexpr std::uint32_t flags_of(Marker marker) noexcept { return std::uint32_t{static_cast<std::uint8_t>(marker)} << kMarkerShift; }
constexpr Marker marker_in(std::uint32_t flags) noexcept { return static_cast<Marker>((flags & kMarkerBits) >> kMarkerShift); }

// A point-to-point call that waits for this message (or whose partner does) has
// no other one under way between the two; then the message may have all rails.
constexpr Marker marker_of(bool collective, bool somebody_waits) noexcept {
    return collective ? Marker::kCollective : somebody_waits ? Marker::kBlocking : Marker::kNonblocking;
}
static_assert(marker_of(false, false) != Marker::kNone && marker_of(false, true) != Marker::kNone && marker_of(true, false) != Marker::kNone);

}  // namespace coop::sched
