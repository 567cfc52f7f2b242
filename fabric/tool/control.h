// SPDX-License-Identifier: BSD-3-Clause
//
// Changes to a running subnet. The set_…() functions record a change in the trace,
// raise the asynchronous events that hardware would raise, and wake the engines of
// all processes.
//
// A port is active while it and both directions of its cable are up. Every change
// to that raises PORT_ERR or PORT_ACTIVE (InfiniBand 11.6.3). An HCA that goes
// down raises only DEVICE_FATAL: it can no longer report on its ports.
#pragma once

#include <cstdint>
#include <span>

#include "fabric/shm/segment.h"

namespace coop::fabric {

void set_port(const Segment& subnet, std::uint32_t port, bool up);
void set_hca(const Segment& subnet, std::uint32_t hca, bool up);  // down raises DEVICE_FATAL
void set_lid(const Segment& subnet, std::uint32_t lid, bool up);  // a port's base LID raises LID_CHANGE
void set_links(const Segment& subnet, std::span<const std::uint32_t> links, bool up);
void change_manager(const Segment& subnet);  // raises SM_CHANGE on every port

// These set one direction of a cable.
void set_rate(const Segment& subnet, std::uint32_t link, std::uint64_t bytes_per_s);
void set_latency(const Segment& subnet, std::uint32_t link, std::int64_t ns);
void set_loss(const Segment& subnet, std::uint32_t link, std::uint32_t loss);
void set_background(const Segment& subnet, std::uint32_t link, std::uint64_t bytes_per_s);

struct FaultRule {
    FaultKind kind;
    FaultScope scope;
    std::uint32_t target;
    std::int64_t after, count, for_ns;  // for_ns 0: no time limit
};
// Returns false if there are too many rules already.
bool set_fault(const Segment& subnet, const FaultRule& rule);
void clear_faults(const Segment& subnet);

// Sends SIGKILL to all processes on a host, or to one process; returns the number of processes killed.
int kill_on_host(const Segment& subnet, std::uint32_t host);
int kill_process(const Segment& subnet, std::int32_t pid);

}  // namespace coop::fabric
