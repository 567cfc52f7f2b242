// SPDX-License-Identifier: BSD-3-Clause
//
// The trace: a ring in shared memory in which every process records events of the
// subnet; a new entry overwrites the oldest. Messages are recorded only if the
// header's `trace_messages` is set.
//
// Threading: any thread of any process, at any time; readers skip entries that
// are being written.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/shm/segment.h"

namespace coop::fabric {

void trace(const Segment& subnet, TraceKind kind, std::uint32_t a = 0, std::uint32_t b = 0, std::uint32_t c = 0,
           std::uint64_t value = 0) noexcept;

// Calls `each(const Trace&)` for the entries whose `sequence` is above `from`. Returns the number to continue with.
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

// A message begins when it is queued for its first link, arrives when its last byte is at its destination (for a read:
// at the requester; recorded for reliable connections only), and ends with its completion. Field `c` of all three
// entries combines ibv_wr_opcode and ibv_wc_status.
inline std::uint32_t message_word(std::uint32_t opcode, std::uint32_t status) { return opcode | status << 16; }

// Formats an entry as one line: "   12.003451 s  port down h1/coop0/1".
std::string describe(const Segment& subnet, const Trace& entry);
const char* name_of(TraceKind kind);

// Names as the trace and the tables show them. Of a fault: "drop". Of a fault's target: "all", "h0/coop1",
// "h0/coop1/1", "link h0/coop0/1 -> leaf0", "LID 0x3" or "QP 0x10011". Of HCAs, ports and links: "h0/coop1",
// "h0/coop1/1", "h0/coop0/1 -> leaf0".
const char* name_of(FaultKind kind);
std::string target_name(const Segment& subnet, FaultScope scope, std::uint32_t target);
std::string hca_name(const Segment& subnet, std::uint32_t hca);
std::string port_name(const Segment& subnet, std::uint32_t port);
std::string link_name(const Segment& subnet, std::uint32_t link);

}  // namespace coop::fabric
