// SPDX-License-Identifier: BSD-3-Clause
//
// RDMA of one message: a sequence of operations that covers a range of it. The same code serves the gets of a
// RecvRequest and the puts of a SendRequest; both have
//
//     rdma            the transport                 run         the sequence
//     registration    ours, if it requires one      references, advance(), drop()
//     remote_address  of the message's first byte   convertor(), or contiguous_base (address_in)
//     remote_handle   the peer's registration
//     local_pieces, remote_pieces   buffers that are not contiguous
//     extension       of the transport
//     marker()        the kind of call, for a transport with an extension
//
// Errors: if a transport refuses an operation for good, or one fails, another protocol transfers the message from the
// first failure on.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "coop/extension/btl_extension.h"
#include "comm.h"
#include "lifetime.h"
#include "pool.h"
#include "ompi/mca/shim/codes.h"

namespace coop::pml {

// One operation that a transport is carrying out.
struct RdmaOp {
    opal_free_list_item_t item;
    void* request;       // SendRequest (put) or RecvRequest (get)
    std::size_t offset;  // in the message
};

// The range [begin, end) of a message, transferred by operations in ascending order, at most pml_coop_rdma_depth at a
// time. After a failure another protocol transfers everything from done_to() on.
struct RdmaRun {
    std::size_t begin = 0, end = 0;
    std::size_t next = 0;                   // first byte not yet requested
    std::size_t chunk = 0;                  // largest operation
    std::atomic<std::size_t> failed_at{0};  // lowest offset that failed; end: none did
    Count in_flight;

    void start(std::size_t from, std::size_t to, std::size_t largest) noexcept {
        begin = next = from;
        end = to;
        chunk = largest;
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
        return std::min(end - next, transport_limit > 0 ? std::min(chunk, transport_limit) : chunk);
    }
};

// The address of byte `at` of the message in our buffer, which is contiguous from there on as far as the caller needs it.
template <class Request>
void* address_in(Request& r, std::size_t at) noexcept {
    if constexpr (requires { r.contiguous_base; })
        if (r.contiguous_base) return r.contiguous_base + at;
    void* address;
    opal_convertor_get_offset_pointer(&r.convertor(), at, &address);
    return address;
}

// Registers `bytes` bytes of the message from `from` on if the transport requires it. Returns false if the transport
// refuses.
template <class Request>
bool open_memory(Request& r, std::size_t from, std::size_t bytes, std::uint32_t access) noexcept {
    if (!r.rdma->btl->btl_register_mem || r.registration) return true;
    if (!module.faults.hit(Fault::kRegister)) {
        mca_bml_base_register_mem(r.rdma, address_in(r, from), bytes, access, &r.registration);
    }
    if (!r.registration) module.counters.count(Counter::kRetryRegister);
    return r.registration != nullptr;
}

template <class Request>
void close_memory(Request& r) noexcept {
    if (r.registration) mca_bml_base_deregister_mem(r.rdma, r.registration);
    r.registration = nullptr;
}

// Access to a buffer that both the local and the remote side may read and write.
constexpr std::uint32_t kShareAccess = MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_READ |
                                       MCA_BTL_REG_FLAG_REMOTE_WRITE;

// What differs between puts and gets: the functions of the plain interface and of the extension, and what to count.
struct RdmaKind {
    decltype(&mca_bml_base_put) issue;
    BtlExtension::Rdma BtlExtension::*extended;
    std::size_t mca_btl_base_module_t::*limit;
    Fault refused, busy;
    Counter retries;
};
inline constexpr RdmaKind kPutKind{mca_bml_base_put, &BtlExtension::put, &mca_btl_base_module_t::btl_put_limit,
                                   Fault::kPut,      Fault::kPutBusy,    Counter::kRetryPut};
inline constexpr RdmaKind kGetKind{mca_bml_base_get, &BtlExtension::get, &mca_btl_base_module_t::btl_get_limit,
                                   Fault::kGet,      Fault::kGetBusy,    Counter::kRetryGet};

// Collective components use negative tags; applications cannot.
constexpr bool is_collective(int tag) noexcept { return tag < 0; }
constexpr bool waits(rndv::RecvCall call) noexcept { return call == rndv::RecvCall::kRecv; }

using RdmaDone = mca_btl_base_rdma_completion_fn_t;

// Shorter copies are not timed, because reading the clock would take too large a part of them.
constexpr std::size_t kWorthTiming = 16 * 1024;

class CopyTimer {
public:
    explicit CopyTimer(std::size_t bytes) noexcept : bytes_(bytes), start_(bytes < kWorthTiming ? 0 : Ticks::now()) {}
    void done() const noexcept {
        module.counters.count(Counter::kCopies);
        module.counters.count(Counter::kCopiedBytes, bytes_);
        if (start_ > 0) module.counters.count(Counter::kCopyTime, Ticks::now() - start_);
    }

private:
    std::size_t bytes_;
    std::uint64_t start_;
};

// For tests: makes a copy take as long as pml_coop_copy_rate says. Other processes may have the CPU meanwhile.
class SlowCopy {
public:
    SlowCopy() noexcept {
        if (module.config.copy_rate > 0) start_ = std::chrono::steady_clock::now();
    }
    void wait(std::size_t bytes) const noexcept {
        if (module.config.copy_rate == 0) return;
        const std::chrono::duration<double> least(static_cast<double>(bytes) /
                                                  static_cast<double>(module.config.copy_rate));
        while (std::chrono::steady_clock::now() - start_ < least) sched_yield();
    }

private:
    std::chrono::steady_clock::time_point start_{};
};

// One operation between local and remote memory.
struct Copy {
    void* local;
    std::uint64_t remote;
    std::size_t bytes;
};

// Returns the copy that starts at byte `at` of the message: at most `most` bytes, and contiguous on both sides.
template <class Request>
Copy next_copy(Request& r, std::size_t at, std::size_t most) noexcept {
    Copy copy{nullptr, r.remote_address + at, most};
    if (r.remote_pieces.any()) {
        const wire::Piece there = r.remote_pieces.at(at);
        copy.remote = there.address;
        copy.bytes = std::min<std::size_t>(copy.bytes, there.bytes);
    }
    if (r.local_pieces.any()) {
        const wire::Piece here = r.local_pieces.at(at);
        copy.local = reinterpret_cast<void*>(here.address);
        copy.bytes = std::min<std::size_t>(copy.bytes, here.bytes);
    } else {
        copy.local = address_in(r, at);
    }
    return copy;
}

// The request for which this thread is inside a transport. A transport that copies with our CPU calls back before it
// returns; then the function that issued the operation continues by itself, and decides when other messages get a turn.
inline thread_local const void* issuing = nullptr;

template <class Request>
void operation_done(Request& r) noexcept {
    r.run.in_flight.down();
    if (issuing != &r) advance(r);
    drop(r);
}

template <class Request>
int hand_to_transport(Request& r, const RdmaKind& kind, const Copy& copy, Rider* rider, RdmaDone done,
                      RdmaOp* op) noexcept {
    mca_btl_base_module_t* const btl = r.rdma->btl;
    auto* handle = btl->btl_registration_handle_size
                       ? reinterpret_cast<mca_btl_base_registration_handle_t*>(r.remote_handle)
                       : nullptr;
    if (r.extension)
        return (r.extension->*kind.extended)(btl, r.rdma->btl_endpoint, copy.local, copy.remote, r.registration, handle,
                                             copy.bytes, {marker(r), rider}, done, op);
    return kind.issue(r.rdma, copy.local, copy.remote, r.registration, handle, copy.bytes, 0, MCA_BTL_NO_ORDER, done,
                      op);
}

// Hands one operation, which starts at byte `at` of the message, to the transport. `done` is called with its RdmaOp,
// perhaps before this returns. Returns what the transport returned.
template <class Request>
int issue(Request& r, const RdmaKind& kind, const Copy& copy, std::size_t at, RdmaDone done,
          Rider* rider = nullptr) noexcept {
    if (module.faults.hit(kind.busy)) return OMPI_ERR_OUT_OF_RESOURCE;
    if (module.faults.hit(kind.refused)) return OMPI_ERR_NOT_AVAILABLE;
    auto* op = take<RdmaOp>(module.rdma_ops);
    if (!op) return OMPI_ERR_OUT_OF_RESOURCE;
    op->request = &r;
    op->offset = at;

    r.references.take();  // the transport's; it may call back before it returns
    r.run.in_flight.up();
    const bool copies = r.peer->neighbour;  // with our CPU; an HCA has not ended when the call returns
    const CopyTimer timer(copies ? copy.bytes : 0);
    const SlowCopy slow;
    issuing = &r;
    const int rc = hand_to_transport(r, kind, copy, rider, done, op);
    issuing = nullptr;
    if (rc == OMPI_SUCCESS) {
        if (copies) {
            slow.wait(copy.bytes);
            timer.done();
        }
        return rc;
    }
    r.run.in_flight.down();
    static_cast<void>(r.references.drop());  // never the last: our caller holds one
    give_back(module.rdma_ops, op);
    return rc;
}

template <class Request>
void on_rdma_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*, void*,
                  void* data, int status) {
    const Callback turn;
    auto* op = static_cast<RdmaOp*>(data);
    auto& r = *static_cast<Request*>(op->request);
    if (status != OMPI_SUCCESS) r.run.fail(op->offset);
    give_back(module.rdma_ops, op);
    operation_done(r);
}

