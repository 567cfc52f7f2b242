// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets of passive epochs by RDMA through staging memory: short ones, and those of several blocks. The CPU of
// the target does nothing.
//
// An operation starts at once if no other one is under way to the same process. While one is, those that follow wait in
// two parts, one of writes and one of reads; the transport posts a part in few lists. Neighbours become one transfer: a
// write grows by writes to the bytes behind it, a read by reads of bytes close behind it
// (coop/rma/cover.h).
//
//     put_block(), get_block(), … ─► part that waits ─► start_part() ─► transport ─► on_staged_done() ─► end_staged()
//         started: by put_staged() and get_staged() if none is under way, by end_staged() when the last one has ended,
//         by part_for() when it is full, and by close_block(): flush, unlock, a full block, no free block in any window
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "diagnose.h"
#include "staged.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

constexpr std::size_t kMostFreeParts = 64;

}  // namespace

Peer::Peer(std::uint32_t of, mca_bml_base_btl_t* packets, mca_btl_base_endpoint_t* for_rdma) noexcept
    : rank(of), btl(packets), rdma(for_rdma) {}
Peer::~Peer() = default;

void Window::drop(Staging::Block& block) noexcept {
    if (--block.refs == 0) process.staging.give(block);
}

// If no block is free, peers may hold open ones that no call is going to close soon. Staging::want() makes
// poll_windows() (frames.cc) close them in all windows; if that does not free one, more memory is registered.
Staging::Block& Window::take_block(Lock& lock) {
    constexpr int kRounds = 64, kMostRefusals = 1 << 16;
    if (Staging::Block* const block = process.staging.take()) return *block;
    process.count(Count::kWaits);
    lock.unlock();
    Staging::Block* block = nullptr;
    for (int round = 0, refusals = 0; !block; ++round) {
        process.staging.want();
        opal_progress();
        block = process.staging.take();
        if (!block && round >= kRounds) block = process.staging.take_more();
        if (process.transfers.load(std::memory_order_relaxed) > 0) refusals = 0;  // they hold blocks, and may be slow
        else if (!block && ++refusals >= kMostRefusals)
            out_of_memory("registered memory for one-sided transfers (limit of locked memory)");
    }
    lock.lock();
    return *block;
}

Staging::Block& Window::open_block(Lock& lock, Peer& peer, std::uint32_t room) {
    wait_for_room(lock, peer);
    while (!peer.staged || peer.staged->used + room > Staging::kBlockBytes) {
        close_block(lock, peer);
        Staging::Block& block = take_block(lock);
        if (peer.staged) drop(block);  // another thread was faster
        else peer.staged = &block;
    }
    note_open(peer);
    touch(peer);
    return *peer.staged;
}

void Window::note_open(Peer& peer) noexcept {
    if (!peer.by_block.linked()) open_blocks_.push_back(&peer);
}

void Window::close_block(Lock& lock, Peer& peer) {
    Staging::Block* const block = std::exchange(peer.staged, nullptr);
    start_waiting_parts(lock, peer);
    if (block) drop(*block);
    if (peer.by_block.linked() && !peer.staged && !peer.has_waiting_part()) open_blocks_.remove(&peer);
}

// Peers whose blocks other threads open meanwhile have a later turn.
void Window::close_blocks() {
    Lock lock(mutex_);
    for (Peer* const last = open_blocks_.back(); Peer* const each = last ? open_blocks_.pop_front() : nullptr;) {
        close_block(lock, *each);
        if (each->staged || each->has_waiting_part()) note_open(*each);
        if (each == last) break;
    }
}

// The block stays open for the next operation, because programs often flush after each one.
void Window::finish_rdma(Lock& lock, Peer& peer, bool remote) {
    start_waiting_parts(lock, peer);
    if (remote || peer.fetches()) execute_queued(lock, peer);
    if (remote) read_behind(lock, peer);
    if (peer.operations.idle() && peer.writes.idle()) return;
    const Generations::Number operations = peer.operations.close(), writes = peer.writes.close();
    wait_for(lock, [&] { return peer.operations.is_over(operations) && peer.writes.is_over(writes); });
}

