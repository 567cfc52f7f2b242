// SPDX-License-Identifier: BSD-3-Clause
//
// The info keys of windows. MPI_Win_get_info returns those that a component subscribes to, with their defaults or what
// the program has set last; Open MPI ignores all others.
//
// Threading: by Open MPI, in the calls of MPI that take an info. Errors: one of Open MPI's codes.
#pragma once

#include "compat.h"

namespace coop::osc {

// The window is being created; w_flavor and w_flags are valid.
int subscribe_to_info(ompi_win_t& win) noexcept;

}  // namespace coop::osc
