// SPDX-License-Identifier: BSD-3-Clause
//
// What ThreadSanitizer cannot see: order of memory that Open MPI's code, which
// is not instrumented, establishes between two pieces of ours. Each call names
// it by the object that is handed over; without ThreadSanitizer they are gone.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define COOP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COOP_TSAN 1
#endif
#endif

#ifdef COOP_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace coop::pml {

inline void hand_on([[maybe_unused]] void* object) noexcept {
#ifdef COOP_TSAN
    __tsan_release(object);
#endif
}

inline void take_over([[maybe_unused]] void* object) noexcept {
#ifdef COOP_TSAN
    if (object) __tsan_acquire(object);
#endif
}

}  // namespace coop::pml