// --- parts ----------------------------------------------------------------------------------------------------------

void DeletePart::operator()(StagedPart* part) const noexcept { delete part; }

StagedPartPtr Window::new_part(Peer& peer, Staging::Block& block, bool puts) {
    StagedPartPtr part;
    if (free_parts_.empty()) {
        free_parts_.reserve(kMostFreeParts);
        part.reset(new StagedPart{*this});
        part->transfers.reserve(kMostPieces);
    } else {
        part = std::move(free_parts_.back());
        free_parts_.pop_back();
    }
    part->peer = &peer;
    part->block = &block;
    part->puts = puts;
    ++block.refs;
    return part;
}

void Window::give_back(StagedPartPtr part) noexcept {
    if (free_parts_.size() == kMostFreeParts) return;
    part->transfers.clear();
    part->pieces.clear();
    part->missing = nullptr;
    part->beside_atomics = false;
    free_parts_.push_back(std::move(part));
}

void Window::start_part(Lock& lock, StagedPartPtr part) {
    Peer& peer = *part->peer;
    touch(peer);
    const bool is_write = part->puts && !part->beside_atomics;
    // The first put under a lock takes the queue pair of the release, which may show then that it is visible (passive.cc).
    const bool is_first = is_write && peer.lock == Peer::Lock::kHeld && peer.under_lock.none() && by_hcas() &&
                          part->transfers.size() == 1 && extension_->atomics_keep_order(rdma_, peer.rdma);
    peer.unread_writes = peer.unread_writes || is_write;
    part->generation = peer.operations.begin();
    ++peer.staged_parts;
    const auto number = add_transfer(peer);
    lock.unlock();
    // Nobody else knows the part.
    std::span<RdmaPiece> transfers = part->transfers;
    const RdmaPiece& first = transfers.front();
    const int rc = transfers.size() == 1
                       ? start_rdma(peer, part->puts, first.local_address, part->block->handle, first.remote_address,
                                    first.bytes, on_staged_done, part.get(), part->beside_atomics || is_first)
                       : start_pieces(peer, part->puts, transfers, part->block->handle, on_staged_done, part.get());
    if (rc != OMPI_SUCCESS) transport_failed(*rdma_, "RDMA", rc);
    part.release();  // on_staged_done() owns it
    lock.lock();
    if (is_write) peer.unread_writes = true;  // another thread may have read behind the writes before this one
    if (is_first) peer.under_lock.is_in_order(number);
}

// A write that one HCA has acknowledged may become visible to another one, and to the CPU, a little later; when a read
// through the same HCA has ended, it is. What waits for the operations of the peer waits for the read, too.
void Window::read_behind(Lock& lock, Peer& peer) {
    if (!std::exchange(peer.unread_writes, false) || !process.config.read_behind) return;
    if (!extension_->needs_read_behind(rdma_, peer.rdma, peer.read_since)) return;
    if (!process.staging.open(*rdma_)) return;  // no memory for the reads: the acknowledgements have to do
    // Before the mutex is released: other threads that flush now wait for this read.
    const Generations::Number generation = peer.operations.begin();
    if (!read_bytes_) {
        Staging::Block& taken = take_block(lock);
        if (read_bytes_) drop(taken);  // another thread was faster
        else read_bytes_ = &taken;
    }
    StagedPartPtr part = new_part(peer, *read_bytes_, false);
    part->generation = generation;
    ++peer.staged_parts;
    add_transfer(peer);
    std::uint64_t since = peer.read_since;
    lock.unlock();
    const Card& card = cards_[peer.rank];
    auto* const remote = reinterpret_cast<mca_btl_base_registration_handle_t*>(const_cast<std::byte*>(card.handle));
    const bool reads = extension_->read_behind(rdma_, peer.rdma, read_bytes_->memory, card.base, read_bytes_->handle,
                                               remote, since, on_staged_done, part.get());
    if (reads) process.count(Count::kReadsBehind);
    if (reads) part.release();  // on_staged_done() owns it
    else end_staged(std::move(part));
    lock.lock();
    peer.read_since = std::max(peer.read_since, since);  // another thread may have read behind later writes
}

