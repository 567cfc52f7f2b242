// SPDX-License-Identifier: BSD-3-Clause
//
// What happened on a subnet: a ring in its memory that every process writes.
// An entry overwrites the oldest. Messages are recorded only if the header's
// `trace_messages` is set; everything else always.
//
// Threading: any thread of any process, at any time; an entry being written is
// skipped by readers.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/shm/segment.h"

namespace coop::fabric {

void trace(const Segment& subnet, TraceKind kind, std::uint32_t a = 0, std::uint32_t b = 0, std::uint32_t c = 0,
           std::uint64_t value = 0) noexcept;

// Calls `each(const Trace&)` for what was recorded from sequence number `from` on; returns the number to go on with.
template <class Each>
std::uint64_t read_traces(const Segment& subnet, std::uint64_t from, Each&& each) {
    const auto entries = subnet.traces();
    const std::uint64_t end = subnet.header().traced.load(std::memory_order_acquire);
    if (end > entries.size() && from < end - entries.size()) from = end - entries.size();
    for (; from < end; ++from) {
        const Trace& entry = entries[from % entries.size()];
        if (entry.sequence.load(std::memory_order_acquire) == from + 1) each(entry);
    }
    return from;
}

// A message begins when it takes its first link; it arrives when the last of its bytes is where it goes to (of a read: here), and
// ends with its completion. Field `c` of all three: ibv_wr_opcode and ibv_wc_status.
inline std::uint32_t message_word(std::uint32_t opcode, std::uint32_t status) { return opcode | status << 16; }

// One line for a person: "12.003451 s  port h1/coop0/1 down".
std::string describe(const Segment& subnet, const Trace& entry);
const char* name_of(TraceKind kind);

// Names of things, as the tool takes and shows them: drop; "port h0/coop1/1" and the like; h0/coop1, h0/coop1/1,
// "h0/coop0/1 -> leaf0".
const char* name_of(FaultKind kind);
std::string target_name(const Segment& subnet, FaultScope scope, std::uint32_t target);
std::string hca_name(const Segment& subnet, std::uint32_t hca);
std::string port_name(const Segment& subnet, std::uint32_t port);
std::string link_name(const Segment& subnet, std::uint32_t link);

}  // namespace coop::fabric
