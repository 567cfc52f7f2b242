// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

#include "coop/async/urgent.h"
#include "registration.h"

namespace coop::ib {
namespace {

void fill_atomic(const RdmaOp& op, ibv_send_wr& request) {
    request.opcode = op.swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic.compare_add = op.operand;
    request.wr.atomic.swap = op.value;
}

}  // namespace

void fill_ring_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& request) {
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = ring.rkey[rail.remote_hca];
}

void fill_send(const Fragment& fragment, const Rail& rail, ibv_send_wr& request, ibv_sge& sge) {
    sge.addr = reinterpret_cast<std::uint64_t>(fragment.header);
    sge.length = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    sge.lkey = fragment.chunk->memory.lkey(rail.local_hca);
    request.opcode = IBV_WR_SEND;
    if (fragment.ring_address != 0) {
        sge.length = sched::written(sge.length);
        fill_ring_write(*fragment.work.endpoint->channel->outbox, fragment.ring_address, rail, request);
    }
    if (sge.length <= rail.max_inline) request.send_flags |= IBV_SEND_INLINE;
    if ((fragment.base.des_flags & kFencedFlag) != 0) request.send_flags |= IBV_SEND_FENCE;
    if ((fragment.base.des_flags & async::kUrgentFlag) != 0) request.send_flags |= IBV_SEND_SOLICITED;
}

void fill_stripe(const StripeWork& stripe, const Rail& rail, ibv_send_wr& request, ibv_sge& sge) {
    const RdmaOp& op = *stripe.op;
    sge.addr = stripe.local_address;
    sge.length = stripe.bytes;
    const bool inlined = op.kind == WorkKind::kPut && stripe.bytes <= rail.max_inline;
    if (inlined) request.send_flags |= IBV_SEND_INLINE;
    else sge.lkey = lkey_of(op.local_handle, rail.local_hca);
    const std::uint32_t rkey = op.remote.rkey[rail.remote_hca];
    if (op.kind == WorkKind::kAtomic) {
        request.wr.atomic.remote_addr = stripe.remote_address;
        request.wr.atomic.rkey = rkey;
        return fill_atomic(op, request);
    }
    request.opcode = op.kind == WorkKind::kPut ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    request.wr.rdma.remote_addr = stripe.remote_address;
    request.wr.rdma.rkey = rkey;
}

}  // namespace coop::ib
