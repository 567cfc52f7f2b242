// SPDX-License-Identifier: BSD-3-Clause
//
// Tells the processor that a thread looks at memory until another one writes it. Threading: any.
#pragma once

namespace coop {

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace coop
