// SPDX-License-Identifier: BSD-3-Clause
//
// What all communicators of this process share: parameters, fault injection, counters.
//
// Threading: parameters are read only; counters are atomic if `threads`.
#pragma once

#include <array>
#include <cstdint>

#include "coop/base/fault.h"
#include "coop/base/tally.h"
#include "coop/base/undestroyed.h"
#include "params.h"
#include "variables.h"

namespace coop::ag {

struct Process {
    Config given;  // where Open MPI stores the parameters
    Config config;
    Faults faults;
    bool threads = false;  // several may count at once
    std::array<Tally, static_cast<std::size_t>(Count::kCount)> counts{};
    std::array<Tally, coll::kAlgorithms> calls{};  // by algorithm
    std::array<Tally, kWhyNots> left_to_others{};  // by reason
    std::array<Tally, kLanes> lanes{};             // calls through shared memory

    void count(Count what) noexcept { counts[static_cast<std::size_t>(what)].add(1, threads); }
    void count(coll::Algorithm what) noexcept { calls[static_cast<std::size_t>(what)].add(1, threads); }
    void count(Lane what) noexcept { lanes[static_cast<std::size_t>(what)].add(1, threads); }
    void count(WhyNot what) noexcept { left_to_others[static_cast<std::size_t>(what)].add(1, threads); }
};

extern Undestroyed<Process> process_holder;
inline Process& process = process_holder.value;

}  // namespace coop::ag
