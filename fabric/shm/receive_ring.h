// SPDX-License-Identifier: BSD-3-Clause
//
// Where the receive requests of a ring lie: each takes no more room than the scatter entries that the ring's requests may
// have (ReceiveRing::max_sges), and is a ReceiveRequest that ends behind those.
#pragma once

#include "fabric/shm/segment.h"

namespace coop::fabric {

inline std::uint64_t receive_stride(const ReceiveRing& ring) { return offsetof(ReceiveRequest, sge) + ring.max_sges * sizeof(Sge); }
inline std::uint64_t ring_bytes(const ReceiveRing& ring) { return ring.capacity * receive_stride(ring); }

// The request at a position, which counts on for ever. Only its first max_sges entries are there.
inline ReceiveRequest& receive_at(const Segment& subnet, const ReceiveRing& ring, std::uint32_t position) {
    return *subnet.at<ReceiveRequest>(ring.ring + (position & (ring.capacity - 1)) * receive_stride(ring));
}

inline void free_ring(const Segment& subnet, ReceiveRing& ring) {
    subnet.free(ring.ring, ring_bytes(ring));
    ring.ring = 0;
}

}  // namespace coop::fabric
