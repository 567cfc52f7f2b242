// SPDX-License-Identifier: BSD-3-Clause
//
// The route of a packet through the subnet: the links from one port to another, as
// the switches' forwarding tables give them for a destination LID, or a pinned
// route gives them for source and destination. With Ethernet (RoCE) the destination
// is a GID: it selects the port, and forwarding uses the port's hidden LID.
#pragma once

#include <cstdint>

#include "fabric/shm/segment.h"

namespace coop::fabric {

struct Route {
    std::uint32_t from = kNone;  // port
    std::uint32_t to = kNone;    // port; kNone: the route leads nowhere
    std::uint16_t slid = 0, dlid = 0;
    std::uint32_t hops = 0;  // 0: to the same port, by loopback inside the HCA
    std::uint32_t links[kMaxHops];

    bool leads_somewhere() const { return to != kNone; }
    // The route of acknowledgements and read responses: from the destination LID to the source LID.
    Route reversed(const Segment& subnet) const;
};

// The route of a message from `port` along `path`. It leads nowhere if no port has the LID or GID, if the forwarding
// tables or a pinned route do not lead there, or if the path lacks a global routing header that one of the ports, or a
// router between them, requires (InfiniBand 8.3, 9.6.1).
Route find_route(const Segment& subnet, std::uint32_t port, const Path& path);
Route find_route(const Segment& subnet, std::uint32_t from, std::uint16_t slid, std::uint16_t dlid);

// True if a packet can pass at present: all links, both ports, both HCAs and both LIDs are up.
bool is_passable(const Segment& subnet, const Route& route);

std::uint32_t find_port_by_gid(const Segment& subnet, const std::uint8_t gid[16]);

}  // namespace coop::fabric
