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
#include "params.h"
#include "variables.h"

namespace coop::ag {

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
