// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/rc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace coop::rail {
namespace {

ibv_qp_init_attr init_attr(ibv_cq* send_cq, ibv_cq* receive_cq, ibv_srq* srq, const RcCaps& caps, void* user) noexcept {
    ibv_qp_init_attr wanted{};
    wanted.qp_context = user;
    wanted.send_cq = send_cq;
    wanted.recv_cq = receive_cq;
    wanted.srq = srq;
    wanted.cap.max_send_wr = caps.sends;
    wanted.cap.max_send_sge = caps.send_sge;
    wanted.cap.max_recv_wr = srq != nullptr ? 0 : caps.receives;
    wanted.cap.max_recv_sge = srq != nullptr ? 0 : caps.receive_sge;
    wanted.cap.max_inline_data = caps.inline_bytes;
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = 0;
    return wanted;
}

int to_init(ibv_qp* qp, const path::PortRecord& local, bool atomics) noexcept {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.pkey_index = local.pkey_index;
    attr.port_num = local.port;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    if (atomics) attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int to_rtr(const Hca& hca, ibv_qp* qp, const path::PortRecord& local, const path::PortRecord& remote,
           const path::PathChoice& path, const path::RailEnds& ends, const RcTimes& times) noexcept {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = static_cast<ibv_mtu>(std::min(local.mtu, remote.mtu));
    attr.dest_qp_num = ends.remote_qpn;
    attr.rq_psn = ends.remote_psn;
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(hca.caps().max_dest_rd_atomic);
    attr.min_rnr_timer = times.min_rnr_timer;
    attr.ah_attr = address_of(local, remote, path.local_bits, path.remote_bits, times.address);
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int to_rts(const Hca& hca, ibv_qp* qp, const path::PortRecord& remote, const path::RailEnds& ends,
           const RcTimes& times) noexcept {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = times.timeout;
    attr.retry_cnt = std::min(times.retries, hca.caps().most_retries);
    attr.rnr_retry = times.rnr_retries;
    attr.sq_psn = ends.local_psn;
    attr.max_rd_atomic = rd_atomic_depth(hca, remote);
    return ibv_modify_qp(
        qp, &attr,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

std::string rail_words(const path::PortRecord& local, const path::PortRecord& remote) {
    return "the rail from " + describe(local) + " to " + describe(remote) + " of the peer";
}

}  // namespace

Wanted<RcQp> make_rc_qp(const Hca& hca, const path::PortRecord& local, ibv_cq* send_cq, ibv_cq* receive_cq,
                        ibv_srq* srq, const RcCaps& caps, void* user) {
    ibv_qp_init_attr attr = init_attr(send_cq, receive_cq, srq, caps, user);
    Qp qp(ibv_create_qp(hca.pd(), &attr));
    if (!qp)
        return trouble(hca.context(), errno, "cannot create a queue pair of " + std::to_string(caps.sends) + " sends");
    if (const int error = to_init(qp, local, hca.caps().atomics); error != 0)
        return trouble(hca.context(), error, "cannot initialize a queue pair on port " + std::to_string(local.port));
    const RcCaps got = {attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_send_sge, attr.cap.max_recv_sge,
                        attr.cap.max_inline_data};
    return RcQp{std::move(qp), got};
}

std::uint8_t rd_atomic_depth(const Hca& initiator, const path::PortRecord& responder) noexcept {
    return static_cast<std::uint8_t>(
        std::min<std::uint32_t>(initiator.caps().max_rd_atomic, responder.max_dest_rd_atomic));
}

Status connect_rc_qp(const Hca& hca, ibv_qp* qp, const path::PortRecord& local, const path::PortRecord& remote,
                     const path::PathChoice& path, const path::RailEnds& ends, const RcTimes& times) {
    if (const int error = to_rtr(hca, qp, local, remote, path, ends, times); error != 0)
        return trouble(hca.context(), error, "cannot receive (RTR) on " + rail_words(local, remote));
    if (const int error = to_rts(hca, qp, remote, ends, times); error != 0)
        return trouble(hca.context(), error, "cannot send (RTS) on " + rail_words(local, remote));
    return Done{};
}

// Looked up at run time: libibverbs has this function since rdma-core 36, and a component that links to it
// would not load with an older version.
bool writes_land_in_order(ibv_qp* qp) noexcept {
    using Query = int (*)(ibv_qp*, ibv_wr_opcode, std::uint32_t);
    static const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "ibv_query_qp_data_in_order"));
    return query != nullptr && query(qp, IBV_WR_RDMA_WRITE, 0) != 0;
}

std::uint32_t path_mtu_bytes(ibv_qp* qp) noexcept {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const bool known = ibv_query_qp(qp, &attr, IBV_QP_PATH_MTU, &init) == 0 && attr.path_mtu >= IBV_MTU_256 &&
                       attr.path_mtu <= IBV_MTU_4096;
    return path::mtu_bytes(static_cast<std::uint8_t>(known ? attr.path_mtu : IBV_MTU_256));
}

}  // namespace coop::rail
