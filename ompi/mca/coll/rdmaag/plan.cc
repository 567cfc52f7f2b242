// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

#include <algorithm>
#include <limits>

#include "report.h"

namespace coop::ag {
namespace {

// Whether the lengths and displacements of gather_by_others() are int, also those that coll/tuned computes from them.
bool others_can(const coll::Blocks& blocks) noexcept {
    constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
    return blocks.bytes() <= kMost;
}

}  // namespace

coll::Plan plan_call(State& state, coll::Operation operation, const coll::Blocks& blocks) noexcept {
    const std::uint64_t block = blocks.mean_bytes();
    const bool tries = others_can(blocks), one_node = state.hierarchy && state.hierarchy->lane() == Lane::kNode;
    const coll::Situation situation{
        .processes = blocks.processes(),
        .bytes = blocks.bytes(),
        .wish = static_cast<coll::Wish>(process.config.algorithm),
        .ring_min = static_cast<std::uint64_t>(process.config.ring_min),
        // The hierarchy may be slow for long blocks. Results too long for a trial (see others_can) do not use it.
        .shared_memory = state.hierarchy && state.hierarchy->suits(block) && (one_node || tries) &&
                         process.config.algorithm != static_cast<std::int64_t>(coll::Wish::kRing),
        .one_node = one_node};
    const coll::Plan plan = tries ? state.tuner->plan(operation, block, situation)
                                  : coll::plan_without_tuner(situation);
    if (plan.way.shared_memory) process.count(state.hierarchy->lane(), plan.reason, block);
    else if (plan.way.algorithm) process.count({*plan.way.algorithm, plan.reason}, block);
    else process.count(plan.trials ? WhyNot::kTuning : WhyNot::kMeasuredSlower, block);
    return plan;
}

int end_trial(State& state, coll::Operation operation, const coll::Blocks& blocks, coll::Trials& trials,
              std::chrono::nanoseconds time) noexcept {
    trials.add(time.count());
    if (!trials.is_complete()) return OMPI_SUCCESS;
    ompi_communicator_t& comm = *state.comm;
    const auto times = trials.times();
    const int rc = comm.c_coll->coll_allreduce(MPI_IN_PLACE, times.data(), static_cast<int>(times.size()), MPI_INT64_T,
                                               MPI_MAX, &comm, comm.c_coll->coll_allreduce_module);
    // Times of this process alone must not decide.
    if (rc != OMPI_SUCCESS) std::fill(times.begin(), times.end(), 0);
    trials.decide();
    report_trials(comm, operation, blocks.mean_bytes(), trials);
    return rc;
}

int gather_by_others(State& state, coll::Operation operation, std::byte* memory, const coll::Blocks& blocks) noexcept {
    ompi_datatype_t* const byte = &ompi_mpi_byte.dt;
    if (operation == coll::Operation::kAllgather) {
        const auto length = static_cast<int>(blocks.bytes_of(0));
        return state.allgather(MPI_IN_PLACE, length, byte, memory, length, byte, state.comm, state.allgather_module);
    }
    state.lengths.resize(blocks.processes());
    state.begins.resize(blocks.processes());
    for (std::uint32_t rank = 0; rank < blocks.processes(); ++rank) {
        state.lengths[rank] = static_cast<int>(blocks.bytes_of(rank));
        state.begins[rank] = static_cast<int>(blocks.begin_of(rank));
    }
    const int own = state.lengths[static_cast<std::size_t>(ompi_comm_rank(state.comm))];
    return state.allgatherv(MPI_IN_PLACE, own, byte, memory, state.lengths.data(), state.begins.data(), byte,
                            state.comm, state.allgatherv_module);
}

}  // namespace coop::ag
