// SPDX-License-Identifier: BSD-3-Clause
//
// Tells the processor that a cache line will be written or read soon, so that it takes the line from other cores meanwhile.
// Nothing happens if the address is invalid. Threading: any.
#pragma once

namespace coop {

inline void prefetch_to_read(const void* address) noexcept { __builtin_prefetch(address, 0); }

inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
    // The built-in function only asks to read unless the compiler may use instructions of newer processors. This one does
    // nothing on older ones.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
}

}  // namespace coop
