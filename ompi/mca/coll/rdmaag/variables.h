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
    kCount
};
struct CountRow {
    const char* name;
    const char* help;
};
inline constexpr CountRow kCountRows[] = {
    {"short_steps", "Steps of allgathers that this process copied through a buffer of the receiver."},
    {"puts", "RDMA writes of long steps that this process started."},
    {"data_packets", "Packets in which this process sent long steps because it could not write them."},
    {"announcements", "Announcements of a receive buffer that this process sent."},
    {"registrations", "Registrations of a receive buffer that this process asked a transport for."},
    {"refused_registrations", "Registrations that the transport refused."},
};
static_assert(std::size(kCountRows) == static_cast<std::size_t>(Count::kCount));

// A variable of a family: one for each algorithm, or for each reason.
struct Variable {
    std::string name;  // without the prefix of the component
    std::string help;
};
inline Variable calls_variable(coll::Algorithm algorithm) {
    const std::string name = coll::text(algorithm);
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
