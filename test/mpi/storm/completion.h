// SPDX-License-Identifier: BSD-3-Clause
//
// Completes a set of requests with one of MPI's functions, chosen at random.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "pattern.h"

namespace storm {

// Calls done(index, status) once for every request that was not MPI_REQUEST_NULL,
// in no particular order. Persistent requests are left inactive.
void complete_all(std::vector<MPI_Request>& requests, pattern::Random& random,
                  const std::function<void(std::size_t, const MPI_Status&)>& done);

}  // namespace storm
