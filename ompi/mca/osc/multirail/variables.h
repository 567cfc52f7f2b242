// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of one-sided operations, the reasons for them, and the MPI_T performance variables, declared once: the rows
// feed the registration (component.cc), the report and the documentation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace coop::osc {

// How an operation reaches the memory of its target.
enum class Way : std::uint8_t { kMapped, kDirect, kStaged, kMessage };
inline constexpr const char* kWayTexts[] = {"shared-memory", "direct", "staged", "message"};
inline constexpr std::size_t kWays = std::size(kWayTexts);

// Why it takes this way.
enum class Reason : std::uint8_t {
    kOwnMemory,
    kSameNode,
    kLong,
    kShort,
    kSeveralBlocks,
    kNotRegistered,
    kNoRdma,
    kDynamic,
    kAtTarget,
    kAtOrigin,
    kOtherTransport,
    kRefused,
};
inline constexpr const char* kReasonTexts[] = {"own-memory",
                                               "same-node",
                                               "long",
                                               "short",
                                               "several-blocks",
                                               "not-registered",
                                               "no-rdma",
                                               "dynamic-window",
                                               "executed-by-target",
                                               "executed-by-origin",
                                               "other-transport",
                                               "refused-by-transport"};
inline constexpr std::size_t kReasons = std::size(kReasonTexts);
constexpr const char* text(Way way) noexcept { return kWayTexts[static_cast<std::size_t>(way)]; }
constexpr const char* text(Reason reason) noexcept { return kReasonTexts[static_cast<std::size_t>(reason)]; }

struct CountRow {
    const char* name;
    const char* help;
};

enum class Count : std::uint8_t {
    kFrames,
    kReplies,
    kRecords,
    kRdma,
    kRefusedRegistrations,
    kHeldFrames,
    kWaits,
    kSegments,
    kMerged,
    kAtomics,
    kRemoteControls,
    kCount
};
inline constexpr CountRow kCountRows[] = {
    {"frames", "Frames of collected operations that this process sent."},
    {"replies", "Packets of results that this process sent to the origins of operations."},
    {"records", "Operations that this process executed as their target."},
    {"rdma", "RDMA reads and writes that this process started."},
    {"refused_registrations", "Registrations of memory that a transport refused."},
    {"held_frames", "Frames that arrived before an earlier one, and waited for it."},
    {"buffer_waits", "Times that an operation waited because too many operations were under way."},
    {"segments", "Windows whose memory the processes of this node share."},
    {"merged", "Writes that became part of an earlier one to the bytes before."},
    {"atomics", "Atomic operations on the locks of other processes that an HCA executed for this process."},
    {"remote_controls", "Windows whose passive epochs need no CPU of the target, because HCAs execute everything."},
};
static_assert(std::size(kCountRows) == static_cast<std::size_t>(Count::kCount));

// A variable of a family: one for each way, or for each reason.
struct Variable {
    std::string name;  // without the prefix of the component
    std::string help;
};
inline Variable family_variable(const char* prefix, const char* word, const char* help) {
    std::string name = std::string(prefix) + word;
    std::replace(name.begin(), name.end(), '-', '_');
    return {name, std::string(help) + word + "."};
}
inline Variable operations_variable(Way way) {
    return family_variable("operations_", text(way), "Operations of this process by their way: ");
}
inline Variable reason_variable(Reason reason) {
    return family_variable("reason_", text(reason), "Operations of this process by the reason for their way: ");
}

}  // namespace coop::osc
