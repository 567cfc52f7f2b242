// SPDX-License-Identifier: BSD-3-Clause
//
// RDMA reads and writes between the memory of the origin and that of a window.
#include <algorithm>
#include <memory>

#include "diagnose.h"
#include "waiting.h"
#include "window.h"
#include "ompi/mca/shim/codes.h"

namespace coop::osc {

// One put or get under way, as RDMA operations (parts). The last part that ends destroys it.
struct Direct {
    Window& window;
    Peer& peer;
    mca_btl_base_module_t& btl;
    mca_btl_base_registration_handle_t* local;  // of the origin's memory; null: the transport refused
    const bool puts;
    Generations::Number generation;
    Request* request;
    std::uint32_t parts = 1;  // under way, plus one for transfer() itself; guarded by the mutex
};

namespace {

// Transfers under way: to one process, and to all. Each costs about 4 KiB, here and in the transport.
constexpr std::uint32_t kMostToOne = 256, kMostOfAll = 1024;
// What HCAs do with the program's memory. Others get no access to it; a put may come from memory that is read only.
constexpr std::uint32_t kRead = 0, kWritten = MCA_BTL_REG_FLAG_LOCAL_WRITE;

std::uint64_t limit_of(const mca_btl_base_module_t& btl, bool puts) noexcept {
    const std::size_t limit = puts ? btl.btl_put_limit : btl.btl_get_limit;
    return limit > 0 ? limit : UINT64_MAX;
}

}  // namespace

bool Window::suits_rdma(const mca_btl_base_module_t& btl) noexcept {
    constexpr std::uint32_t kNeeded = MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET;
    return (btl.btl_flags & kNeeded) == kNeeded && btl.btl_put && btl.btl_get && btl.btl_register_mem &&
           btl.btl_registration_handle_size <= kMaxHandleBytes && btl.btl_put_alignment <= 1 &&
           btl.btl_get_alignment <= 1;
}

rma::TransfersUnderLock::Number Window::add_transfer(Peer& peer) noexcept {
    ++peer.transfers;
    process.transfers.fetch_add(1, std::memory_order_relaxed);
    return peer.under_lock.begin();
}

void Window::end_transfer(Peer& peer) noexcept {
    --peer.transfers;
    process.transfers.fetch_sub(1, std::memory_order_relaxed);
}

void Window::wait_for_room(Lock& lock, const Peer& peer) {
    const auto has_room = [&] {
        return peer.transfers < kMostToOne && process.transfers.load(std::memory_order_relaxed) < kMostOfAll;
    };
    if (has_room()) [[likely]]
        return;
    process.count(Count::kWaits);
    wait_for(lock, has_room);
}

void Window::end_part(Direct* direct, bool was_transfer) noexcept {
    RequestList done;
    bool last;
    {
        const std::lock_guard lock(mutex_);
        if (was_transfer) end_transfer(direct->peer);
        last = --direct->parts == 0;
        if (last) {
            (direct->puts ? direct->peer.writes : direct->peer.operations).end(direct->generation);
            if (direct->request && --direct->request->parts == 0) done.push_back(direct->request);
        }
    }
    if (!last) return;
    if (direct->local) direct->btl.btl_deregister_mem(&direct->btl, direct->local);
    delete direct;
    complete_all(done);
}

void Window::on_rdma_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                          mca_btl_base_registration_handle_t*, void*, void* data, int status) {
    const async::Polling turn(handler().get());
    if (status != OMPI_SUCCESS) transport_failed(*btl, "RDMA", status);
    auto* const direct = static_cast<Direct*>(data);
    direct->window.end_part(direct, true);
}

template <class F>
int Window::start_when_possible(bool puts, F start) {
    for (;;) {
        const bool busy = process.faults.hit(puts ? Fault::kPutBusy : Fault::kGetBusy);
        const int rc = busy ? OMPI_ERR_OUT_OF_RESOURCE : start();
        if (!is_shortage(rc)) return rc;
        process.count(Count::kWaits);
        opal_progress();
    }
}

