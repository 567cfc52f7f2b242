// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of an accelerator. An Open MPI with CUDA support looks at each buffer when it prepares a convertor for it, and sets a flag;
// its convertor then copies by CUDA. Nothing else can: to the kernel's copies and to an HCA such an address means nothing, or host
// memory that the driver may move meanwhile. So messages from and to it go through the convertor alone (row `send`).
#pragma once

#include "compat.h"

namespace coop::pml {

// Makes Open MPI look for the driver, where it was built with CUDA support and no transport has asked it to: until then its convertors take
// device memory for the host's.
void find_devices() noexcept;

// Whether buffers may lie there at all. Set by Open MPI when it finds the library of the driver.
inline bool device_memory_is_possible() noexcept { return opal_cuda_support; }

inline bool is_on_device(const opal_convertor_t& convertor) noexcept { return (convertor.flags & (CONVERTOR_CUDA | CONVERTOR_CUDA_UNIFIED)) != 0; }

// Whether all bytes lie in the buffer as they go over the wire, where others than the convertor may read or write them.
inline bool lies_as_it_goes(const opal_convertor_t& convertor) noexcept { return !is_on_device(convertor) && !opal_convertor_need_buffers(&convertor); }

}  // namespace coop::pml
