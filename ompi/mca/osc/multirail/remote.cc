// SPDX-License-Identifier: BSD-3-Clause
//
// Passive epochs of windows that HCAs control: the origin takes and releases the target's locks by atomic operations on
// its ControlWords, and executes accumulates under such a lock, in mapped memory or through staging memory. The CPU of
// the target does nothing.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "diagnose.h"
#include "element_writes.h"
#include "remote.h"
#include "staged.h"
#include "waiting.h"
#include "window.h"
#include "ompi/mca/shim/codes.h"

namespace coop::osc {

namespace {

constexpr std::uint64_t kMostRounds = 64;  // calls of opal_progress() between two reads of a lock that is held
constexpr std::size_t kMostBlocks = 4;     // of staging memory, that are read, and written, at the same time

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
    return take_result(call);
}

std::uint64_t Window::take_result(const AtomicCall& call) {
    free_results_.push_back(call.place);
    return memory_.control->results[call.place];
}

void Window::add_later(Lock& lock, Peer& peer, Word word, std::uint64_t operand) {
    start_atomic(lock, new AtomicCall{*this, peer, false}, word,
                 {.what = rma::AtomicStep::What::kAdd, .operand = operand});
}

void Window::acquire(Lock& lock, Peer& peer, Word word, rma::LockType type, bool overtakes) {
    rma::RemoteLock steps(type, overtakes);
    acquire(lock, peer, word, steps, steps.first());
}

void Window::acquire(Lock& lock, Peer& peer, Word word, rma::RemoteLock& steps, rma::AtomicStep step) {
    std::uint64_t rounds = 1;
    while (step.what != rma::AtomicStep::What::kHeld) {
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

// The HCA that changes the lock moves the data, too: another HCA may see what this one has written only later, and then the
// next holder of the lock would read old data. `missing` counts the transfers that have not ended; null: nobody waits.
void Window::start_moves(Lock& lock, Peer& peer, bool puts, std::span<const Move> moves, std::uint32_t* missing) {
    for (const auto& [block, transfers] : moves) {
        if (missing) *missing += static_cast<std::uint32_t>(transfers.size());
        for (const rma::Transfer& each : transfers) {
            wait_for_room(lock, peer);
            StagedPartPtr part = new_part(peer, *block, puts);
            part->beside_atomics = true;
            part->add(each);
            part->missing = missing;
            start_part(lock, std::move(part));
        }
    }
}

void Window::move(Lock& lock, Peer& peer, bool puts, std::span<const Move> moves) {
    std::uint32_t missing = 0;
    start_moves(lock, peer, puts, moves, &missing);
    wait_for(lock, [&] { return missing == 0; });
}

// The reads need not wait for the lock if the HCA keeps the order: what they have found counts if the lock was free. While
// others want it, such reads would be in vain.
void Window::begin_acquisition(Lock& lock, Acquisition& wanted, std::span<const Move> reads) {
    Peer& peer = wanted.call.peer;
    wanted.reads_ahead = !peer.is_contended && extension_->atomics_keep_order(rdma_, peer.rdma);
    start_atomic(lock, &wanted.call, Word::kAccumulate, wanted.steps.first());
    if (wanted.reads_ahead) start_moves(lock, peer, false, reads, &wanted.missing);
}

bool Window::look_at(Acquisition& wanted) {
    wanted.step = wanted.steps.next(take_result(wanted.call));
    const bool held = wanted.step.what == rma::AtomicStep::What::kHeld;
    wanted.call.peer.is_contended = !held;
    return held;
}

void Window::end_acquisition(Lock& lock, Acquisition& wanted, std::span<const Move> reads) {
    Peer& peer = wanted.call.peer;
    const bool held = wanted.step.what == rma::AtomicStep::What::kHeld;
    if (held && wanted.reads_ahead) return;
    if (!held) acquire(lock, peer, Word::kAccumulate, wanted.steps, wanted.step);
    move(lock, peer, false, reads);
}

void Window::acquire_and_read(Lock& lock, Peer& peer, std::span<const Move> reads) {
    Acquisition wanted{{*this, peer, true}};
    begin_acquisition(lock, wanted, reads);
    wait_for(lock, [&] { return wanted.has_looked(); });
    look_at(wanted);
    end_acquisition(lock, wanted, reads);
}

// Nobody uses the blocks after the writes. They need not have ended before the release if the HCA keeps the order; what waits
// for the operations of the peer waits for both.
void Window::write_and_release(Lock& lock, Peer& peer, std::span<const Move> writes) {
    if (extension_->atomics_keep_order(rdma_, peer.rdma)) start_moves(lock, peer, true, writes, nullptr);
    else move(lock, peer, true, writes);
    release(lock, peer, Word::kAccumulate, rma::LockType::kExclusive);
}

// For `bytes` of elements: one block, and a few more if they are free.
std::vector<Staging::Block*> Window::take_blocks(Lock& lock, std::uint64_t bytes) {
    std::vector<Staging::Block*> blocks{&take_block(lock)};
    while (blocks.size() < kMostBlocks && blocks.size() * Staging::kBlockBytes < bytes) {
        Staging::Block* const more = process.staging.take();
        if (!more) break;
        blocks.push_back(more);
    }
    return blocks;
}

void Window::accumulate_remote(Lock& lock, Peer& peer, const Origin& origin, const Origin* result, const Target& target,
                               const Place& place, const ElementType& element, std::uint8_t operation) {
    constexpr auto kExclusive = rma::LockType::kExclusive;
    execute_queued(lock, peer);
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
    const std::vector<Staging::Block*> blocks = take_blocks(lock, layout.bytes());
    std::uint64_t position = 0;
    std::array<rma::Cover, kMostBlocks> covers;
    std::array<std::vector<rma::Transfer>, kMostBlocks> writes;
    std::vector<Move> moves;
    bool is_released = false;  // with the last writes
    try {
        for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
            for (std::size_t turn = 0; turn < kTurnsUnderLock && !cursor.at_end(); turn += blocks.size()) {
                std::size_t used = 0;
                moves.clear();
                for (; used < blocks.size() && !cursor.at_end(); ++used) {
                    covers[used].take(cursor, 0, Staging::kBlockBytes, reads, element.span);
                    if (reads) moves.push_back({blocks[used], covers[used].transfers()});
                }
                if (turn == 0) acquire_and_read(lock, peer, moves);
                else move(lock, peer, false, moves);
                moves.clear();
                for (std::size_t i = 0; i < used; ++i) {
                    position = compute(covers[i], blocks[i]->memory, from, operation, element,
                                       unpacker ? &*unpacker : nullptr, position);
                    if (!from) continue;
                    writes[i] = writes_of(covers[i], element);
                    moves.push_back({blocks[i], writes[i]});
                }
                if (!from) continue;
                is_released = cursor.at_end();
                if (is_released) write_and_release(lock, peer, moves);
                else move(lock, peer, true, moves);
            }
            if (!is_released) release(lock, peer, Word::kAccumulate, kExclusive);
        }
    } catch (const std::bad_alloc&) {
        out_of_memory("an accumulate");  // the lock is held: others would wait for ever
    }
    if (unpacker) unpacker->finish();
    for (Staging::Block* const each : blocks) drop(*each);
}

void Window::swap_remote(Lock& lock, Peer& peer, const void* value, const void* comparand, void* result,
                         std::size_t bytes, const Place& place) {
    execute_queued(lock, peer);
    constexpr auto kExclusive = rma::LockType::kExclusive;
    if (place.is_mapped) {
        acquire(lock, peer, Word::kAccumulate, kExclusive, false);
        lock.unlock();
        swap_mapped(value, comparand, result, bytes, place.mapped, nullptr);
        lock.lock();
        return release(lock, peer, Word::kAccumulate, kExclusive);
    }
    Staging::Block& block = take_block(lock);
    const rma::Transfer all{place.offset, 0, static_cast<std::uint32_t>(bytes)};
    const Move read{&block, {&all, 1}};
    acquire_and_read(lock, peer, {&read, 1});
    std::memcpy(result, block.memory, bytes);
    const bool swaps = std::memcmp(block.memory, comparand, bytes) == 0;
    if (swaps) std::memcpy(block.memory, value, bytes);
    const Move write{&block, {&all, swaps ? std::size_t{1} : 0}};
    write_and_release(lock, peer, {&write, 1});
    drop(block);
}

}  // namespace coop::osc
