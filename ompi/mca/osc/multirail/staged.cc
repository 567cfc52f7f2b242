// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets of passive epochs by RDMA through staging memory: short ones, and those of several blocks. The target does
// nothing. Of writes, the last one waits until the next flush or until a write elsewhere, so that writes to neighbouring
// bytes become one; a read covers gaps between the blocks of a get where they are dense (coop/rma/cover.h).
#include <memory>
#include <utility>

#include "diagnose.h"
#include "staged.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {

void Window::drop(Staging::Block& block) noexcept {
    if (--block.refs == 0) process.staging.give(block);
}

// Other peers, also those of other windows, may have open blocks that nobody is going to close soon. So after some rounds
// more memory is registered.
Staging::Block& Window::take_block(Lock& lock) {
    constexpr int kRounds = 64;
    for (int round = 0;; ++round) {
        if (Staging::Block* const block = process.staging.take(round >= kRounds)) return *block;
        if (round == 0) {
            process.count(Count::kWaits);
            const std::vector<Peer*> peers = touched_;
            for (Peer* const each : peers) close_block(lock, *each);
        } else {
            lock.unlock();
            opal_progress();
            lock.lock();
        }
    }
}

Staging::Block& Window::open_block(Lock& lock, Peer& peer) {
    while (!peer.staged || peer.staged->used == Staging::kBlockBytes) {
        close_block(lock, peer);
        Staging::Block& block = take_block(lock);
        if (peer.staged) drop(block);  // of another thread
        else peer.staged = &block;
    }
    touch(peer);
    return *peer.staged;
}

void Window::close_block(Lock& lock, Peer& peer) {
    Staging::Block* const block = std::exchange(peer.staged, nullptr);
    start_pending(lock, peer);
    if (block) drop(*block);
}

void Window::start_pending(Lock& lock, Peer& peer) {
    Staging::Block* const block = std::exchange(peer.pending_block, nullptr);
    if (!block) return;
    start_part(lock, true, peer.pending, std::make_unique<StagedPart>(*this, peer, *block));
    drop(*block);
}

void Window::start_part(Lock& lock, bool puts, const rma::Transfer& transfer, std::unique_ptr<StagedPart> part) {
    Peer& peer = part->peer;
    Staging::Block& block = part->block;
    touch(peer);
    part->generation = peer.operations.begin();
    ++block.refs;
    lock.unlock();
    const int rc = start_rdma(peer, puts, block.memory + transfer.at, block.handle, transfer.offset, transfer.bytes,
                              on_staged_done, part.get());
    if (rc != OMPI_SUCCESS) transport_failed(*rdma_, puts ? "put" : "get", rc);
    part.release();  // on_staged_done() owns it
    lock.lock();
}

void Window::on_staged_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                            mca_btl_base_registration_handle_t*, void*, void* data, int status) {
    const async::Polling turn(handler().get());
    if (status != OMPI_SUCCESS) transport_failed(*btl, "RDMA", status);
    auto* const part = static_cast<StagedPart*>(data);
    part->window.end_staged(part);
}

void Window::end_staged(StagedPart* ended) noexcept {
    const std::unique_ptr<StagedPart> part(ended);
    RequestList done;
    {
        const std::lock_guard lock(mutex_);
        if (Result* const result = part->result) {
            std::uint64_t position = part->position;
            for (const rma::Piece& piece : part->pieces) {
                result->put(position, part->block.memory + piece.at, piece.bytes);
                position += piece.bytes;
            }
            result->missing -= position - part->position;
            if (result->missing == 0) end_result(result, done);
        }
        if (part->missing) --*part->missing;
        drop(part->block);
        part->peer.operations.end(part->generation);
    }
    complete_all(done);
}

void Window::put_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout) {
    Packer packer(origin);
    rma::Cover cover;
    for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
        Staging::Block& block = open_block(lock, peer);
        const std::uint32_t at = block.used;
        block.used += cover.take(cursor, at, Staging::kBlockBytes - at, false);
        packer.take(block.memory + at, cover.bytes());
        ++block.refs;
        for (const rma::Transfer& each : cover.transfers()) {
            if (peer.pending_block == &block && peer.pending.offset + peer.pending.bytes == each.offset &&
                peer.pending.at + peer.pending.bytes == each.at) {
                peer.pending.bytes += each.bytes;
                process.count(Count::kMerged);
                continue;
            }
            start_pending(lock, peer);
            // Another thread may have left one meanwhile.
            if (peer.pending_block) {
                start_part(lock, true, each, std::make_unique<StagedPart>(*this, peer, block));
                continue;
            }
            peer.pending = each;
            peer.pending_block = &block;
            ++block.refs;
        }
        drop(block);
    }
}

void Window::get_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request) {
    Result& result = new_result(lock, peer, origin, nullptr, layout.bytes(), request);
    rma::Cover cover;
    std::uint64_t position = 0;
    for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
        Staging::Block& block = open_block(lock, peer);
        block.used += cover.take(cursor, block.used, Staging::kBlockBytes - block.used, true);
        ++block.refs;
        std::span<const rma::Piece> pieces = cover.pieces();
        for (const rma::Transfer& each : cover.transfers()) {
            auto part = std::make_unique<StagedPart>(*this, peer, block);
            part->result = &result;
            part->position = position;
            for (; !pieces.empty() && pieces.front().at < each.at + each.bytes; pieces = pieces.subspan(1)) {
                part->pieces.push_back(pieces.front());
                position += pieces.front().bytes;
            }
            start_part(lock, false, each, std::move(part));
        }
        drop(block);
    }
}

}  // namespace coop::osc
