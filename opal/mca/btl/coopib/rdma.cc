// SPDX-License-Identifier: BSD-3-Clause
//
// Put, get, atomic operations, flush.
#include <algorithm>
#include <optional>

#include "connect.h"
#include "entry.h"
#include "extension.h"
#include "module.h"
#include "operation.h"
#include "progress.h"

namespace coop::ib {
namespace {

RdmaOp* make_op(Module& m, WorkKind kind, Endpoint* endpoint, void* local_address, std::uint64_t remote_address,
                Handle* local, const Handle* remote, std::size_t bytes, sched::Marker marker,
                mca_btl_base_rdma_completion_fn_t callback, void* context, void* data) {
    RdmaOp* op = m.ops.take();
    op->kind = kind;
    op->endpoint = endpoint;
    op->local_address = local_address;
    op->remote_address = remote_address;
    op->local_handle = local;
    op->remote = *remote;
    op->bytes = bytes;
    op->marker = marker;
    op->callback = callback;
    op->context = context;
    op->data = data;
    op->pieces = nullptr;
    op->has_riders = false;
    op->rider = nullptr;
    op->whole = op->not_worth = op->not_measured = op->now = op->posts_reads = op->beside_atomics = false;
    op->behind = 0;
    op->lane = sched::kNoLane;
    return op;
}

int begin(Module& m, RdmaOp& op) {
    Endpoint& endpoint = *op.endpoint;
    endpoint.operations.begin(op.begun, ++m.begun);
    if (op.marker != sched::Marker::kNone)
        m.handler.under_way(1);  // an operation of the PML: the peer may be waiting for its end
    if (endpoint.connected.load(std::memory_order_relaxed)) {
        start_op(m, op);
    } else {
        endpoint.waiting_ops.push_back(&op);
        connect(m, endpoint);
    }
    return OPAL_SUCCESS;
}

// Others may reach the peer through an HCA to which no rail of this process leads.
bool has_one_hca(const path::PortList& ports) noexcept {
    return std::ranges::all_of(ports.ports,
                               [&](const path::PortRecord& port) { return port.hca == ports.ports.front().hca; });
}

int put_or_get(WorkKind kind, std::size_t limit, Module& m, Endpoint* endpoint, void* local_address,
               std::uint64_t remote_address, Handle* local, const Handle* remote, std::size_t bytes,
               const RdmaOptions& options, mca_btl_base_rdma_completion_fn_t callback, void* context, void* data) {
    if (bytes > limit) return OPAL_ERR_NOT_AVAILABLE;
    Guard guard(m);
    RdmaOp* op = make_op(m, kind, endpoint, local_address, remote_address, local, remote, bytes, options.marker,
                         callback, context, data);
    op->whole = options.whole;
    op->lane = options.lane;
    op->now = options.now;
    op->beside_atomics = options.beside_atomics;
    if (endpoint->connected.load(std::memory_order_relaxed)) op->rider = options.rider;
    return begin(m, *op);
}

}  // namespace

int put_with(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
             std::uint64_t remote_address, Handle* local, Handle* remote, std::size_t bytes, const RdmaOptions& options,
             mca_btl_base_rdma_completion_fn_t callback, void* data) {
    Module& m = Module::of(btl);
    return put_or_get(WorkKind::kPut, m.base.btl_put_limit, m, endpoint, local_address, remote_address, local, remote,
                      bytes, options, callback, nullptr, data);
}

int get_with(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
             std::uint64_t remote_address, Handle* local, Handle* remote, std::size_t bytes, const RdmaOptions& options,
             mca_btl_base_rdma_completion_fn_t callback, void* data) {
    Module& m = Module::of(btl);
    return put_or_get(WorkKind::kGet, m.base.btl_get_limit, m, endpoint, local_address, remote_address, local, remote,
                      bytes, options, callback, nullptr, data);
}

int transfer_pieces(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, bool puts, const RdmaPiece* pieces,
                    std::size_t count, Handle* local, Handle* remote, mca_btl_base_rdma_completion_fn_t callback,
                    void* data) {
    if (count == 0 || count > kMostPieces) return OPAL_ERR_BAD_PARAM;
    Module& m = Module::of(btl);
    Guard guard(m);
    RdmaOp* op = make_op(m, puts ? WorkKind::kPut : WorkKind::kGet, endpoint, pieces[0].local_address,
                         pieces[0].remote_address, local, remote, 0, sched::Marker::kNone, callback, nullptr, data);
    op->pieces = pieces;
    op->piece_count = static_cast<std::uint32_t>(count);
    return begin(m, *op);
}

namespace {

// Rails that carry writes that have begun since then, if the target has several HCAs. Before the connection, and after
// the loss of the last rail, writes wait; then all rails may carry them.
sched::RailMask rails_to_read_behind(Module& m, const Endpoint& endpoint, std::uint64_t since) {
    if (has_one_hca(endpoint.remote)) return 0;
    if (!endpoint.connected.load(std::memory_order_relaxed)) return ~sched::RailMask{0};
    Channel& channel = *endpoint.channel;
    // Those that have not been cut have no rail yet. The last rail may fail with one of them.
    if (!cut_writes(m, channel) || !channel.has_usable_rail()) return ~sched::RailMask{0};
    // Writes that are repeated may take any rail.
    const sched::RailMask written = channel.displaced() != 0 ? ~sched::RailMask{0} : channel.writes.since(since);
    return written & channel.rails.up();
}

}  // namespace

bool needs_read_behind(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, std::uint64_t since) {
    Module& m = Module::of(btl);
    Guard guard(m);
    return rails_to_read_behind(m, *endpoint, since) != 0;
}

bool read_behind(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
                 std::uint64_t remote_address, Handle* local, Handle* remote, std::uint64_t& since,
                 mca_btl_base_rdma_completion_fn_t callback, void* data) {
    Module& m = Module::of(btl);
    Guard guard(m);
    const sched::RailMask rails = rails_to_read_behind(m, *endpoint, since);
    if (endpoint->connected.load(std::memory_order_relaxed)) since = endpoint->channel->writes.now();
    if (rails == 0) return false;
    RdmaOp* op = make_op(m, WorkKind::kGet, endpoint, local_address, remote_address, local, remote, 1,
                         sched::Marker::kNone, callback, nullptr, data);
    op->behind = rails;
    begin(m, *op);
    return true;
}

int put(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
        std::uint64_t remote_address, Handle* local, Handle* remote, std::size_t bytes, int, int,
        mca_btl_base_rdma_completion_fn_t callback, void* context, void* data) {
    Module& m = Module::of(btl);
    return put_or_get(WorkKind::kPut, m.base.btl_put_limit, m, endpoint, local_address, remote_address, local, remote,
                      bytes, {}, callback, context, data);
}

int get(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
        std::uint64_t remote_address, Handle* local, Handle* remote, std::size_t bytes, int, int,
        mca_btl_base_rdma_completion_fn_t callback, void* context, void* data) {
    Module& m = Module::of(btl);
    return put_or_get(WorkKind::kGet, m.base.btl_get_limit, m, endpoint, local_address, remote_address, local, remote,
                      bytes, {}, callback, context, data);
}

int fetch_and(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
              std::uint64_t remote_address, Handle* local, Handle* remote, mca_btl_base_atomic_op_t operation,
              std::uint64_t operand, int flags, int, mca_btl_base_rdma_completion_fn_t callback, void* context,
              void* data) {
    if (operation != MCA_BTL_ATOMIC_ADD || (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0 || remote_address % 8 != 0)
        return OPAL_ERR_NOT_AVAILABLE;
    Module& m = Module::of(btl);
    Guard guard(m);
    RdmaOp* op = make_op(m, WorkKind::kAtomic, endpoint, local_address, remote_address, local, remote, 8,
                         sched::Marker::kNone, callback, context, data);
    op->swap = false;
    op->operand = operand;
    return begin(m, *op);
}

int compare_and_swap(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, void* local_address,
                     std::uint64_t remote_address, Handle* local, Handle* remote, std::uint64_t compare,
                     std::uint64_t value, int flags, int, mca_btl_base_rdma_completion_fn_t callback, void* context,
                     void* data) {
    if ((flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0 || remote_address % 8 != 0) return OPAL_ERR_NOT_AVAILABLE;
    Module& m = Module::of(btl);
    Guard guard(m);
    RdmaOp* op = make_op(m, WorkKind::kAtomic, endpoint, local_address, remote_address, local, remote, 8,
                         sched::Marker::kNone, callback, context, data);
    op->swap = true;
    op->operand = compare;
    op->value = value;
    return begin(m, *op);
}

// Waits for all operations that have begun so far, but not for those that other threads begin meanwhile. (With several
// queue pairs, the completion of a later operation does not imply that earlier ones have completed.)
int flush(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint) {
    Module& m = Module::of(btl);
    const auto so_far = [&] {
        Guard guard(m);
        return m.begun;
    }();
    const auto over = [&] {
        Guard guard(m);
        if (endpoint != nullptr) return endpoint->operations.all_over(so_far);
        return std::all_of(m.endpoints.begin(), m.endpoints.end(),
                           [&](const auto& each) { return each.second->operations.all_over(so_far); });
    };
    while (!over()) progress();
    return OPAL_SUCCESS;
}

}  // namespace coop::ib
