// SPDX-License-Identifier: BSD-3-Clause
//
// Short operations of passive epochs on memory of the node that is not shared. A system call for each would take most of the
// time, so they wait until one of these executes all of them together:
//
//     puts, gets     flush, flush_local, unlock; a full queue
//     accumulates    flush, unlock; flush_local, if they have results; accumulates that do not wait; a full queue
//
// Puts and gets wait as addresses (coop/rma/copy_queue.h), accumulates with a copy of their operand
// (coop/rma/accumulate_queue.h). If the kernel refuses, they become messages.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cma.h"
#include "coop/node/remote_copy.h"
#include "diagnose.h"
#include "mapped.h"
#include "queued.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {

using node::RemoteCopy;

bool Window::queue_copy(Lock& lock, bool puts, const Origin& origin, const Target& target, const Place& place) {
    const std::uint64_t bytes = puts ? origin.bytes() : target.bytes();
    if (!rma::CopyQueue::suits(bytes) || !cards_[target.rank].copies || !is_passive()) return false;
    std::byte* const here = origin.contiguous();
    if (!here || !target.is_contiguous()) return false;
    const std::uint64_t there = place.offset + static_cast<std::uint64_t>(target.type->super.true_lb);
    const rma::Run run{there, bytes, 0, 1};
    if (is_dynamic() && !may_copy(target.rank, {&run, 1})) return false;
    Peer& owner = peer(target.rank);
    std::unique_ptr<rma::CopyQueue>& queue = owner.copies_of(puts);
    while (queue && queue->is_full()) execute_copies(lock, owner);  // another thread may fill it again meanwhile
    if (!queue) queue = free_copies_ ? std::move(free_copies_) : std::make_unique<rma::CopyQueue>();
    queue->add(here, there, bytes);
    touch(owner);
    return true;
}

void Window::execute_all_copies(Lock& lock, Peer& peer) {
    // Those that another thread is executing may be of this thread.
    wait_for(lock, [&] { return !peer.copying; });
    peer.copying = true;
    for (const bool puts : {true, false}) execute_copies(lock, peer, puts);
    peer.copying = false;
}

void Window::execute_copies(Lock& lock, Peer& peer, bool puts) {
    std::unique_ptr<rma::CopyQueue> queue = std::move(peer.copies_of(puts));
    if (!queue) return;
    if (!puts) queue->sort();
    const std::span<const rma::CopyQueue::Copy> copies = queue->copies();
    // In dynamic windows, what lies between the blocks may not be attached.
    const bool gaps = !puts && copies.size() > 1 && !is_dynamic();
    lock.unlock();
    Gap gap;
    const Copied copied = copy_blocks(
        cards_[peer.rank], puts ? RemoteCopy::To::kThere : RemoteCopy::To::kHere, copies,
        [](const rma::CopyQueue::Copy& each) { return each.here; }, gaps ? &gap : nullptr);
    if (copied.error == ESRCH) copy_failed(peer.rank, ESRCH);
    std::size_t done = 0;
    for (std::uint64_t left = copied.bytes; done < copies.size() && left >= copies[done].bytes; ++done)
        left -= copies[done].bytes;
    for (const auto& each : copies.first(done)) counts_.count(Way::kCma, Reason::kNotShared, each.bytes);
    lock.lock();
    for (const auto& each : copies.subspan(done)) {
        counts_.count(Way::kMessage, Reason::kRefused, each.bytes);
        rma::RunBuilder layout;
        layout.add(each.offset, each.bytes);
        move_blocks(lock, peer, puts, each.here, layout, nullptr);
    }
    queue->clear();
    free_copies_ = std::move(queue);
}

bool Window::may_overtake_none(Lock& lock, std::uint32_t rank) {
    Peer* const there = peers_[rank].get();
    if (!there) return true;
    execute_queued(lock, *there);
    return !there->is_behind();
}

// Returns what is left: the kernel may refuse any of the copies.
Window::Unexecuted Window::try_near(std::uint32_t rank, const rma::AccumulateQueue& queue,
                                    rma::AccumulateBatch& batch) {
    const Card& card = cards_[rank];
    const std::span<const rma::AccumulateQueue::Entry> all = queue.entries();
    static_assert(rma::AccumulateQueue::kRoomOfOne <= kMostUnderLock);
    alignas(rma::AccumulateQueue::kAlignment) std::array<std::byte, kMostUnderLock> buffer;
    for (std::size_t done = 0; done < all.size();) {
        const std::size_t next = batch.take(queue, done, kMostUnderLock, card.base);
        const auto entries = all.subspan(done, next - done);
        const AccumulateLock word(memory_.locks[rank], mutex_);
        if (needs_reads(entries)) {
            // What lies between the blocks may be no memory: in dynamic windows always, in others if the program wants that.
            const auto read = [&](std::span<const rma::Transfer> from) {
                return copy_transfers(card, RemoteCopy::To::kHere, buffer.data(), from).error;
            };
            int error = read(is_dynamic() ? batch.writes() : batch.reads());
            if (error == EFAULT && batch.reads().size() < batch.writes().size()) error = read(batch.writes());
            if (error == ESRCH) copy_failed(rank, error);
            if (error) return {done, done, 0};
        }
        combine_queued(queue, entries, [&](std::size_t i) { return buffer.data() + batch.place(i); });
        const auto [error, copied] = copy_transfers(card, RemoteCopy::To::kThere, buffer.data(), batch.writes());
        if (error == ESRCH) copy_failed(rank, error);
        if (error) {
            const std::uint64_t end = batch.end_of_written(copied);
            if (cuts_an_element(queue, entries, end)) copy_failed(rank, error);
            return {done, next, end};
        }
        done = next;
    }
    return {all.size(), all.size(), 0};
}

void Window::execute_near(Lock& lock, Peer& peer, const rma::AccumulateQueue& queue) {
    Unexecuted rest{0, 0, 0};
    // While these waited, another thread may have sent earlier ones as messages. Those must stay in front.
    if (!peer.is_behind()) {
        std::unique_ptr<rma::AccumulateBatch> batch = std::move(free_batch_);
        lock.unlock();
        if (!batch) batch = std::make_unique<rma::AccumulateBatch>();
        rest = try_near(peer.rank, queue, *batch);
        lock.lock();
        free_batch_ = std::move(batch);
    }
    const std::span<const rma::AccumulateQueue::Entry> all = queue.entries();
    for (const auto& each : all.first(rest.first)) counts_.count(Way::kCma, Reason::kAtOrigin, each.bytes);
    for (const auto& each : all.subspan(rest.first)) counts_.count(Way::kMessage, Reason::kRefused, each.bytes);
    send_queued(lock, peer, queue, rest);
}

}  // namespace coop::osc
