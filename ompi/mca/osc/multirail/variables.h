// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of one-sided operations, the reasons for them, and the MPI_T performance variables, declared once: the rows
// feed the registration (pvars.cc), the report and the documentation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace coop::osc {

// How an operation reaches the memory of its target.
enum class Way : std::uint8_t { kMapped, kDirect, kStaged, kMessage, kCma };
inline constexpr const char* kWayTexts[] = {"shared-memory", "direct", "staged", "message", "cma"};
inline constexpr std::size_t kWays = std::size(kWayTexts);

// The reason for choosing this way.
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
    kTargetHelps,
    kNotShared,
    kBothCopy,
    kCollected,
    kNotPermitted,
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
                                               "refused-by-transport",
                                               "target-helps",
                                               "not-shared",
                                               "both-copy",
                                               "collected",
                                               "cma-refused"};
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
    kRendezvous,
    kLists,
    kSignals,
    kEarlyFrames,
    kReadsBehind,
    kCount
};
inline constexpr CountRow kCountRows[] = {
    {"frames", "Packets in which this process sent operations and synchronization."},
    {"replies", "Packets in which this process sent results and answers to other processes."},
    {"records", "Records that this process executed for others: parts of operations, and synchronization."},
    {"rdma", "RDMA reads and writes that this process started."},
    {"refused_registrations", "Registrations of memory that a transport refused."},
    {"held_frames", "Arrivals after which frames were waiting for an earlier one."},
    {"buffer_waits", "Rounds of progress in which something waited because too much was under way."},
    {"segments", "Windows for which this process mapped memory shared by its node."},
    {"merged", "Writes and reads in passive epochs that joined an earlier one to a neighbouring address."},
    {"atomics", "Atomic operations on locks, by HCAs, that this process started."},
    {"remote_controls", "Windows whose passive epochs HCAs execute, without the CPU of the target."},
    {"rendezvous", "Messages of the PML that carried long puts and gets of this process."},
    {"lists", "Lists in which this process started several RDMA reads or writes at once."},
    {"signals", "Signals behind RDMA writes at the end of active epochs, one on each rail that has carried some."},
    {"early_frames", "Frames that this process sent before they were full, because too many others were open."},
    {"reads_behind", "Times that this process read behind its RDMA writes, so that all HCAs of the target see them."},
};
static_assert(std::size(kCountRows) == static_cast<std::size_t>(Count::kCount));

// The counters of operations, kept for each window and summed for the process: operations and bytes by way, operations
// by reason.
inline constexpr std::size_t kCells = 2 * kWays + kReasons;
constexpr std::size_t operations_cell(Way way) noexcept { return static_cast<std::size_t>(way); }
constexpr std::size_t bytes_cell(Way way) noexcept { return kWays + static_cast<std::size_t>(way); }
constexpr std::size_t reason_cell(Reason reason) noexcept { return 2 * kWays + static_cast<std::size_t>(reason); }

struct Variable {
    std::string name;  // without the prefix of the component
    std::string help;
};
enum class Scope : std::uint8_t { kProcess, kWindow };

// Each cell is a variable of the process, and one that is bound to a window.
inline Variable cell_variable(std::size_t cell, Scope scope) {
    const bool of_window = scope == Scope::kWindow;
    const std::string whose = of_window ? " of this process on the window that the handle is bound to, by "
                                        : " of this process, by ";
    const auto variable = [&](const char* what, const char* help, const char* criterion, const char* word) {
        std::string name = std::string(of_window ? "window_" : "") + what + word;
        std::replace(name.begin(), name.end(), '-', '_');
        return Variable{name, help + whose + criterion + word + "."};
    };
    if (cell < kWays) return variable("operations_", "Operations", "their way: ", kWayTexts[cell]);
    if (cell < 2 * kWays) return variable("bytes_", "Bytes of operations", "their way: ", kWayTexts[cell - kWays]);
    return variable("reason_", "Operations", "the reason for their way: ", kReasonTexts[cell - 2 * kWays]);
}

}  // namespace coop::osc
