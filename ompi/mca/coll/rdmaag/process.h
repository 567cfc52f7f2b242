// SPDX-License-Identifier: BSD-3-Clause
//
// What all communicators of this process share: parameters, fault injection, counters.
//
// Threading: parameters are read only; counters are atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "coop/base/fault.h"
#include "coop/base/undestroyed.h"
#include "coop/coll/choice.h"
#include "params.h"
#include "why_not.h"

namespace coop::ag {

// Exported as MPI_T performance variables.
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

struct Process {
    Config given;  // where Open MPI stores the parameters
    Config config;
    Faults faults;
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Count::kCount)> counts{};
    std::array<std::atomic<std::uint64_t>, coll::kAlgorithms> calls{};  // by algorithm
    std::array<std::atomic<std::uint64_t>, kWhyNots> left_to_others{};  // by reason

    void count(Count what) noexcept { counts[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed); }
};

extern Undestroyed<Process> process_holder;
inline Process& process = process_holder.value;

}  // namespace coop::ag