enum class Rdma {
    kUnderWay,   // wait for completions
    kShortage,   // retry later
    kChunkDone,  // let other messages have their turn, then continue
    kOver,       // all done up to run.done_to()
};

// Starts operations until one has to wait. `rider`: only if one operation transfers the whole message.
template <class Request>
Rdma drive_rdma(Request& r, const RdmaKind& kind, Rider* rider = nullptr) noexcept {
    std::size_t copied = 0;
    while (r.run.more()) {
        if (r.run.in_flight.now() >= static_cast<std::uint32_t>(module.config.rdma_depth)) return Rdma::kUnderWay;
        const std::size_t at = r.run.next;
        const Copy copy = next_copy(r, at, r.run.next_bytes(r.rdma->btl->*kind.limit));
        r.run.next += copy.bytes;  // before the call: it may call back
        const int rc = issue(r, kind, copy, at, on_rdma_done<Request>, rider);
        if (rc == OMPI_SUCCESS) {
            // A transport that copies with our CPU has done so already.
            copied += copy.bytes;
            if (r.peer->neighbour && copied >= r.run.chunk && r.run.more() && r.run.drained()) return Rdma::kChunkDone;
            continue;
        }
        r.run.next = at;
        module.counters.count(kind.retries);
        if (is_shortage(rc)) return Rdma::kShortage;
        r.run.fail(at);
    }
    return r.run.drained() ? Rdma::kOver : Rdma::kUnderWay;
}

// Largest operation; inside a node short enough to let other messages have their turn in between.
inline std::size_t chunk_for(const Peer& peer) noexcept {
    return static_cast<std::size_t>(peer.neighbour ? module.config.copy_chunk : module.config.rdma_chunk);
}

}  // namespace coop::pml
