// SPDX-License-Identifier: BSD-3-Clause
//
// Posts send requests: checks them, converts them, and passes them to LocalQp,
// which starts to work on them at the end of the list.
#include <cstring>

#include "fabric/engine/opcode.h"
#include "fabric/verbs/address_handle.h"
#include "fabric/verbs/operations.h"
#include "fabric/verbs/queue_pair.h"

namespace coop::fabric {

int check_opcode(const VerbsQp& qp, ibv_wr_opcode opcode) {
    const ibv_qp_type type = qp.qp_base.qp_type;
    switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM: return 0;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM: return type == IBV_QPT_UD ? EINVAL : 0;
    case IBV_WR_RDMA_READ: return type == IBV_QPT_RC ? 0 : EINVAL;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return type == IBV_QPT_RC && qp.owner.profile().atomics != 0 ? 0 : EINVAL;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_TSO:
    case IBV_WR_DRIVER1:
    case IBV_WR_ATOMIC_WRITE: break;
    }
    return EINVAL;
}

namespace {

void set_target(SendWork& work, const ibv_send_wr& request, bool datagram) {
    if (datagram) {
        work.to = to_ah(request.wr.ud.ah).to;
        work.to_qp = request.wr.ud.remote_qpn;
        work.to_qkey = request.wr.ud.remote_qkey;
    } else if (is_atomic(request.opcode)) {
        work.remote_address = request.wr.atomic.remote_addr;
        work.rkey = request.wr.atomic.rkey;
        work.compare_add = request.wr.atomic.compare_add;
        work.swap = request.wr.atomic.swap;
    } else {
        work.remote_address = request.wr.rdma.remote_addr;
        work.rkey = request.wr.rdma.rkey;
    }
}

// Copies the data now, because the program may change it after the call.
int copy_inline(VerbsQp& qp, SendWork& work, const ibv_send_wr& request) {
    std::byte* to = qp.local.inline_data(work);
    std::uint64_t bytes = 0;
    for (int i = 0; i < request.num_sge; ++i) {
        const ibv_sge& sge = request.sg_list[i];
        if (bytes + sge.length > qp.cap.max_inline_data) return EINVAL;
        std::memcpy(to + bytes, reinterpret_cast<const void*>(sge.addr), sge.length);
        bytes += sge.length;
    }
    work.sges = 0;
    work.inline_bytes = static_cast<std::uint32_t>(bytes);
    return 0;
}

int post_one(VerbsQp& qp, const ibv_send_wr& request) {
    if (const int error = check_opcode(qp, request.opcode)) return error;
    if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > qp.cap.max_send_sge) return EINVAL;
    const bool datagram = qp.qp_base.qp_type == IBV_QPT_UD;
    if (datagram && request.wr.ud.ah == nullptr) return EINVAL;
    const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
    if (is_inline && is_read_or_atomic(request.opcode)) return EINVAL;
    SendWork* work = qp.local.slot();
    if (work == nullptr) return ENOMEM;
    work->wr_id = request.wr_id;
    work->opcode = request.opcode;
    work->flags = request.send_flags;
    work->imm = request.imm_data;
    set_target(*work, request, datagram);
    if (is_inline) {
        if (const int error = copy_inline(qp, *work, request)) return error;
    } else {
        work->sges = static_cast<std::uint32_t>(request.num_sge);
        for (std::uint32_t i = 0; i < work->sges; ++i)
            work->sge[i] = {request.sg_list[i].addr, request.sg_list[i].length, request.sg_list[i].lkey};
    }
    return qp.local.add(*work);
}

}  // namespace

int post_send(ibv_qp* posted, ibv_send_wr* request, ibv_send_wr** bad) {
    VerbsQp& qp = to_qp(posted);
    int error = 0;
    qp.local.begin();
    for (; request != nullptr; request = request->next) {
        error = post_one(qp, *request);
        if (error != 0) break;
    }
    qp.local.end();
    if (error != 0) *bad = request;
    return error;
}

}  // namespace coop::fabric
