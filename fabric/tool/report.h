// SPDX-License-Identifier: BSD-3-Clause
//
// A subnet's counters, as a table or as JSON, and its trace.
#pragma once

#include <cstdio>
#include <stop_token>

#include "fabric/shm/segment.h"

namespace coop::fabric {

struct CounterChoice {
    bool ports = true, links = false, qps = false, processes = true;
};
void print_counters(const Segment& subnet, const CounterChoice& choice, bool json);

// Writes the trace from its oldest entry on, until told to stop or the subnet is removed.
void follow_trace(const Segment& subnet, FILE* to, const std::stop_token& stop);
// Writes the trace from number `from` on; returns the number to continue with.
std::uint64_t write_trace(const Segment& subnet, FILE* to, std::uint64_t from);

}  // namespace coop::fabric
