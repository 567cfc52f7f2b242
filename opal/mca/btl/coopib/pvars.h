// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T performance variables.
#pragma once

#include "compat.h"

namespace coop::ib {

void register_performance_variables(const mca_base_component_t& component);

}  // namespace coop::ib
