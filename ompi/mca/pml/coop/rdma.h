// SPDX-License-Identifier: BSD-3-Clause
//
// RDMA of one message: a row of operations over a range of it. The same code
// serves the gets of a RecvRequest and the puts of a SendRequest; both have
//
//     rdma            the transport                 run         the row
//     registration    ours, where it asks for one   references, advance(), drop()
//     remote_address  of the message's first byte   convertor()
//     remote_handle   the peer's registration
//
// Errors: what a transport refuses for good is left to another protocol, from
// the first failure on.
#pragma once

#include <algorithm>

#include "comm.h"
#include "lifetime.h"
#include "pool.h"

namespace coop::pml {

// One operation in the hands of a transport.
struct RdmaOp {
    opal_free_list_item_t item;
    void* request;       // SendRequest (put) or RecvRequest (get)
    std::size_t offset;  // in the message
};

// The range [begin, end) of a message, moved by operations in rising order,
// `depth` at a time. When one fails, everything from the first failure on is
// left for another protocol: `done_to` is then where that one starts.
struct RdmaRun {
    std::size_t begin = 0, end = 0;
    std::size_t next = 0;                     // first byte not yet asked for
    std::atomic<std::size_t> failed_at{0};    // lowest offset that failed; end: none did
    Count in_flight;

    void start(std::size_t from, std::size_t to) noexcept {
        begin = next = from;
        end = to;
        failed_at.store(to, std::memory_order_relaxed);
        in_flight.start(0);
    }

    void fail(std::size_t offset) noexcept {
        std::size_t seen = failed_at.load(std::memory_order_relaxed);
        while (offset < seen && !failed_at.compare_exchange_weak(seen, offset, std::memory_order_relaxed)) {
        }
    }

    bool failed() const noexcept { return failed_at.load(std::memory_order_relaxed) < end; }
    bool more() const noexcept { return next < end && !failed(); }
    bool drained() const noexcept { return in_flight.now() == 0; }
    std::size_t done_to() const noexcept { return failed_at.load(std::memory_order_relaxed); }

    std::size_t next_bytes(std::size_t transport_limit) const noexcept {
        std::size_t limit = static_cast<std::size_t>(module.config.rdma_chunk);
        if (transport_limit > 0) limit = std::min(limit, transport_limit);
        return std::min(end - next, limit);
    }
};

constexpr bool is_shortage(int rc) noexcept { return rc == OMPI_ERR_OUT_OF_RESOURCE || rc == OMPI_ERR_TEMP_OUT_OF_RESOURCE; }

// Registers `bytes` bytes of the message from `from` on, where the transport
// asks for that. False: it refuses.
template <class Request>
bool open_memory(Request& r, std::size_t from, std::size_t bytes, std::uint32_t access) noexcept {
    if (!r.rdma->btl->btl_register_mem || r.registration) return true;
    if (!module.faults.hit(Fault::kRegister)) {
        void* address;
        opal_convertor_get_offset_pointer(&r.convertor(), from, &address);
        mca_bml_base_register_mem(r.rdma, address, bytes, access, &r.registration);
    }
    if (!r.registration) module.counters.count(Counter::kRetryRegister);
    return r.registration != nullptr;
}

template <class Request>
void close_memory(Request& r) noexcept {
    if (r.registration) mca_bml_base_deregister_mem(r.rdma, r.registration);
    r.registration = nullptr;
}

// The two operations.
struct RdmaKind {
    decltype(&mca_bml_base_put) issue;
    std::size_t mca_btl_base_module_t::*limit;
    Fault refused, busy;
    Counter retries;
};
inline constexpr RdmaKind kPutKind{mca_bml_base_put, &mca_btl_base_module_t::btl_put_limit, Fault::kPut, Fault::kPutBusy, Counter::kRetryPut};
inline constexpr RdmaKind kGetKind{mca_bml_base_get, &mca_btl_base_module_t::btl_get_limit, Fault::kGet, Fault::kGetBusy, Counter::kRetryGet};

template <class Request>
void on_rdma_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*, void*,
                  void* context, int status) {
    auto* op = static_cast<RdmaOp*>(context);
    auto& r = *static_cast<Request*>(op->request);
    if (status != OMPI_SUCCESS) r.run.fail(op->offset);
    give_back(module.rdma_ops, op);
    r.run.in_flight.down();
    advance(r);
    drop(r);
}

// Starts the next operation. Returns what the transport returned.
template <class Request>
int start_rdma(Request& r, const RdmaKind& kind) noexcept {
    if (module.faults.hit(kind.busy)) return OMPI_ERR_OUT_OF_RESOURCE;
    if (module.faults.hit(kind.refused)) return OMPI_ERR_NOT_AVAILABLE;
    auto* op = take<RdmaOp>(module.rdma_ops);
    if (!op) return OMPI_ERR_OUT_OF_RESOURCE;
    const mca_btl_base_module_t& btl = *r.rdma->btl;
    const std::size_t at = r.run.next, bytes = r.run.next_bytes(btl.*kind.limit);
    op->request = &r;
    op->offset = at;

    void* local;
    opal_convertor_get_offset_pointer(&r.convertor(), at, &local);
    auto* handle = btl.btl_registration_handle_size ? reinterpret_cast<mca_btl_base_registration_handle_t*>(r.remote_handle) : nullptr;
    r.references.take();  // the transport's; it may call back before it returns
    r.run.in_flight.up();
    r.run.next += bytes;
    const int rc = kind.issue(r.rdma, local, r.remote_address + at, r.registration, handle, bytes, 0, MCA_BTL_NO_ORDER,
                              on_rdma_done<Request>, op);
    if (rc == OMPI_SUCCESS) return rc;
    r.run.next -= bytes;
    r.run.in_flight.down();
    static_cast<void>(r.references.drop());  // never the last: our caller holds one
    give_back(module.rdma_ops, op);
    return rc;
}

enum class Rdma {
    kUnderWay,  // wait for completions
    kShortage,  // retry later
    kOver,      // all done up to run.done_to()
};

template <class Request>
Rdma drive_rdma(Request& r, const RdmaKind& kind) noexcept {
    while (r.run.more()) {
        if (r.run.in_flight.now() >= static_cast<std::uint32_t>(module.config.rdma_depth)) return Rdma::kUnderWay;
        const int rc = start_rdma(r, kind);
        if (rc == OMPI_SUCCESS) continue;
        module.counters.count(kind.retries);
        if (is_shortage(rc)) return Rdma::kShortage;
        r.run.fail(r.run.next);
    }
    return r.run.drained() ? Rdma::kOver : Rdma::kUnderWay;
}

}  // namespace coop::pml
