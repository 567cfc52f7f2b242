// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets of passive epochs by RDMA through staging memory: short ones, and those of several blocks. The target does
// nothing.
//
// An operation starts at once if no other one is under way to the same process. While one is, the next one waits and
// grows: a write by writes to the bytes behind it, a read by reads of bytes close behind it (coop/rma/cover.h). It starts
// when the one before has ended, when the next operation cannot join it, or with a flush.
#include <memory>
#include <utility>

#include "diagnose.h"
#include "staged.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {

Peer::Peer(std::uint32_t of, mca_bml_base_btl_t* packets, mca_btl_base_endpoint_t* for_rdma) noexcept
    : rank(of), btl(packets), rdma(for_rdma) {}
Peer::~Peer() = default;  // here, where StagedPart is known

void Window::drop(Staging::Block& block) noexcept {
    if (--block.refs == 0) process.staging.give(block);
}

// Other peers may have open blocks that nobody is going to close soon. So this process's windows close theirs
// (frames.cc), and if that does not help, more memory is registered.
Staging::Block& Window::take_block(Lock& lock) {
    constexpr int kRounds = 64, kMostRefusals = 1 << 16;
    if (Staging::Block* const block = process.staging.take()) return *block;
    process.count(Count::kWaits);
    lock.unlock();
    Staging::Block* block = nullptr;
    for (int round = 0; !block; ++round) {
        process.staging.want();
        opal_progress();
        block = process.staging.take();
        if (!block && round >= kRounds) block = process.staging.take_more();
        if (!block && round >= kMostRefusals)
            out_of_memory("registered memory for one-sided transfers (limit of locked memory)");
    }
    lock.lock();
    return *block;
}

Staging::Block& Window::open_block(Lock& lock, Peer& peer) {
    while (!peer.staged || peer.staged->used >= Staging::kBlockBytes) {
        close_block(lock, peer);
        Staging::Block& block = take_block(lock);
        if (peer.staged) drop(block);  // another thread was faster
        else peer.staged = &block;
    }
    touch(peer);
    return *peer.staged;
}

void Window::close_block(Lock& lock, Peer& peer) {
    Staging::Block* const block = std::exchange(peer.staged, nullptr);
    start_waiting_part(lock, peer);
    if (block) drop(*block);
}

void Window::close_blocks() {
    Lock lock(mutex_);
    const std::vector<Peer*> peers = touched_;
    for (Peer* const each : peers) close_block(lock, *each);
}

void Window::start_waiting_part(Lock& lock, Peer& peer) {
    if (peer.waiting_part) start_part(lock, std::move(peer.waiting_part));
}

void Window::start_part(Lock& lock, std::unique_ptr<StagedPart> part) {
    Peer& peer = part->peer;
    touch(peer);
    part->generation = peer.operations.begin();
    ++peer.staged_parts;
    lock.unlock();
    const rma::Transfer& transfer = part->transfer;  // nobody else knows the part
    const int rc = start_rdma(peer, part->puts, part->block.memory + transfer.at, part->block.handle, transfer.offset,
                              transfer.bytes, on_staged_done, part.get(), part->beside_atomics);
    if (rc != OMPI_SUCCESS) transport_failed(*rdma_, "RDMA", rc);
    part.release();  // on_staged_done() owns it
    lock.lock();
}

// Starts it, or lets it wait for more. Another thread may have left one that waits.
void Window::add_part(Lock& lock, std::unique_ptr<StagedPart> part) {
    Peer& peer = part->peer;
    while (peer.waiting_part) start_waiting_part(lock, peer);
    if (peer.staged_parts == 0) return start_part(lock, std::move(part));
    touch(peer);
    peer.waiting_part = std::move(part);
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
    Peer& peer = part->peer;
    RequestList done;
    {
        Lock lock(mutex_);
        for (const auto& [result, position, piece] : part->pieces) {
            result->put(position, part->block.memory + piece.at, piece.bytes);
            result->missing -= piece.bytes;
            if (result->missing == 0) end_result(result, done);
        }
        if (part->missing) --*part->missing;
        drop(part->block);
        // The operation that waits begins before this one ends: somebody may wait for the end of all.
        if (--peer.staged_parts == 0) start_waiting_part(lock, peer);
        peer.operations.end(part->generation);
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
            StagedPart* const before = peer.waiting_part.get();
            if (before && before->puts && &before->block == &block &&
                before->transfer.offset + before->transfer.bytes == each.offset &&
                before->transfer.at + before->transfer.bytes == each.at) {
                before->transfer.bytes += each.bytes;
                process.count(Count::kMerged);
                continue;
            }
            auto part = std::make_unique<StagedPart>(*this, peer, block);
            part->puts = true;
            part->transfer = each;
            add_part(lock, std::move(part));
        }
        drop(block);
    }
}

// How far behind the read that waits a read of `first` may go, so that both become one; nothing: it cannot.
std::optional<std::uint32_t> Window::gap_to(const Peer& peer, const Staging::Block& block,
                                            const rma::Block& first) const {
    const StagedPart* const before = peer.waiting_part.get();
    if (!before || before->puts || &before->block != &block) return std::nullopt;
    const rma::Transfer& transfer = before->transfer;
    const std::uint64_t end = transfer.offset + transfer.bytes;
    if (transfer.at + transfer.bytes != block.used || first.offset < end) return std::nullopt;
    const std::uint64_t gap = first.offset - end;
    if (gap + first.bytes > Staging::kBlockBytes - block.used) return std::nullopt;
    if ((before->wanted + first.bytes) * rma::Cover::kDensity < transfer.bytes + gap + first.bytes) return std::nullopt;
    return static_cast<std::uint32_t>(gap);
}

void Window::get_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request) {
    Result& result = new_result(lock, peer, origin, nullptr, layout.bytes(), request);
    rma::Cover cover;
    std::uint64_t position = 0;
    for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
        Staging::Block& block = open_block(lock, peer);
        rma::RunCursor ahead = cursor;
        const auto gap = gap_to(peer, block, ahead.next(UINT64_MAX));
        block.used += gap.value_or(0);
        block.used += cover.take(cursor, block.used, Staging::kBlockBytes - block.used, true);
        ++block.refs;
        std::span<const rma::Piece> pieces = cover.pieces();
        bool joins = gap.has_value();
        for (const rma::Transfer& each : cover.transfers()) {
            std::unique_ptr<StagedPart> part;
            StagedPart* to = peer.waiting_part.get();
            if (joins) {
                to->transfer.bytes += *gap + each.bytes;
                process.count(Count::kMerged);
            } else {
                part = std::make_unique<StagedPart>(*this, peer, block);
                part->transfer = each;
                to = part.get();
            }
            for (; !pieces.empty() && pieces.front().at < each.at + each.bytes; pieces = pieces.subspan(1)) {
                to->pieces.push_back({&result, position, pieces.front()});
                to->wanted += pieces.front().bytes;
                position += pieces.front().bytes;
            }
            joins = false;
            if (part) add_part(lock, std::move(part));
        }
        drop(block);
    }
    // The program may wait for the request alone.
    if (request) start_waiting_part(lock, peer);
}

}  // namespace coop::osc
