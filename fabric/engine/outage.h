// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of the subnet that go down and come back, and what happens to packets that
// are under way meanwhile.
//
// A change is recorded in the trace, raises the asynchronous events that hardware
// would raise, and wakes the engines of all processes. A port is active while it
// and both directions of its cable are up. Every change to that raises PORT_ERR or
// PORT_ACTIVE (InfiniBand 11.6.3). An HCA that goes down raises only DEVICE_FATAL:
// it can no longer report on its ports.
//
// A packet is lost if a part of its route is down at the time at which the packet
// passes that part. So a request that has passed a cable before it is pulled is
// executed, and its acknowledgement, which comes later, is lost.
//
// Threading: any, without locks of queue pairs.
#pragma once

#include <cstdint>
#include <span>

#include "fabric/engine/route.h"

namespace coop::fabric {

void set_port(const Segment& subnet, std::uint32_t port, bool up);
void set_hca(const Segment& subnet, std::uint32_t hca, bool up);  // down raises DEVICE_FATAL
void set_lid(const Segment& subnet, std::uint32_t lid, bool up);  // a port's base LID raises LID_CHANGE
void set_links(const Segment& subnet, std::span<const std::uint32_t> links, bool up);

// Takes down what a rule names, for a message on this route: a port, a LID, a cable, the port of an HCA. Rules for all
// messages, or for a queue pair, take down the port where the message arrives.
void cut_off(const Segment& subnet, FaultScope scope, std::uint32_t target, const Route& route);

// True if every part of the route was up while a chunk passed it. The chunk began at `start_ns`, each point of the route
// saw it for `on_link_ns`, and its last byte arrived at `arrived_ns`. If nothing changed since `start_ns`, the present state
// decides.
bool survives_changes(const Segment& subnet, const Route& route, std::int64_t on_link_ns,
                      std::int64_t arrived_ns) noexcept;
inline bool survives(const Segment& subnet, const Route& route, std::int64_t start_ns, std::int64_t on_link_ns,
                     std::int64_t arrived_ns) noexcept {
    if (subnet.header().last_change_ns.load(std::memory_order_acquire) < start_ns) return is_passable(subnet, route);
    return survives_changes(subnet, route, on_link_ns, arrived_ns);
}

void wake_all(const Segment& subnet);
void raise_on_port(const Segment& subnet, const Port& port, ibv_event_type type);

// The other direction of the cable.
inline std::uint32_t opposite(std::uint32_t link) { return link ^ 1; }

}  // namespace coop::fabric
