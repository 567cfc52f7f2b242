// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/receive_ring.h"

#include <algorithm>
#include <bit>

namespace coop::fabric {
namespace {

int post_one(const Segment& subnet, ReceiveRing& ring, const ibv_recv_wr& request) {
    if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > ring.max_sges) return EINVAL;
    const std::uint32_t put = ring.put.load(std::memory_order_relaxed);
    if (put - ring.taken.load(std::memory_order_acquire) >= ring.depth) return ENOMEM;
    if (ring.ring == 0) return EINVAL;  // the process is about to end and has given back its objects
    ReceiveRequest& place = receive_at(subnet, ring, put);
    place.wr_id = request.wr_id;
    place.sges = static_cast<std::uint32_t>(request.num_sge);
    for (std::uint32_t i = 0; i < place.sges; ++i)
        place.sge[i] = {request.sg_list[i].addr, request.sg_list[i].length, request.sg_list[i].lkey};
    ring.put.store(put + 1, std::memory_order_release);
    return 0;
}

}  // namespace

bool make_ring(const Segment& subnet, ReceiveRing& ring, std::uint32_t depth, std::uint32_t most_sges) {
    ring.capacity = std::bit_ceil(std::max(depth, 1u));
    ring.depth = depth;
    ring.max_sges = most_sges;
    ring.put.store(0, std::memory_order_relaxed);
    ring.taken.store(0, std::memory_order_relaxed);
    ring.ring = subnet.allocate(ring_bytes(ring));
    return ring.ring != 0;
}

int post_receives(const Segment& subnet, ReceiveRing& ring, ibv_recv_wr* request, ibv_recv_wr** bad) {
    for (; request != nullptr; request = request->next) {
        const int error = post_one(subnet, ring, *request);
        if (error == 0) continue;
        *bad = request;
        return error;
    }
    return 0;
}

}  // namespace coop::fabric
