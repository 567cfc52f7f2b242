// SPDX-License-Identifier: BSD-3-Clause
//
// Which processes of the job use coll/rdmaag. A process without it would not take part in the agreement of a
// communicator, and the others would wait for ever; so each process that uses it says so in the modex.
#pragma once

#include "compat.h"

namespace coop::ag {

// For component open, which comes before Open MPI exchanges the modex.
void publish_use() noexcept;

// Whether every process of the communicator has published it. Asks for each process once.
bool all_use_it(ompi_communicator_t& comm) noexcept;

}  // namespace coop::ag