int Window::start_rdma(Peer& peer, bool puts, std::byte* local, mca_btl_base_registration_handle_t* handle,
                       std::uint64_t offset, std::uint64_t bytes, mca_btl_base_rdma_completion_fn_t done, void* context,
                       bool beside_atomics) {
    const Card& card = cards_[peer.rank];
    auto* const remote = reinterpret_cast<mca_btl_base_registration_handle_t*>(const_cast<std::byte*>(card.handle));
    const auto start = puts ? extension_->put : extension_->get;
    // Post now: the program may compute, without calling MPI, until it synchronizes.
    const RdmaOptions options{.now = true, .beside_atomics = beside_atomics};
    const int rc = start_when_possible(puts, [&] {
        return start(rdma_, peer.rdma, local, card.base + offset, handle, remote, bytes, options, done, context);
    });
    if (rc == OMPI_SUCCESS) process.count(Count::kRdma);
    return rc;
}

int Window::start_pieces(Peer& peer, bool puts, std::span<RdmaPiece> pieces, mca_btl_base_registration_handle_t* handle,
                         mca_btl_base_rdma_completion_fn_t done, void* context) {
    const Card& card = cards_[peer.rank];
    auto* const remote = reinterpret_cast<mca_btl_base_registration_handle_t*>(const_cast<std::byte*>(card.handle));
    const std::size_t count = pieces.size();
    for (RdmaPiece& piece : pieces) piece.remote_address += card.base;
    const int rc = start_when_possible(puts, [&] {
        return extension_->transfer_pieces(rdma_, peer.rdma, puts, pieces.data(), count, handle, remote, done, context);
    });
    if (rc == OMPI_SUCCESS) {
        process.count(Count::kRdma, count);
        process.count(Count::kLists);
    }
    return rc;
}

std::uint64_t Window::transfer(Lock& lock, Peer& peer, bool puts, const OriginBlocks& origin, rma::RunCursor& here,
                               rma::RunCursor& there, Request* request) {
    Faults& faults = process.faults;
    if (faults.hit(puts ? Fault::kPut : Fault::kGet)) return 0;
    touch(peer);
    auto direct = std::unique_ptr<Direct>(
        new Direct{*this, peer, *rdma_, nullptr, puts, (puts ? peer.writes : peer.operations).begin(), request});
    peer.wrote = peer.wrote || puts;
    peer.unread_writes = peer.unread_writes || puts;
    if (request) ++request->parts;
    lock.unlock();

    if (!faults.hit(Fault::kRegister))
        direct->local = rdma_->btl_register_mem(rdma_, peer.rdma, reinterpret_cast<void*>(origin.first), origin.span,
                                                puts ? kRead : kWritten);
    std::uint64_t done = 0;
    if (!direct->local) process.count(Count::kRefusedRegistrations);
    while (direct->local && !here.at_end()) {
        rma::RunCursor ahead = here, ahead_there = there;
        const rma::Block block = ahead_there.next(std::min(limit_of(*rdma_, puts), here.left_of_block()));
        auto* const local = reinterpret_cast<std::byte*>(ahead.next(block.bytes).offset);
        lock.lock();
        wait_for_room(lock, peer);
        add_transfer(peer);
        ++direct->parts;
        lock.unlock();
        if (start_rdma(peer, puts, local, direct->local, block.offset, block.bytes, on_rdma_done, direct.get()) !=
            OMPI_SUCCESS) {
            const std::lock_guard guard(mutex_);
            end_transfer(peer);
            --direct->parts;
            break;
        }
        done += block.bytes;
        here = ahead;
        there = ahead_there;
    }
    const bool is_registered = direct->local != nullptr;
    end_part(direct.release(), false);
    lock.lock();
    if (!is_registered) refusals_.add(origin.first, origin.span);
    peer.unread_writes = peer.unread_writes || puts;  // another thread may have read behind the writes before these
    return done;
}

}  // namespace coop::osc
