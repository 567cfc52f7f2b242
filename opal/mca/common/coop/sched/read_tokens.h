// SPDX-License-Identifier: BSD-3-Clause
//
// Limits the outstanding RDMA reads of one queue pair: one token for each read that the device and its peer
// allow (max_rd_atomic, max_dest_rd_atomic), and a FIFO of reads that wait for a token. A read posted beyond
// the limit would stall the send queue or fail. Atomic operations count as reads (InfiniBand Architecture,
// volume 1, chapter 9: both use responder resources).
//
//     if (tokens.take_or_queue(read)) post(read);
//     ... completed:  if (Read* next = tokens.give_back()) post(next);
//
// Units: reads. Threading: none; the caller holds the lock of the channel. Ownership: the caller's; waiting
// reads are linked through their own node. Errors: with a limit of 0 the queue pair cannot read, and the caller
// must not ask.
#pragma once

#include <cstdint>

#include "coop/base/list.h"

namespace coop::sched {

template <class T, ListNode T::*Node>
class ReadTokens {
public:
    explicit ReadTokens(std::uint32_t limit) noexcept : limit_(limit), free_(limit) {}

    // Returns true if `read` got a token. Otherwise it waits, in FIFO order, until give_back() returns it.
    [[nodiscard]] bool take_or_queue(T* read) noexcept {
        if (can_take()) {
            --free_;
            return true;
        }
        waiting_.push_back(read);
        return false;
    }

    // A read has completed. Returns the waiting read that gets its token; null if none waits.
    [[nodiscard]] T* give_back() noexcept {
        if (T* next = waiting_.pop_front()) return next;
        if (free_ < limit_) ++free_;
        return nullptr;
    }

    // The queue pair has failed: returns the waiting reads one by one; null after the last.
    T* pop_waiting() noexcept { return waiting_.pop_front(); }

    // For a new queue pair: nothing is outstanding, and nothing waits.
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
