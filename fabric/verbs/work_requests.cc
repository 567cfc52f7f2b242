// SPDX-License-Identifier: BSD-3-Clause
//
// ibv_wr_*: builds a list of work requests, call by call, between wr_start and
// wr_complete. It is posted only when complete, because an error in one request,
// or wr_abort, cancels all of them.
#include <cstring>
#include <span>

#include "fabric/verbs/address_handle.h"
#include "fabric/verbs/queue_pair.h"

namespace coop::fabric {
namespace {

void refuse_list(VerbsQp& qp, int error) {
    if (qp.list.error == 0) qp.list.error = error;
}

SendWork& begin_request(ibv_qp_ex* of, ibv_wr_opcode opcode) {
    VerbsQp& qp = to_qp(of);
    if (qp.list.count == qp.list.requests.size()) qp.list.requests.emplace_back();
    SendWork& work = qp.list.requests[qp.list.count++];
    work.wr_id = of->wr_id;
    work.opcode = opcode;
    work.flags = of->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);  // set by the functions for inline data
    work.sges = 0;
    work.inline_bytes = 0;
    if (const int error = check_opcode(qp, opcode)) refuse_list(qp, error);
    return work;
}

// The request that a setter applies to; null: no request has been started.
SendWork* last(VerbsQp& qp) {
    if (qp.list.count != 0) return &qp.list.requests[qp.list.count - 1];
    refuse_list(qp, EINVAL);
    return nullptr;
}

SendWork& begin_remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address, __be32 imm = 0) {
    SendWork& work = begin_request(qp, opcode);
    work.rkey = rkey;
    work.remote_address = address;
    work.imm = imm;
    return work;
}

void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_remote(qp, IBV_WR_RDMA_WRITE, rkey, address);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 imm) {
    begin_remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, imm);
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_remote(qp, IBV_WR_RDMA_READ, rkey, address);
}
void wr_send(ibv_qp_ex* qp) { begin_request(qp, IBV_WR_SEND); }
void wr_send_imm(ibv_qp_ex* qp, __be32 imm) { begin_request(qp, IBV_WR_SEND_WITH_IMM).imm = imm; }

void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                       std::uint64_t swap) {
    SendWork& work = begin_remote(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
    work.compare_add = compare;
    work.swap = swap;
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    begin_remote(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address).compare_add = add;
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t number, std::uint32_t qkey) {
    SendWork* work = last(to_qp(qp));
    if (work == nullptr) return;
    work->to = to_ah(ah).to;
    work->to_qp = number;
    work->to_qkey = qkey;
}

void wr_set_sge_list(ibv_qp_ex* of, std::size_t sges, const ibv_sge* list) {
    VerbsQp& qp = to_qp(of);
    SendWork* work = last(qp);
    if (work == nullptr) return;
    if (sges > qp.cap.max_send_sge) return refuse_list(qp, EINVAL);
    work->sges = static_cast<std::uint32_t>(sges);
    for (std::size_t i = 0; i < sges; ++i) work->sge[i] = {list[i].addr, list[i].length, list[i].lkey};
}
void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t bytes) {
    const ibv_sge sge{address, bytes, lkey};
    wr_set_sge_list(qp, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex* of, std::size_t buffers, const ibv_data_buf* list) {
    VerbsQp& qp = to_qp(of);
    SendWork* work = last(qp);
    if (work == nullptr) return;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < buffers; ++i) {
        bytes += list[i].length;
        if (bytes > qp.cap.max_inline_data) return refuse_list(qp, EINVAL);
        const auto* data = static_cast<const std::byte*>(list[i].addr);
        qp.list.inline_data.insert(qp.list.inline_data.end(), data, data + list[i].length);
    }
    work->flags |= IBV_SEND_INLINE;
    work->inline_bytes = static_cast<std::uint32_t>(bytes);
}
void wr_set_inline_data(ibv_qp_ex* qp, void* address, std::size_t bytes) {
    const ibv_data_buf buffer{address, bytes};
    wr_set_inline_data_list(qp, 1, &buffer);
}

void clear(WorkList& list) {
    list.count = 0;
    list.inline_data.clear();
    list.error = 0;
}

void wr_start(ibv_qp_ex* of) {
    VerbsQp& qp = to_qp(of);
    qp.posting.lock();
    clear(qp.list);
}

void wr_abort(ibv_qp_ex* qp) { to_qp(qp).posting.unlock(); }

// Copies the part of a request that the verbs layer fills in, and only the used part of its gather list.
void copy_request(SendWork& to, const SendWork& from) {
    std::memcpy(static_cast<void*>(&to), &from, offsetof(SendWork, sge) + from.sges * sizeof(Sge));
    to.inline_bytes = from.inline_bytes;
}

int post_list(VerbsQp& qp) {
    if (qp.list.error != 0) return qp.list.error;
    if (qp.local.room() < qp.list.count) return ENOMEM;
    const std::byte* data = qp.list.inline_data.data();
    for (const SendWork& request : std::span(qp.list.requests).first(qp.list.count)) {
        SendWork* work = qp.local.slot();
        copy_request(*work, request);
        if (request.inline_bytes != 0) std::memcpy(qp.local.inline_data(*work), data, request.inline_bytes);
        data += request.inline_bytes;
        if (const int error = qp.local.add(*work))
            return error;  // depends on the QP's state, so it fails for the first request
    }
    return 0;
}

int wr_complete(ibv_qp_ex* of) {
    VerbsQp& qp = to_qp(of);
    qp.local.begin();
    const int error = post_list(qp);
    qp.local.end();
    qp.posting.unlock();
    return error;
}

}  // namespace

// Sets only the functions that were asked for. Calling another one is a mistake in the program and crashes it, as with
// hardware.
void set_work_functions(VerbsQp& qp, std::uint64_t wanted) {
    const auto wants = [wanted](std::uint64_t operation) { return (wanted & operation) != 0; };
    if (wants(IBV_QP_EX_WITH_RDMA_WRITE)) qp.wr_rdma_write = wr_rdma_write;
    if (wants(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)) qp.wr_rdma_write_imm = wr_rdma_write_imm;
    if (wants(IBV_QP_EX_WITH_SEND)) qp.wr_send = wr_send;
    if (wants(IBV_QP_EX_WITH_SEND_WITH_IMM)) qp.wr_send_imm = wr_send_imm;
    if (wants(IBV_QP_EX_WITH_RDMA_READ)) qp.wr_rdma_read = wr_rdma_read;
    if (wants(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)) qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    if (wants(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
    qp.wr_set_sge = wr_set_sge;
    qp.wr_set_sge_list = wr_set_sge_list;
    qp.wr_set_inline_data = wr_set_inline_data;
    qp.wr_set_inline_data_list = wr_set_inline_data_list;
    if (qp.qp_base.qp_type == IBV_QPT_UD) qp.wr_set_ud_addr = wr_set_ud_addr;
    qp.wr_start = wr_start;
    qp.wr_complete = wr_complete;
    qp.wr_abort = wr_abort;
}

}  // namespace coop::fabric
