// SPDX-License-Identifier: BSD-3-Clause
//
// Changes to a subnet that runs. Each is recorded in the trace, raises the
// asynchronous events that hardware would, and wakes the engines of all processes
// so that what waits for a retry looks at once.
//
// A port is active while it and both directions of its cable are up: whatever
// changes that raises PORT_ERR or PORT_ACTIVE (InfiniBand 11.6.3). An HCA that
// goes down raises DEVICE_FATAL and nothing else: it cannot speak of its ports.
#pragma once

#include <cstdint>
#include <span>

#include "fabric/shm/segment.h"

namespace coop::fabric {

void set_port(const Segment& subnet, std::uint32_t port, bool up);
void set_hca(const Segment& subnet, std::uint32_t hca, bool up);  // down: DEVICE_FATAL
void set_lid(const Segment& subnet, std::uint32_t lid, bool up);  // a port's base LID: LID_CHANGE
void set_links(const Segment& subnet, std::span<const std::uint32_t> links, bool up);
void change_manager(const Segment& subnet);  // SM_CHANGE on every port

// Of one direction.
void set_rate(const Segment& subnet, std::uint32_t link, std::uint64_t bytes_per_s);
void set_latency(const Segment& subnet, std::uint32_t link, std::int64_t ns);
void set_loss(const Segment& subnet, std::uint32_t link, std::uint32_t loss);
void set_background(const Segment& subnet, std::uint32_t link, std::uint64_t bytes_per_s);

struct FaultRule {
    FaultKind kind;
    FaultScope scope;
    std::uint32_t target;
    std::int64_t after, count, for_ns;  // for_ns 0: no end in time
};
// False: there are too many rules already.
bool set_fault(const Segment& subnet, const FaultRule& rule);
void clear_faults(const Segment& subnet);

// Ends the processes on a host, or the one with that number, as SIGKILL does; returns how many there were.
int kill_on_host(const Segment& subnet, std::uint32_t host);
int kill_process(const Segment& subnet, std::int32_t pid);

}  // namespace coop::fabric
