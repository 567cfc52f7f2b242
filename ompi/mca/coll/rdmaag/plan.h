// SPDX-License-Identifier: BSD-3-Clause
//
// How a call of a communicator with a group is done: by one of the algorithms, through shared memory, or by the
// component of lower priority. The first calls of each class of sizes are trials (coop/coll/tuner.h); their times are
// measured here.
#pragma once

#include <chrono>

#include "module.h"

namespace coop::ag {

// The plan of a call that may be a trial. Counts it.
coll::Plan plan_call(State& state, coll::Operation operation, const coll::Blocks& blocks) noexcept;

// Adds the time of a trial; after the last one of a class, all processes agree on the fastest way, which takes an
// MPI_Allreduce. Returns an error of Open MPI.
int end_trial(State& state, coll::Operation operation, const coll::Blocks& blocks, coll::Trials& trials,
              std::chrono::nanoseconds time) noexcept;

// The component of lower priority gathers the blocks into `memory`, which has the own block already. It is given bytes,
// so that it decides the same in all processes: coll/tuned decides by the send type, which may differ between them.
int gather_by_others(State& state, coll::Operation operation, std::byte* memory, const coll::Blocks& blocks) noexcept;

// gather(way) does the call and returns an error of Open MPI.
template <class Gather>
int do_as_planned(State& state, coll::Operation operation, const coll::Blocks& blocks, Gather gather) {
    const coll::Plan plan = plan_call(state, operation, blocks);
    if (!plan.trials) [[likely]]
        return gather(plan.way);
    const auto begin = std::chrono::steady_clock::now();
    const int rc = gather(plan.way);
    std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
    const bool by_others = !plan.way.algorithm && !plan.way.shared_memory;
    if (!by_others && process.faults.hit(Fault::kSlow)) time += std::chrono::hours(1);
    const int rc_of_trial = end_trial(state, operation, blocks, *plan.trials, time);
    return rc == OMPI_SUCCESS ? rc_of_trial : rc;
}

}  // namespace coop::ag
