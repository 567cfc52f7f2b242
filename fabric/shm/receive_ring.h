// SPDX-License-Identifier: BSD-3-Clause
//
// The position of receive requests in a ring. Each takes only the room that the scatter entries of the ring's requests
// need (ReceiveRing::max_sges): a ReceiveRequest cut off after those.
#pragma once

#include "fabric/shm/segment.h"

namespace coop::fabric {

inline std::uint64_t receive_stride(const ReceiveRing& ring) {
    return offsetof(ReceiveRequest, sge) + ring.max_sges * sizeof(Sge);
}
inline std::uint64_t ring_bytes(const ReceiveRing& ring) { return ring.capacity * receive_stride(ring); }

// The request at a position; positions are never reset. Only its first max_sges entries exist.
inline ReceiveRequest& receive_at(const Segment& subnet, const ReceiveRing& ring, std::uint32_t position) {
    return *subnet.at<ReceiveRequest>(ring.ring + (position & (ring.capacity - 1)) * receive_stride(ring));
}

inline void free_ring(const Segment& subnet, ReceiveRing& ring) {
    subnet.free(ring.ring, ring_bytes(ring));
    ring.ring = 0;
}

}  // namespace coop::fabric
