// SPDX-License-Identifier: BSD-3-Clause
//
// Changes to a running subnet, besides those of engine/outage.h. The set_…()
// functions record a change in the trace, raise the asynchronous events that
// hardware would raise, and wake the engines of all processes.
#pragma once

#include <cstdint>

#include "fabric/engine/outage.h"

namespace coop::fabric {

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
    std::int64_t delay_ns;              // of `late`
};
// Returns false if there are too many rules already.
bool set_fault(const Segment& subnet, const FaultRule& rule);
void clear_faults(const Segment& subnet);

// Sends SIGKILL to all processes on a host, or to one process; returns the number of processes killed.
int kill_on_host(const Segment& subnet, std::uint32_t host);
int kill_process(const Segment& subnet, std::int32_t pid);

}  // namespace coop::fabric
