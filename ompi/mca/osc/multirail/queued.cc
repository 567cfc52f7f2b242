// SPDX-License-Identifier: BSD-3-Clause
//
// Short accumulates, in passive epochs of windows that HCAs control, and of those that use CMA (cma_queued.cc). They wait,
// packed, until one of these executes all of them under one lock of the target (coop/rma/accumulate_queue.h):
//
//     flush, unlock
//     flush_local                     if some have results; the others need only the packed copy, and so do their requests
//     accumulates that do not wait    accumulates take effect in the order of the calls
//     a full queue
//
// Those with a result and a request do not wait, because a program may wait for the request without a flush, nor do long ones,
// and those with MPI_NO_OP, because a write of what they have read could overwrite a store of the target.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "diagnose.h"
#include "queued.h"
#include "remote.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

constexpr std::uint32_t kMostQueues = 256;  // targets with accumulates that wait, for each window; their memory adds up
constexpr std::size_t kMostTogether = 16;   // targets; each needs a block of staging memory

}  // namespace

std::unique_ptr<rma::AccumulateQueue> Window::take_queue() {
    ++queues_;
    return free_queue_ ? std::move(free_queue_) : std::make_unique<rma::AccumulateQueue>();
}

void Window::give_back(std::unique_ptr<rma::AccumulateQueue> queue) noexcept {
    queue->clear();
    free_queue_ = std::move(queue);
    --queues_;
}

bool Window::queue_accumulate(Lock& lock, Peer& peer, const Origin& origin, const Origin* result, const Target& target,
                              const Place& place, const ElementType& element, std::uint8_t operation) {
    // Elements with a gap inside take two writes each.
    if (element.span != element.size || operation == kNoOp || origin.bytes() > rma::AccumulateQueue::kLongest)
        return false;
    std::byte* const found = result ? result->contiguous() : nullptr;
    if (result && !found) return false;
    rma::RunBuilder layout;
    flatten_elements(target, element, place.offset, origin.bytes(), layout);
    const std::uint64_t blocks = rma::count_blocks(layout.runs());
    if (!rma::AccumulateQueue::suits(layout.bytes(), blocks)) return false;
    while (peer.queued && !peer.queued->has_room(layout.bytes(), blocks)) execute_queued(lock, peer);
    // If the kernel has refused to execute them by CMA, they are messages, and those that follow have to be messages, too.
    if (!has_control_ && peer.is_behind()) return false;
    // To further targets, accumulates do not wait.
    if (!peer.queued && queues_ >= kMostQueues) return false;
    if (!peer.queued) peer.queued = take_queue();
    touch(peer);
    std::byte* const to = peer.queued->add(layout.runs(), number_of(*element.type), operation, found);
    const Operand operand(origin, element, operation);
    std::memcpy(to, operand.data(), layout.bytes());
    return true;
}

void Window::execute_queued(Lock& lock, Peer& peer) {
    if (!peer.queued && !peer.executing) [[likely]]
        return;
    // Another thread may be executing earlier ones, which come first, or those of this thread.
    wait_for(lock, [&] { return !peer.executing; });
    if (!peer.queued) return;
    peer.executing = true;
    std::unique_ptr<rma::AccumulateQueue> queue = std::move(peer.queued);
    const Card& card = cards_[peer.rank];
    try {
        if (!has_control_) {
            execute_near(lock, peer, *queue);
        } else if (card.is_mapped) {
            acquire(lock, peer, Word::kAccumulate, rma::LockType::kExclusive, false);
            execute_mapped(lock, card, *queue);
            release(lock, peer, Word::kAccumulate, rma::LockType::kExclusive);
        } else {
            Execution run(*this, peer, std::move(queue), take_block(lock));
            begin_and_end(lock, run);
            queue = std::move(run.queue);
        }
    } catch (const std::bad_alloc&) {
        out_of_memory("an accumulate");  // the lock is held: others would wait for ever
    }
    give_back(std::move(queue));
    peer.executing = false;
}

