// SPDX-License-Identifier: BSD-3-Clause
//
// The way of a packet through the subnet: the links from one port to another,
// as the forwarding tables of the switches give them for a destination LID, or a
// pinned route for source and destination. With Ethernet (RoCE) the destination
// is a GID; ports are found by it, and forwarded to by their number's LID, which
// they have inside the subnet but do not show.
#pragma once

#include <cstdint>

#include "fabric/shm/segment.h"

namespace coop::fabric {

struct Route {
    std::uint32_t from = kNone;  // port
    std::uint32_t to = kNone;    // port; kNone: nobody has that address
    std::uint16_t slid = 0, dlid = 0;
    std::uint32_t hops = 0;      // 0: to the same port, by loopback inside the HCA
    std::uint32_t links[kMaxHops];

    bool leads_somewhere() const { return to != kNone; }
    // The way back, as acknowledgements and read responses take it: from the destination LID to the source LID.
    Route reversed(const Segment& subnet) const;
};

// Where a message from `port` along `path` goes. A LID or GID that nobody has gives a route that leads nowhere, and so does a path
// without the global routing header that one of the ports, or a router between them, demands (InfiniBand 8.3, 9.6.1).
Route find_route(const Segment& subnet, std::uint32_t port, const Path& path);
Route find_route(const Segment& subnet, std::uint32_t from, std::uint16_t slid, std::uint16_t dlid);

// Whether a packet can pass now: all links, both ports, both HCAs and both LIDs are up.
bool is_passable(const Segment& subnet, const Route& route);

std::uint32_t find_port_by_gid(const Segment& subnet, const std::uint8_t gid[16]);

}  // namespace coop::fabric
