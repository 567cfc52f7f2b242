// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of accelerators. Open MPI with CUDA support looks at each buffer when it prepares a convertor for it, and sets
// a flag for device memory; the convertor then copies with CUDA. Nothing else may access such a buffer: for the
// kernel and for an HCA its address is invalid, or (managed memory) the driver may move the data meanwhile. So messages
// from and to device memory always go through the convertor (rows `eager` and `send`).
#pragma once

#include "compat.h"

namespace coop::pml {

// Makes Open MPI look for the driver, if it was built with CUDA support and no transport has made it look. Before that
// its convertors take device memory for host memory.
void find_devices() noexcept;

// True if buffers may lie in device memory. In an Open MPI with CUDA support opal_cuda_support is set from the start;
// Open MPI clears it if it does not find the driver's library.
inline bool device_memory_is_possible() noexcept { return opal_cuda_support; }

inline bool is_on_device(const opal_convertor_t& convertor) noexcept {
    return (convertor.flags & (CONVERTOR_CUDA | CONVERTOR_CUDA_UNIFIED)) != 0;
}

// True if the bytes of the message lie in the buffer in order and without gaps, and in host memory, so that transports
// may access them without the convertor.
inline bool needs_no_convertor(const opal_convertor_t& convertor) noexcept {
    return !is_on_device(convertor) && !opal_convertor_need_buffers(&convertor);
}

}  // namespace coop::pml