void Window::execute_queued(Lock& lock, std::span<Peer* const> peers, bool all) {
    if (has_control_ && peers.size() > 1) {
        std::vector<Peer*> wanted;
        std::ranges::copy_if(peers, std::back_inserter(wanted),
                             [all](const Peer* each) { return all || each->fetches(); });
        for (std::span<Peer* const> rest = wanted; rest.size() > 1;) {
            const std::size_t some = std::min(rest.size(), kMostTogether);
            execute_together(lock, rest.first(some));
            rest = rest.subspan(some);
        }
    }
    // Those on mapped memory, and those that other threads are executing.
    for (Peer* const each : peers)
        if (all || each->fetches()) execute_queued(lock, *each);
}

// Leaves those for which there is no block to the caller: to wait for a block while this process holds others could take for
// ever. While this process waits for a lock that somebody holds, it has no other one, because others may wait for that one. It
// may have several while it waits for HCAs.
void Window::execute_together(Lock& lock, std::span<Peer* const> peers) {
    try {
        std::vector<std::unique_ptr<Execution>> runs;
        const auto may_execute = [&](const Peer& peer) {
            return peer.queued && !peer.executing && !cards_[peer.rank].is_mapped;
        };
        for (Peer* const each : peers) {
            if (!may_execute(*each)) continue;
            Staging::Block* const block = runs.empty() ? &take_block(lock) : process.staging.take();
            if (!block) break;
            if (!may_execute(*each)) {  // another thread was faster
                drop(*block);
                continue;
            }
            each->executing = true;
            runs.push_back(std::make_unique<Execution>(*this, *each, std::move(each->queued), *block));
        }
        const auto finish = [&](Execution& run) {
            give_back(std::move(run.queue));
            run.peer.executing = false;
        };
        std::vector<Execution*> open, held_by_others, not_begun;
        for (const auto& run : runs) {
            // Atomic operations need places for their results. Other threads may wait for some, and have others.
            const bool begins = open.empty() || !free_results_.empty();
            (begins ? open : not_begun).push_back(run.get());
            if (begins) begin(lock, *run);
        }
        while (!open.empty()) {
            auto looked = open.end();
            wait_for(lock, [&] {
                looked = std::ranges::find_if(open, [](const Execution* run) { return run->wanted.has_looked(); });
                return looked != open.end();
            });
            Execution& run = **looked;
            open.erase(looked);
            if (!look_at(run.wanted)) {
                held_by_others.push_back(&run);
                continue;
            }
            end(lock, run);
            finish(run);
        }
        for (Execution* const run : held_by_others) {
            end(lock, *run);
            finish(*run);
        }
        for (Execution* const run : not_begun) {
            begin_and_end(lock, *run);
            finish(*run);
        }
    } catch (const std::bad_alloc&) {
        out_of_memory("accumulates");  // a lock may be held: others would wait for ever
    }
}

void Window::execute_mapped(Lock& lock, const Card& card, const rma::AccumulateQueue& queue) {
    lock.unlock();
    combine_queued(queue, queue.entries(), [&](std::size_t i) { return card.mapped + queue.blocks()[i].offset; });
    lock.lock();
}

void Window::begin(Lock& lock, Execution& run) {
    static_assert(rma::AccumulateQueue::kRoomOfOne <= Staging::kBlockBytes);
    run.next = run.batch.take(*run.queue, run.done, Staging::kBlockBytes, cards_[run.peer.rank].base);
    const Move reads = run.reads();
    begin_acquisition(lock, run.wanted, {&reads, 1});
}

// It does not give the lock to others before all is done: that is little, and this process may have other locks.
void Window::end(Lock& lock, Execution& run) {
    Peer& peer = run.peer;
    Move reads = run.reads();
    end_acquisition(lock, run.wanted, {&reads, 1});
    for (;;) {
        combine_queued(*run.queue, run.entries(), [&](std::size_t i) { return run.block.memory + run.batch.place(i); });
        const Move writes = run.writes();
        run.done = run.next;
        if (run.done == run.queue->entries().size()) {
            write_and_release(lock, peer, {&writes, 1});
            return drop(run.block);
        }
        move(lock, peer, true, {&writes, 1});
        run.next = run.batch.take(*run.queue, run.done, Staging::kBlockBytes, cards_[peer.rank].base);
        reads = run.reads();
        move(lock, peer, false, {&reads, 1});
    }
}

void Window::begin_and_end(Lock& lock, Execution& run) {
    begin(lock, run);
    wait_for(lock, [&] { return run.wanted.has_looked(); });
    look_at(run.wanted);
    end(lock, run);
}

}  // namespace coop::osc
