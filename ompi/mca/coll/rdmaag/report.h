// SPDX-License-Identifier: BSD-3-Clause
//
// What coll_rdmaag_report prints in MPI_Finalize: a line of counts, a table of the calls, the times of trials.
#pragma once

#include "compat.h"
#include "coop/coll/tuner.h"

namespace coop::ag {

// For the query of MPI_COMM_WORLD, which comes before all calls, and when attributes of MPI_COMM_SELF can be set.
void report_at_finalize() noexcept;

// Keeps the result of trials for the report of rank 0 of the communicator. `block`: mean length of a block.
void report_trials(ompi_communicator_t& comm, coll::Operation operation, std::uint64_t block,
                   const coll::Trials& trials) noexcept;

}  // namespace coop::ag
