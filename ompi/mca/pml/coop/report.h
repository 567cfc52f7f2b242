// SPDX-License-Identifier: BSD-3-Clause
//
// pml_coop_report: at MPI_Finalize rank 0 of the job prints how much each protocol has carried, and why.
#pragma once

#include "module.h"

#include "coop/base/sparse_usage.h"

namespace coop::pml {

// Schedules the report. Called when MPI_COMM_SELF is created: MPI_Finalize deletes its attributes first, while messages
// can still be sent.
void report_at_finalize() noexcept;

// Returns the table of the messages to `proc`; null if pml_coop_report is below 2 or `proc` is of another job. Under
// Module::lock.
SparseUsage* usage_of_peer(ompi_proc_t* proc) noexcept;

void register_performance_variables(const mca_base_component_t& component) noexcept;  // pvars.cc

}  // namespace coop::pml
