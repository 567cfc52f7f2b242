// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T performance variables, declared once: the rows feed the registration (component.cc), the report and the
// documentation. All are counters of the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "coop/coll/choice.h"
#include "why_not.h"

namespace coop::ag {

enum class Count : std::uint8_t {
    kShortSteps,
    kPuts,
    kDataPackets,
    kAnnouncements,
    kRegistrations,
    kRefusedRegistrations,
    kBufferSteps,
    kNotInOrder,
    kMemoryBudget,
    kBuffersTaken,
    kBuffersReturned,
    kNodeReads,
    kNodeChunked,
    kNodeRefused,
    kCount
};
struct CountRow {
    const char* name;
    const char* help;
};
inline constexpr CountRow kCountRows[] = {
    {"short_steps", "Short steps of allgathers that this process sent, in packets or into collective buffers."},
    {"puts", "RDMA writes of long steps that this process started."},
    {"data_packets", "Packets in which this process sent long steps, by choice or because it could not write them."},
    {"announcements", "Announcements of a receive buffer that this process sent."},
    {"registrations", "Registrations of a receive buffer that this process asked a transport for."},
    {"refused_registrations", "Registrations that the transport refused."},
    {"buffer_steps", "Short steps that this process wrote into a collective buffer of the receiver."},
    {"not_in_order",
     "Partners to which this process offers no collective buffers, because their writes may land out of "
     "order."},
    {"memory_budget", "Communicators without collective buffers, because the memory is used up."},
    {"buffers_taken", "Communicators that took memory for collective buffers."},
    {"buffers_returned", "Communicators that gave this memory back."},
    {"node_reads", "Reads from the memory of other processes of the node, of at most 1 MiB each."},
    {"node_chunked", "Long blocks that this process took in chunks because it could not read them."},
    {"node_refused", "Communicators whose processes could not share memory on their nodes."},
};
static_assert(std::size(kCountRows) == static_cast<std::size_t>(Count::kCount));

// Calls through shared memory; reported like algorithms.
enum class Lane : std::uint8_t { kNode, kHierarchy };
inline constexpr const char* kLaneTexts[] = {"node", "hierarchy"};
inline constexpr std::size_t kLanes = std::size(kLaneTexts);
constexpr const char* text(Lane lane) noexcept { return kLaneTexts[static_cast<std::size_t>(lane)]; }

// A variable of a family: one for each algorithm, or for each reason.
struct Variable {
    std::string name;  // without the prefix of the component
    std::string help;
};
inline Variable calls_variable(coll::Algorithm algorithm) {
    const std::string name = coll::text(algorithm);
    return {"calls_" + name, "Allgathers of this process by the algorithm " + name + "."};
}
inline Variable calls_variable(Lane lane) {
    const std::string name = text(lane);
    return {"calls_" + name, "Allgathers of this process by the algorithm " + name + "."};
}
inline Variable reason_variable(const char* prefix, const char* reason, const char* help) {
    std::string name = std::string(prefix) + reason;
    std::replace(name.begin(), name.end(), '-', '_');
    return {name, std::string(help) + reason + "."};
}
inline Variable chosen_variable(coll::Reason reason) {
    return reason_variable("chosen_", text(reason), "Allgathers of this process by the reason for their algorithm: ");
}
inline Variable left_variable(WhyNot why) {
    return reason_variable("left_", text(why), "Allgathers left to another component: ");
}

}  // namespace coop::ag
