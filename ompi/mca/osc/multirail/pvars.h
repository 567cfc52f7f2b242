// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI_T performance variables.
#pragma once

#include "compat.h"

namespace coop::osc {

void register_variables(const mca_base_component_t& component) noexcept;

}  // namespace coop::osc
