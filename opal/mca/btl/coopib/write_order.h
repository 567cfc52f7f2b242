// SPDX-License-Identifier: BSD-3-Clause
//
// Whether RDMA writes of a peer land in order in our memory, so that the last byte of
// a write shows that all of it has arrived (coop/rail/verbs/rc.h). The driver says so,
// or the parameter ring_in_order does. extension.h declares the function for other
// components.
//
// Threading: under Module::lock. Errors: none; if it is unknown, the answer is no.
#pragma once

#include "endpoint.h"

namespace coop::ib {

struct Module;

bool lands_in_order(const Module& m, const Rail& rail) noexcept;

}  // namespace coop::ib
