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
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
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

// RAII scope: inline functions of Open MPI write to memory whose owner waits in code that is not instrumented.
class TsanIgnoresWrites {
public:
    TsanIgnoresWrites() noexcept {
#ifdef COOP_TSAN
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
    }
    ~TsanIgnoresWrites() {
#ifdef COOP_TSAN
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
#endif
    }
    TsanIgnoresWrites(const TsanIgnoresWrites&) = delete;
    TsanIgnoresWrites& operator=(const TsanIgnoresWrites&) = delete;
};

}  // namespace coop