void Window::start_waiting_part(Lock& lock, Peer& peer, bool puts) {
    if (StagedPartPtr& part = peer.waiting_part(puts)) start_part(lock, std::move(part));
}

void Window::start_waiting_parts(Lock& lock, Peer& peer) {
    start_waiting_part(lock, peer, true);
    start_waiting_part(lock, peer, false);
}

// The part that waits and has room for one more transfer of the block. Starts one that has none.
StagedPart& Window::part_for(Lock& lock, Peer& peer, Staging::Block& block, bool puts) {
    StagedPartPtr& waiting = peer.waiting_part(puts);
    // Another thread may leave one.
    while (waiting && (waiting->block != &block || waiting->is_full())) start_waiting_part(lock, peer, puts);
    if (!waiting) waiting = new_part(peer, block, puts);
    note_open(peer);
    touch(peer);
    return *waiting;
}

void Window::on_staged_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                            mca_btl_base_registration_handle_t*, void*, void* data, int status) {
    const async::Polling turn(handler().get());
    if (status != OMPI_SUCCESS) transport_failed(*btl, "RDMA", status);
    auto* const part = static_cast<StagedPart*>(data);
    part->window.end_staged(StagedPartPtr(part));
}

void Window::deliver(const StagedPart& part, RequestList& done) noexcept {
    for (const auto& [to, result, request, position, piece] : part.pieces) {
        const std::byte* const data = part.block->memory + piece.at;
        if (to) {
            std::memcpy(to, data, piece.bytes);
            if (request && --request->parts == 0) done.push_back(request);
            continue;
        }
        result->put(position, data, piece.bytes);
        result->missing -= piece.bytes;
        if (result->missing == 0) end_result(result, done);
    }
}

void Window::end_staged(StagedPartPtr part) noexcept {
    Peer& peer = *part->peer;
    RequestList done;
    {
        Lock lock(mutex_);
        deliver(*part, done);
        if (part->missing) --*part->missing;
        if (Staging::Block& block = *part->block; &block == peer.staged && block.refs == 2) block.used = 0;
        drop(*part->block);
        end_transfer(peer);
        // The operations that wait begin before this one ends: somebody may wait for the end of all.
        if (--peer.staged_parts == 0) start_waiting_parts(lock, peer);
        peer.operations.end(part->generation);
        give_back(std::move(part));
    }
    complete_all(done);
}

// --- puts -----------------------------------------------------------------------------------------------------------

void Window::add_write(Lock& lock, Peer& peer, Staging::Block& block, const rma::Transfer& transfer) {
    if (StagedPart* const waiting = peer.waiting_part(true).get(); waiting && waiting->block == &block) {
        RdmaPiece& last = waiting->transfers.back();
        if (waiting->end() == transfer.at && last.remote_address + last.bytes == transfer.offset) {
            last.bytes += transfer.bytes;
            return process.count(Count::kMerged);
        }
    }
    part_for(lock, peer, block, true).add(transfer);
}

void Window::put_block(Lock& lock, Peer& peer, const std::byte* from, const rma::Block& to) {
    const auto bytes = static_cast<std::uint32_t>(to.bytes);
    Staging::Block& block = open_block(lock, peer, bytes);
    const std::uint32_t at = block.used;
    block.used += bytes;
    std::memcpy(block.memory + at, from, bytes);
    ++block.refs;
    add_write(lock, peer, block, {to.offset, at, bytes});
    drop(block);
}

