// SPDX-License-Identifier: BSD-3-Clause
//
// Which processes of the job use coll/rdmaag. A process without it, or in which another component has the higher
// priority, would not take part in the agreement of a communicator, and the others would wait for ever. So each process
// publishes its version and priority in the modex.
#pragma once

#include "compat.h"

namespace coop::ag {

// For component open, which comes before Open MPI exchanges the modex.
void publish_use(std::int64_t priority) noexcept;

// Whether every process of the communicator has published the same as this one. Asks for each process once.
bool all_use_it(ompi_communicator_t& comm, std::int64_t priority) noexcept;

}  // namespace coop::ag
