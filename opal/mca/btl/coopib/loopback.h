// SPDX-License-Identifier: BSD-3-Clause
//
// Keeps the load board of the node's HCAs up to date (coop/rndv/hca_load.h). The functions that the PML calls are in
// extension.h.
#pragma once

#include <cstdint>

#include "work.h"

namespace coop::ib {

struct Module;

// Call these with Module::lock held. A stripe of a large operation is counted on the load board while it is in flight.
void count_posted(Module& m, StripeWork& stripe, std::uint32_t hca) noexcept;
void count_completed(const Module& m, StripeWork& stripe) noexcept;

}  // namespace coop::ib
