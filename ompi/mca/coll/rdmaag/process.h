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
#include "coop/base/usage.h"
#include "coop/coll/choice.h"
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
    std::array<Tally, coll::kReasons> reasons{};   // calls done here, by the reason for the algorithm
    std::array<Tally, kWhyNots> left_to_others{};  // by reason
    std::array<Tally, kLanes> lanes{};             // calls through shared memory

    // For coll_rdmaag_report 2, else it counts nothing. A row for each algorithm, for each lane of shared memory,
    // and one for other components; the reasons of coll::Reason, then of WhyNot.
    static constexpr std::uint32_t kLanesRow = coll::kAlgorithms, kOthersRow = kLanesRow + kLanes,
                                   kUsageRows = kOthersRow + 1, kUsageReasons = coll::kReasons + kWhyNots;
    static_assert(kUsageRows <= Usage::kMaxRows && kUsageReasons <= Usage::kMaxReasons);
    Usage usage;

    void count(Count what) noexcept { counts[static_cast<std::size_t>(what)].add(1, threads); }
    // `block`: mean length of a block.
    void count(const coll::Choice& what, std::uint64_t block) noexcept {
        const auto algorithm = static_cast<std::uint32_t>(what.algorithm),
                   reason = static_cast<std::uint32_t>(what.reason);
        calls[algorithm].add(1, threads);
        reasons[reason].add(1, threads);
        usage.add(algorithm, reason, block);
    }
    void count(WhyNot what, std::uint64_t block) noexcept {
        const auto reason = static_cast<std::uint32_t>(what);
        left_to_others[reason].add(1, threads);
        usage.add(kOthersRow, coll::kReasons + reason, block);
    }
    void count(Lane what, coll::Reason why, std::uint64_t block) noexcept {
        const auto lane = static_cast<std::uint32_t>(what), reason = static_cast<std::uint32_t>(why);
        lanes[lane].add(1, threads);
        reasons[reason].add(1, threads);
        usage.add(kLanesRow + lane, reason, block);
    }
};

extern Undestroyed<Process> process_holder;
inline Process& process = process_holder.value;

}  // namespace coop::ag
