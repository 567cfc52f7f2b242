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

// A transfer under way; the last part to end destroys it.
struct Direct {
    Window& window;
    Peer& peer;
    mca_btl_base_module_t& btl;
    mca_btl_base_registration_handle_t* local;  // null: the transport needs none
    Generations::Number generation;
    Request* request;
    std::uint32_t parts = 1;  // those under way, and transfer() itself; guarded by the mutex
};

namespace {

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

void Window::end_part(Direct* direct) noexcept {
    RequestList done;
    bool last;
    {
        const std::lock_guard lock(mutex_);
        last = --direct->parts == 0;
        if (last) {
            direct->peer.operations.end(direct->generation);
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
    direct->window.end_part(direct);
}

int Window::start_rdma(Peer& peer, bool puts, std::byte* local, mca_btl_base_registration_handle_t* handle,
                       std::uint64_t offset, std::uint64_t bytes, mca_btl_base_rdma_completion_fn_t done, void* context,
                       bool beside_atomics) {
    const Card& card = cards_[peer.rank];
    auto* const remote = reinterpret_cast<mca_btl_base_registration_handle_t*>(const_cast<std::byte*>(card.handle));
    const auto start = puts ? extension_->put : extension_->get;
    // The program may compute until it synchronizes.
    const RdmaOptions options{.now = true, .beside_atomics = beside_atomics};
    for (;;) {
        const bool busy = process.faults.hit(puts ? Fault::kPutBusy : Fault::kGetBusy);
        const int rc = busy ? OMPI_ERR_OUT_OF_RESOURCE
                            : start(rdma_, peer.rdma, local, card.base + offset, handle, remote, bytes, options, done,
                                    context);
        if (rc == OMPI_SUCCESS) process.count(Count::kRdma);
        if (!is_shortage(rc)) return rc;
        process.count(Count::kWaits);
        opal_progress();
    }
}

std::uint64_t Window::transfer(Lock& lock, Peer& peer, bool puts, std::byte* local, rma::RunCursor& cursor,
                               std::uint64_t bytes, Request* request) {
    Faults& faults = process.faults;
    if (faults.hit(puts ? Fault::kPut : Fault::kGet)) return 0;
    touch(peer);
    auto direct = std::unique_ptr<Direct>(new Direct{*this, peer, *rdma_, nullptr, peer.operations.begin(), request});
    if (request) ++request->parts;
    lock.unlock();

    if (!faults.hit(Fault::kRegister))
        direct->local = rdma_->btl_register_mem(rdma_, peer.rdma, local, bytes, puts ? kRead : kWritten);
    std::uint64_t done = 0;
    if (!direct->local) process.count(Count::kRefusedRegistrations);
    while (direct->local && done < bytes) {
        rma::RunCursor ahead = cursor;
        const rma::Block block = ahead.next(limit_of(*rdma_, puts));
        {
            const std::lock_guard guard(mutex_);
            ++direct->parts;
        }
        if (start_rdma(peer, puts, local + done, direct->local, block.offset, block.bytes, on_rdma_done,
                       direct.get()) != OMPI_SUCCESS) {
            const std::lock_guard guard(mutex_);
            --direct->parts;
            break;
        }
        done += block.bytes;
        cursor = ahead;
    }
    end_part(direct.release());
    lock.lock();
    return done;
}

}  // namespace coop::osc
