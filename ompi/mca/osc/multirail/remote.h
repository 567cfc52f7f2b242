// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic operations on the words of a target by HCAs, and accumulates under a lock that these take (remote.cc, queued.cc).
//
// Threading: guarded by the mutex of the window. Ownership: see each struct.
#pragma once

#include <memory>
#include <span>

#include "coop/rma/accumulate_queue.h"
#include "coop/rma/remote_lock.h"
#include "queued.h"
#include "window.h"

namespace coop::osc {

// An atomic operation under way.
struct AtomicCall {
    Window& window;
    Peer& peer;
    const bool waits;         // true: somebody waits and owns this; false: on_atomic_done() destroys it
    std::uint32_t place = 0;  // index of the result in ControlWords::results
    Generations::Number generation = 0;
    bool done = false;
};

// Transfers between a target and one block of staging memory.
struct Move {
    Staging::Block* block;
    std::span<const rma::Transfer> transfers;
};

// The lock of a target's accumulates, which this process is taking.
struct Acquisition {
    AtomicCall call;
    rma::RemoteLock steps{rma::LockType::kExclusive, false};
    rma::AtomicStep step{};     // the next one; valid after look_at()
    bool reads_ahead = false;   // reads of the target's elements have been started with the first step
    std::uint32_t missing = 0;  // of these
    bool has_looked() const noexcept { return call.done && missing == 0; }
};

// Accumulates of one target that have waited and are being executed.
struct Execution {
    Execution(Window& window, Peer& of, std::unique_ptr<rma::AccumulateQueue> from, Staging::Block& through) noexcept
        : peer(of), queue(std::move(from)), block(through), wanted{{window, of, true}} {}
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    Peer& peer;
    std::unique_ptr<rma::AccumulateQueue> queue;
    Staging::Block& block;
    Acquisition wanted;
    rma::AccumulateBatch batch;      // of numbers [done, next) of the queue
    std::size_t done = 0, next = 0;  // those before `done` have been executed

    std::span<const rma::AccumulateQueue::Entry> entries() const noexcept {
        return queue->entries().subspan(done, next - done);
    }
    Move reads() const noexcept { return {&block, needs_reads(entries()) ? batch.reads() : batch.reads().first(0)}; }
    Move writes() const noexcept { return {&block, batch.writes()}; }
};

}  // namespace coop::osc
