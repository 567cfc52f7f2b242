// SPDX-License-Identifier: BSD-3-Clause
//
// Passive epochs of windows that HCAs control: the origin takes and releases the target's locks by atomic operations on
// its ControlWords, and executes accumulates under such a lock, in mapped memory or through staging memory. The CPU of
// the target does nothing.
#include <algorithm>
#include <cstring>
#include <optional>

#include "diagnose.h"
#include "element_writes.h"
#include "staged.h"
#include "waiting.h"
#include "window.h"
#include "ompi/mca/shim/codes.h"

namespace coop::osc {

// An atomic operation under way.
struct AtomicCall {
    Window& window;
    Peer& peer;
    const bool waits;         // true: change_word() waits and owns this; false: on_atomic_done() destroys it
    std::uint32_t place = 0;  // index of the result in ControlWords::results
    Generations::Number generation = 0;
    bool done = false;
};

namespace {

constexpr std::uint64_t kMostRounds = 64;  // calls of opal_progress() between two reads of a lock that is held

}  // namespace

void Window::start_atomic(Lock& lock, AtomicCall* call, Word word, const rma::AtomicStep& step) {
    wait_for(lock, [&] { return !free_results_.empty(); });
    call->place = free_results_.back();
    free_results_.pop_back();
    touch(call->peer);
    call->generation = call->peer.operations.begin();
    lock.unlock();
    const Card& card = cards_[call->peer.rank];
    auto* const handle = reinterpret_cast<mca_btl_base_registration_handle_t*>(
        const_cast<std::byte*>(card.control_handle));
    const std::uint64_t address = card.control + (word == Word::kLock ? offsetof(ControlWords, lock)
                                                                      : offsetof(ControlWords, accumulate));
    std::uint64_t* const result = &memory_.control->results[call->place];
    for (;;) {
        int rc = OMPI_ERR_OUT_OF_RESOURCE;
        if (process.faults.hit(Fault::kGetBusy)) {
        } else if (step.what == rma::AtomicStep::What::kAdd) {
            rc = rdma_->btl_atomic_fop(rdma_, call->peer.rdma, result, address, memory_.control_handle, handle,
                                       MCA_BTL_ATOMIC_ADD, step.operand, 0, MCA_BTL_NO_ORDER, on_atomic_done, nullptr,
                                       call);
        } else {
            rc = rdma_->btl_atomic_cswap(rdma_, call->peer.rdma, result, address, memory_.control_handle, handle,
                                         step.operand, step.value, 0, MCA_BTL_NO_ORDER, on_atomic_done, nullptr, call);
        }
        if (rc == OMPI_SUCCESS) break;
        if (!is_shortage(rc)) transport_failed(*rdma_, "atomic operation", rc);
        process.count(Count::kWaits);
        opal_progress();
    }
    process.count(Count::kAtomics);
    lock.lock();
}

void Window::on_atomic_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                            mca_btl_base_registration_handle_t*, void*, void* data, int status) {
    const async::Polling turn(handler().get());
    if (status != OMPI_SUCCESS) transport_failed(*btl, "atomic operation", status);
    auto* const call = static_cast<AtomicCall*>(data);
    Window& window = call->window;
    const std::lock_guard lock(window.mutex_);
    call->peer.operations.end(call->generation);
    if (call->waits) {
        call->done = true;  // the caller reads the result and gives its place back
        return;
    }
    window.free_results_.push_back(call->place);
    delete call;
}

std::uint64_t Window::change_word(Lock& lock, Peer& peer, Word word, const rma::AtomicStep& step) {
    AtomicCall call{*this, peer, true};
    start_atomic(lock, &call, word, step);
    wait_for(lock, [&] { return call.done; });
    const std::uint64_t old = memory_.control->results[call.place];
    free_results_.push_back(call.place);
    return old;
}

void Window::add_later(Lock& lock, Peer& peer, Word word, std::uint64_t operand) {
    start_atomic(lock, new AtomicCall{*this, peer, false}, word,
                 {.what = rma::AtomicStep::What::kAdd, .operand = operand});
}

void Window::acquire(Lock& lock, Peer& peer, Word word, rma::LockType type, bool overtakes) {
    rma::RemoteLock steps(type, overtakes);
    std::uint64_t rounds = 1;
    for (rma::AtomicStep step = steps.first(); step.what != rma::AtomicStep::What::kHeld;) {
        if (step.pause) {
            lock.unlock();
            for (std::uint64_t i = 0; i < rounds; ++i) opal_progress();
            lock.lock();
            rounds = std::min(2 * rounds, kMostRounds);
        }
        step = steps.next(change_word(lock, peer, word, step));
    }
}

