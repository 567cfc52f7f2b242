// SPDX-License-Identifier: BSD-3-Clause
//
// A lock in shared memory that survives its owner: a robust, process-shared
// pthread mutex. If the owner dies, the next process gets the lock; the data it
// guards must therefore be consistent after every single store.
//
// A process takes its Life lock (Process::life) when it joins and holds it until it
// leaves. The kernel marks the lock when the owning thread ends for whatever
// reason, so one load tells whether the process is alive, even if its process
// number has been reused.
//
// Errors: none that a caller could handle; a corrupted mutex ends the process.
#pragma once

#include <linux/futex.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace coop::fabric {

class Lock {
public:
    void create() noexcept {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&mutex_, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    void lock() noexcept { settle(pthread_mutex_lock(&mutex_)); }
    bool try_lock() noexcept {
        const int result = pthread_mutex_trylock(&mutex_);
        if (result == EBUSY) return false;
        settle(result);
        return true;
    }
    void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

    // True if a living thread holds it. The first word of a robust mutex is the
    // kernel's futex: the owner's thread number, and a bit that marks its death.
    bool is_held() const noexcept {
        const auto& word = reinterpret_cast<const std::atomic<std::uint32_t>&>(mutex_);
        const std::uint32_t value = word.load(std::memory_order_acquire);
        return (value & FUTEX_TID_MASK) != 0 && (value & FUTEX_OWNER_DIED) == 0;
    }

private:
    void settle(int result) noexcept {
        if (result == 0) return;
        if (result != EOWNERDEAD) std::abort();
        pthread_mutex_consistent(&mutex_);
    }
    pthread_mutex_t mutex_;
};

class Guard {
public:
    explicit Guard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    Lock& lock_;
};

}  // namespace coop::fabric