void Window::put_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout) {
    const std::byte* const from = origin.contiguous();
    if (const auto single = layout.single(); from && single && single->bytes <= Staging::kBlockBytes) {
        put_block(lock, peer, from, *single);
    } else {
        Packer packer(origin);
        rma::Cover cover;
        for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
            Staging::Block& block = open_block(lock, peer, 1);
            const std::uint32_t at = block.used;
            block.used += cover.take(cursor, at, Staging::kBlockBytes - at, false);
            packer.take(block.memory + at, cover.bytes());
            ++block.refs;
            for (const rma::Transfer& each : cover.transfers()) add_write(lock, peer, block, each);
            drop(block);
        }
    }
    if (peer.staged_parts == 0) start_waiting_parts(lock, peer);
}

// --- gets -----------------------------------------------------------------------------------------------------------

// How far behind the last read that waits a read of `first` may go, so that both become one; nothing: it cannot.
std::optional<std::uint32_t> Window::gap_to(Peer& peer, const Staging::Block& block, const rma::Block& first) const {
    const StagedPart* const before = peer.waiting_part(false).get();
    if (!before || before->block != &block) return std::nullopt;
    const RdmaPiece& last = before->transfers.back();
    const std::uint64_t end = last.remote_address + last.bytes;
    if (before->end() != block.used || first.offset < end) return std::nullopt;
    const std::uint64_t gap = first.offset - end;
    if (gap + first.bytes > Staging::kBlockBytes - block.used) return std::nullopt;
    if ((before->wanted + first.bytes) * rma::Cover::kDensity < last.bytes + gap + first.bytes) return std::nullopt;
    return static_cast<std::uint32_t>(gap);
}

// A read, or if there is a gap, the continuation of the last one behind it. The caller adds the pieces.
StagedPart& Window::add_read(Lock& lock, Peer& peer, Staging::Block& block, const rma::Transfer& transfer,
                             std::optional<std::uint32_t> gap) {
    if (gap) {
        StagedPart& part = *peer.waiting_part(false);
        part.transfers.back().bytes += *gap + transfer.bytes;
        process.count(Count::kMerged);
        return part;
    }
    StagedPart& part = part_for(lock, peer, block, false);
    part.add(transfer);
    return part;
}

void Window::get_block(Lock& lock, Peer& peer, std::byte* to, const rma::Block& from, Request* request) {
    const auto bytes = static_cast<std::uint32_t>(from.bytes);
    Staging::Block& block = open_block(lock, peer, bytes);
    const auto gap = gap_to(peer, block, from);
    const std::uint32_t at = block.used + gap.value_or(0);
    block.used = at + bytes;
    ++block.refs;
    add_read(lock, peer, block, {from.offset, at, bytes}, gap).take({to, nullptr, request, 0, {at, bytes}});
    drop(block);
}

void Window::get_blocks(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request) {
    Result& result = new_result(lock, peer, origin, nullptr, layout.bytes(), request);
    rma::Cover cover;
    std::uint64_t position = 0;
    for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
        Staging::Block& block = open_block(lock, peer, 1);
        rma::RunCursor ahead = cursor;
        auto gap = gap_to(peer, block, ahead.next(UINT64_MAX));
        block.used += gap.value_or(0);
        block.used += cover.take(cursor, block.used, Staging::kBlockBytes - block.used, true);
        ++block.refs;
        std::span<const rma::Piece> pieces = cover.pieces();
        for (const rma::Transfer& each : cover.transfers()) {
            StagedPart& part = add_read(lock, peer, block, each, std::exchange(gap, std::nullopt));
            for (; !pieces.empty() && pieces.front().at < each.at + each.bytes; pieces = pieces.subspan(1)) {
                part.take({nullptr, &result, nullptr, position, pieces.front()});
                position += pieces.front().bytes;
            }
        }
        drop(block);
    }
}

void Window::get_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request) {
    std::byte* const to = origin.contiguous();
    if (const auto single = layout.single(); to && single && single->bytes <= Staging::kBlockBytes)
        get_block(lock, peer, to, *single, request);
    else get_blocks(lock, peer, origin, layout, request);
    // The program may wait for the request without any flush.
    if (request) start_waiting_part(lock, peer, false);
    if (peer.staged_parts == 0) start_waiting_parts(lock, peer);
}

}  // namespace coop::osc
