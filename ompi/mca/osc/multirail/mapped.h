// SPDX-License-Identifier: BSD-3-Clause
//
// What operations on mapped memory have in common.
//
// Threading: any. Errors: none.
#pragma once

#include <cstring>

#include <sched.h>

#include "compat.h"
#include "memory.h"
#include "mutex.h"

namespace coop::osc {

constexpr std::uint64_t kMostUnderLock = 16 * 1024;  // bytes of an accumulate; others wait for the lock meanwhile

// Makes an accumulate atomic: by the lock in shared memory, which all origins use, or by the window's mutex, which the
// execution of records holds. Precondition: this thread does not hold the mutex.
class AccumulateLock {
public:
    AccumulateLock(SharedLocks* shared, Mutex& mutex) : shared_(shared), mutex_(mutex) {
        if (!shared_) {
            mutex_.lock();
            return;
        }
        for (int spins = 0; shared_->accumulate.exchange(1, std::memory_order_acquire) != 0;) {
            // The holder may need this CPU. If it takes long, others may be waiting for packets of this process.
            if (++spins % kYield == 0) sched_yield();
            if (spins % kProgress == 0) opal_progress();
        }
    }
    ~AccumulateLock() {
        if (shared_) shared_->accumulate.store(0, std::memory_order_release);
        else mutex_.unlock();
    }
    AccumulateLock(const AccumulateLock&) = delete;
    AccumulateLock& operator=(const AccumulateLock&) = delete;

private:
    static constexpr int kYield = 64, kProgress = 4096;  // spins

    SharedLocks* const shared_;
    Mutex& mutex_;
};

// The same for records of accumulates, where some origins execute theirs under the lock in shared memory. (null: none do.)
// Precondition: this thread holds the mutex. So transports must not progress while it waits.
class RecordLock {
public:
    explicit RecordLock(SharedLocks* shared) noexcept : shared_(shared) {
        constexpr int kYield = 64;
        if (!shared_) return;
        for (int spins = 1; shared_->accumulate.exchange(1, std::memory_order_acquire) != 0; ++spins)
            if (spins % kYield == 0) sched_yield();
    }
    ~RecordLock() {
        if (shared_) shared_->accumulate.store(0, std::memory_order_release);
    }
    RecordLock(const RecordLock&) = delete;
    RecordLock& operator=(const RecordLock&) = delete;

private:
    SharedLocks* const shared_;
};

// Copies a long block in pieces: for long copies at once, the C library writes past the caches, which takes a fifth longer
// where they would have held the block. The two may overlap.
void copy_long_block(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept;

// Copies a block; one of 8 bytes without a call. The two may overlap.
inline void copy_block(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t kLong = 512 * 1024;
    if (bytes == 8) std::memmove(to, from, 8);
    else if (bytes <= kLong) std::memmove(to, from, bytes);
    else copy_long_block(to, from, bytes);
}

// A predefined type without gaps, which Open MPI has not made of another one. Its data begin at its address.
inline bool is_plain(const ompi_datatype_t& type) noexcept {
    return ompi_datatype_is_predefined(&type) && !type.args && type.super.lb == 0 && type.super.true_lb == 0 &&
           static_cast<std::ptrdiff_t>(type.super.size) == type.super.ub;
}

// The functions of operations need elements at their natural addresses.
inline bool is_aligned(const ompi_datatype_t& type, const void* memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory) % type.super.align == 0;
}

// Whether the operation is predefined, and defined for this plain type.
inline bool has_function(const ompi_op_t& op, const ompi_datatype_t& type) noexcept {
    if (&op == &ompi_mpi_op_replace.op) return true;
    if ((op.o_flags & OMPI_OP_FLAGS_INTRINSIC) == 0 || type.id < 0 || type.id >= OMPI_DATATYPE_MAX_PREDEFINED)
        return false;
    const int index = ompi_op_ddt_map[type.id];
    return index >= 0 && index < OMPI_OP_BASE_TYPE_MAX && op.o_func.intrinsic.fns[index];
}

}  // namespace coop::osc
