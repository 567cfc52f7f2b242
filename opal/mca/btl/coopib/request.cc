// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

#include "message.h"
#include "module.h"
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

// The keys of an operation for one rail.
struct Keys {
    std::uint32_t lkey, rkey;
};
Keys keys_of(const RdmaOp& op, const Rail& rail) {
    return {lkey_of(op.local_handle, rail.local_hca), op.remote.rkey[rail.remote_hca]};
}

// A write or a read.
void fill_transfer(WorkKind kind, const Keys& keys, std::uint32_t max_inline, const RdmaPiece& piece, ibv_send_wr& wr,
                   ibv_sge& sge) {
    sge = {reinterpret_cast<std::uint64_t>(piece.local_address), static_cast<std::uint32_t>(piece.bytes), keys.lkey};
    if (kind == WorkKind::kPut && piece.bytes <= max_inline) wr.send_flags |= IBV_SEND_INLINE;
    wr.opcode = kind == WorkKind::kPut ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = piece.remote_address;
    wr.wr.rdma.rkey = keys.rkey;
}

// A write, a read or an atomic operation.
void fill_stripe(const StripeWork& stripe, const Rail& rail, Request& request) {
    const RdmaOp& op = *stripe.op;
    const Keys keys = keys_of(op, rail);
    if (op.kind != WorkKind::kAtomic)
        return fill_transfer(op.kind, keys, rail.max_inline,
                             {reinterpret_cast<std::byte*>(stripe.local_address), stripe.remote_address, stripe.bytes},
                             request.wr, request.sge);
    request.sge = {stripe.local_address, stripe.bytes, keys.lkey};
    fill_atomic(stripe, keys.rkey, request.wr);
}

// Only the last request of a list completes. The others have the number of the mark, which they return if they fail: the
// stripe then returns once, when the queue pair flushes the last one.
void fill_list(const StripeWork& stripe, Rail& rail, RequestChain& chain, Request& request) {
    const RdmaOp& op = *stripe.op;
    const Keys keys = keys_of(op, rail);
    const std::uint32_t before = stripe.requests - 1;
    for (std::uint32_t i = 0; i < before; ++i) {
        ibv_send_wr& wr = chain.wrs[i] = {};
        wr.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
        wr.sg_list = &chain.sges[i];
        wr.num_sge = 1;
        wr.next = i + 1 < before ? &chain.wrs[i + 1] : &request.wr;
        fill_transfer(op.kind, keys, rail.max_inline, stripe.pieces[i], wr, chain.sges[i]);
    }
    fill_transfer(op.kind, keys, rail.max_inline, stripe.pieces[before], request.wr, request.sge);
    request.first = chain.wrs;
}

}  // namespace

void fill_ring_write(const Outbox& ring, std::uint64_t address, const Rail& rail, ibv_send_wr& wr) {
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = ring.rkey[rail.remote_hca];
}

void Channel::build(Rail& rail, Work& work, Request& request) {
    if (rail.balance != nullptr) [[unlikely]]
        note_posted(module, rail, work);
    if (work.requests > 1) return fill_list(static_cast<StripeWork&>(work), rail, module.chain, request);
    if (work.kind != WorkKind::kSend) return fill_stripe(static_cast<StripeWork&>(work), rail, request);
    Fragment& fragment = Fragment::of(work);
    if (!fragment.sealed && fragment.header->kind != static_cast<std::uint8_t>(Kind::kUnordered))
        load_credits(*this, *fragment.header);
    fragment.sealed = true;
    fill_send(*this, fragment, rail, request);
}

}  // namespace coop::ib
