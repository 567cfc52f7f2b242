// SPDX-License-Identifier: BSD-3-Clause
//
// pml_coop_report: which protocol carried what, and why, printed by rank 0 of
// the job at MPI_Finalize.
#pragma once

#include "module.h"

#include "coop/base/sparse_usage.h"

namespace coop::pml {

// Arranges for the report. Called when MPI_COMM_SELF comes into being: its
// attributes are deleted first thing in MPI_Finalize, while messages still flow.
void report_at_finalize() noexcept;

// Where messages to this process are counted on their own; null: nowhere.
// Under Module::lock.
SparseUsage* usage_of_peer(ompi_proc_t* proc) noexcept;

void register_performance_variables(const mca_base_component_t& component) noexcept;  // pvars.cc

}  // namespace coop::pml
