// SPDX-License-Identifier: BSD-3-Clause
//
// Annotations for ThreadSanitizer. Open MPI's code is not instrumented, so ThreadSanitizer does not see the memory
// order that it establishes when an object passes through it from one part of our code to another. tsan_release()
// before and tsan_acquire() after that state the order. They do nothing without ThreadSanitizer.
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

namespace coop {

inline void tsan_release([[maybe_unused]] void* object) noexcept {
#ifdef COOP_TSAN
    __tsan_release(object);
#endif
}

inline void tsan_acquire([[maybe_unused]] void* object) noexcept {
#ifdef COOP_TSAN
    if (object) __tsan_acquire(object);
#endif
}

}  // namespace coop
