// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

#include "message.h"
#include "registration.h"

namespace coop::ib {
namespace {

// A send, or a ring write if the fragment has a place in the ring.
void fill_send(const Channel& channel, const Fragment& fragment, const Rail& rail, Request& request) {
    ibv_sge& sge = request.sge;
    ibv_send_wr& wr = request.wr;
    sge.addr = reinterpret_cast<std::uint64_t>(fragment.header);
    sge.length = fragment.work.bytes;
    sge.lkey = fragment.chunk->memory.lkey(rail.local_hca);
    wr.opcode = IBV_WR_SEND;
    if (fragment.ring_address != 0) {
        sge.length = sched::written(sge.length);
        fill_ring_write(*channel.outbox, fragment.ring_address, rail, wr);
    }
    if (sge.length <= rail.max_inline) wr.send_flags |= IBV_SEND_INLINE;
    if (fragment.fenced) wr.send_flags |= IBV_SEND_FENCE;
    if (fragment.urgent) wr.send_flags |= IBV_SEND_SOLICITED;
}

void fill_atomic(const StripeWork& stripe, std::uint32_t rkey, ibv_send_wr& wr) {
    const RdmaOp& op = *stripe.op;
    wr.opcode = op.swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = stripe.remote_address;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = op.operand;
    wr.wr.atomic.swap = op.value;
}

// A write, a read or an atomic operation.
void fill_stripe(const StripeWork& stripe, const Rail& rail, Request& request) {
    const RdmaOp& op = *stripe.op;
    ibv_sge& sge = request.sge;
    ibv_send_wr& wr = request.wr;
    sge.addr = stripe.local_address;
    sge.length = stripe.bytes;
    const bool inlined = op.kind == WorkKind::kPut && stripe.bytes <= rail.max_inline;
    if (inlined) wr.send_flags |= IBV_SEND_INLINE;
    else sge.lkey = lkey_of(op.local_handle, rail.local_hca);
    const std::uint32_t rkey = op.remote.rkey[rail.remote_hca];
    if (op.kind == WorkKind::kAtomic) return fill_atomic(stripe, rkey, wr);
    wr.opcode = op.kind == WorkKind::kPut ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = stripe.remote_address;
    wr.wr.rdma.rkey = rkey;
}

}  // namespace

void fill_ring_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& wr) {
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = ring.rkey[rail.remote_hca];
}

void Channel::build(Rail& rail, Work& work, Request& request) {
    if (work.kind != WorkKind::kSend) return fill_stripe(static_cast<StripeWork&>(work), rail, request);
    Fragment& fragment = Fragment::of(work);
    if (!fragment.sealed && fragment.header->kind != static_cast<std::uint8_t>(Kind::kUnordered))
        load_credits(*this, *fragment.header);
    fragment.sealed = true;
    fill_send(*this, fragment, rail, request);
}

}  // namespace coop::ib
