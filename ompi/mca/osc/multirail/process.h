// SPDX-License-Identifier: BSD-3-Clause
//
// What all windows of this process share: parameters, fault injection, counters (those of operations: counts.h),
// staging memory, and the number of RDMA operations under way.
//
// Threading: parameters are read only; counters are atomic if `threads`.
#pragma once

#include <array>
#include <atomic>

#include "coop/base/fault.h"
#include "coop/base/tally.h"
#include "coop/base/undestroyed.h"
#include "coop/node/remote_copy.h"
#include "params.h"
#include "staging.h"
#include "variables.h"

namespace coop::osc {

struct Process {
    Config given;  // where Open MPI stores the parameters
    Config config;
    Faults faults;
    bool threads = false;  // several threads may use windows at once
    std::array<Tally, static_cast<std::size_t>(Count::kCount)> counts{};
    Staging staging;
    node::CopyTrials copies;                  // which processes of the node CMA reaches
    std::atomic<std::uint32_t> transfers{0};  // RDMA reads and writes under way

    void count(Count what, std::uint64_t n = 1) noexcept { counts[static_cast<std::size_t>(what)].add(n, threads); }
};

extern Undestroyed<Process> process_holder;
inline Process& process = process_holder.value;

}  // namespace coop::osc