// A transport that has much to do, for this window or for others, may post the release only when this process calls MPI
// again. Somebody could wait that long for the lock, so in this case wait for the release.
void Window::release(Lock& lock, Peer& peer, Word word, rma::LockType type) {
    const std::uint64_t operand = rma::RemoteLock::release(type);
    add_later(lock, peer, word, operand);
    if (!extension_->atomics_wait(rdma_, peer.rdma)) return;
    const Generations::Number released = peer.operations.close();
    wait_for(lock, [&] { return peer.operations.is_over(released); });
}

// Carries out the transfers, and waits for their end. The HCA that changes the lock moves the data, too: another HCA
// may see what this one has written only later, and then the next holder of the lock would read old data.
void Window::move(Lock& lock, Peer& peer, bool puts, Staging::Block& block, std::span<const rma::Transfer> transfers) {
    auto missing = static_cast<std::uint32_t>(transfers.size());
    for (const rma::Transfer& each : transfers) {
        wait_for_room(lock, peer);
        StagedPartPtr part = new_part(peer, block, puts);
        part->beside_atomics = true;
        part->add(each);
        part->missing = &missing;
        start_part(lock, std::move(part));
    }
    wait_for(lock, [&] { return missing == 0; });
}

void Window::accumulate_remote(Lock& lock, Peer& peer, const Origin& origin, const Origin* result, const Target& target,
                               const Place& place, const ElementType& element, std::uint8_t operation) {
    constexpr auto kExclusive = rma::LockType::kExclusive;
    constexpr int kTurns = 8;  // most blocks before the lock is released, so that others do not wait too long
    if (place.is_mapped) {
        acquire(lock, peer, Word::kAccumulate, kExclusive, false);
        lock.unlock();
        accumulate_mapped(origin, result, target, place.mapped, element, operation, nullptr);
        lock.lock();
        return release(lock, peer, Word::kAccumulate, kExclusive);
    }
    rma::RunBuilder layout;
    flatten_elements(target, element, place.offset, operation == kNoOp ? target.bytes() : origin.bytes(), layout);
    const Operand operand(origin, element, operation);
    const std::byte* const from = operand.data();
    std::optional<Unpacker> unpacker;
    if (result) unpacker.emplace(*result, element.has_gap() ? &element : nullptr);
    const bool reads = result || operation != kReplace;
    Staging::Block& block = take_block(lock);
    std::uint64_t position = 0;
    rma::Cover cover;
    try {
        for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
            acquire(lock, peer, Word::kAccumulate, kExclusive, false);
            for (int turn = 0; turn < kTurns && !cursor.at_end(); ++turn) {
                cover.take(cursor, 0, Staging::kBlockBytes, reads, element.span);
                if (reads) move(lock, peer, false, block, cover.transfers());
                position = compute(cover, block.memory, from, operation, element, unpacker, position);
                if (from) move(lock, peer, true, block, writes_of(cover, element));
            }
            release(lock, peer, Word::kAccumulate, kExclusive);
        }
    } catch (const std::bad_alloc&) {
        out_of_memory("an accumulate");  // the lock is held: others would wait for ever
    }
    if (unpacker) unpacker->finish();
    drop(block);
}

void Window::swap_remote(Lock& lock, Peer& peer, const void* value, const void* comparand, void* result,
                         std::size_t bytes, const Place& place) {
    Staging::Block* const block = place.is_mapped ? nullptr : &take_block(lock);
    acquire(lock, peer, Word::kAccumulate, rma::LockType::kExclusive, false);
    if (!block) {
        lock.unlock();
        swap_mapped(value, comparand, result, bytes, place.mapped, nullptr);
        lock.lock();
    } else {
        const rma::Transfer all{place.offset, 0, static_cast<std::uint32_t>(bytes)};
        move(lock, peer, false, *block, {&all, 1});
        std::memcpy(result, block->memory, bytes);
        if (std::memcmp(block->memory, comparand, bytes) == 0) {
            std::memcpy(block->memory, value, bytes);
            move(lock, peer, true, *block, {&all, 1});
        }
        drop(*block);
    }
    release(lock, peer, Word::kAccumulate, rma::LockType::kExclusive);
}

}  // namespace coop::osc
