// SPDX-License-Identifier: BSD-3-Clause
//
// Outstanding RDMA reads of one queue pair: a token for each that the device and
// its peer allow (max_rd_atomic, max_dest_rd_atomic), and a FIFO of those that
// wait for one. A read posted beyond the limit would stall the send queue behind
// it, or fail. Atomic operations count as reads (InfiniBand Architecture, volume
// 1, chapter 9: both take responder resources).
//
//     if (tokens.take_or_queue(read)) post(read);
//     ... completed:  if (Read* next = tokens.give_back()) post(next);
//
// Units: reads. Threading: none; the caller holds the lock of the channel.
// Ownership: the caller's; waiting ones are linked through their own node.
// Errors: a limit of 0 means that the queue pair cannot read: nobody asks then.
#pragma once

#include <cstdint>

#include "coop/base/list.h"

namespace coop::sched {

template <class T, ListNode T::*Node>
class ReadTokens {
public:
    explicit ReadTokens(std::uint32_t limit) noexcept : limit_(limit), free_(limit) {}

    // Whether `read` has a token now. Otherwise it waits, and give_back() will
    // return it. Nobody overtakes those who wait.
    [[nodiscard]] bool take_or_queue(T* read) noexcept {
        if (can_take()) {
            --free_;
            return true;
        }
        waiting_.push_back(read);
        return false;
    }

    // A read has completed. Returns the one that has its token now; null if
    // nobody waits.
    [[nodiscard]] T* give_back() noexcept {
        if (T* next = waiting_.pop_front()) return next;
        if (free_ < limit_) ++free_;
        return nullptr;
    }

    // It waits no more (aborted).
    void cancel(T* read) noexcept { waiting_.remove(read); }

    // The queue pair is gone: one waiting read after the other, for another rail;
    // null after the last.
    T* pop_waiting() noexcept { return waiting_.pop_front(); }

    // The queue pair is new: nothing is outstanding on it, and nobody waits.
    void reset(std::uint32_t limit) noexcept { limit_ = free_ = limit; }

    std::uint32_t limit() const noexcept { return limit_; }
    std::uint32_t outstanding() const noexcept { return limit_ - free_; }
    bool can_take() const noexcept { return free_ != 0 && waiting_.empty(); }
    bool has_waiting() const noexcept { return !waiting_.empty(); }

private:
    List<T, Node> waiting_;
    std::uint32_t limit_;
    std::uint32_t free_;
};

}  // namespace coop::sched
