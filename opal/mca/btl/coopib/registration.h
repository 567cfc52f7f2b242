// SPDX-License-Identifier: BSD-3-Clause
//
// Registration of the upper layer's memory, kept by Open MPI's registration cache.
#pragma once

#include <cstdint>

#include "work.h"

namespace coop::ib {

struct Module;

bool open_registration(Module& m);  // returns false if the cache is missing
void close_registration(Module& m);

// Returns the local key of registered memory on an HCA; 0 if `handle` is null.
std::uint32_t lkey_of(const mca_btl_base_registration_handle_t* handle, std::uint32_t hca) noexcept;

}  // namespace coop::ib
