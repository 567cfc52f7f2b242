// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/queue_pair.h"

#include <algorithm>

#include "fabric/engine/opcode.h"
#include "fabric/verbs/async_event.h"
#include "fabric/verbs/operations.h"
#include "fabric/verbs/receive_ring.h"

namespace coop::fabric {
namespace {

// Flags and results of ibv_query_qp_data_in_order, which headers before rdma-core 46 do not name.
constexpr std::uint32_t kReturnCaps = 1, kDeviceOnly = 2;
constexpr int kWholeMessage = 1, kAlignedBlocks = 2;

constexpr std::uint64_t kReliableOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                              IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                              IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                              IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr std::uint64_t kUnreliableOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                                IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kDatagramOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

std::uint64_t operations_of(const VerbsContext& context, ibv_qp_type type) {
    if (type == IBV_QPT_UD) return kDatagramOperations;
    if (type == IBV_QPT_UC) return kUnreliableOperations;
    constexpr std::uint64_t kAtomics = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    return context.profile().atomics != 0 ? kReliableOperations : kReliableOperations & ~kAtomics;
}

int check(const VerbsPd& domain, const ibv_qp_init_attr& attr) {
    const Profile& profile = domain.owner.profile();
    const ibv_qp_cap& cap = attr.cap;
    if (attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC && attr.qp_type != IBV_QPT_UD) return EOPNOTSUPP;
    if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
    if (&to_cq(attr.send_cq).owner != &domain.owner || &to_cq(attr.recv_cq).owner != &domain.owner) return EINVAL;
    if (attr.srq != nullptr && &to_srq(attr.srq).owner != &domain.owner) return EINVAL;
    if (cap.max_send_wr > profile.max_qp_wr || cap.max_recv_wr > profile.max_qp_wr) return EINVAL;
    if (cap.max_send_sge > profile.max_sge || cap.max_recv_sge > profile.max_sge) return EINVAL;
    return cap.max_inline_data > profile.max_inline ? EINVAL : 0;
}

// The capacities that the QP really gets: absent queues have 0 entries, and a request has room for at least one scatter
// entry.
ibv_qp_cap round_up(const ibv_qp_init_attr& attr) {
    ibv_qp_cap cap = attr.cap;
    cap.max_send_sge = std::max(cap.max_send_sge, 1u);
    cap.max_recv_sge = std::max(cap.max_recv_sge, 1u);
    if (attr.srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
    return cap;
}

// Entries are reused, so every field has to be set.
void fill(QueuePair& entry, const VerbsPd& domain, const ibv_qp_init_attr& attr, std::uint32_t index) {
    const VerbsContext& context = domain.owner;
    const std::uint32_t used = entry.used.load(std::memory_order_relaxed);
    if (used == 1) entry.lock.create();
    Guard guard(entry.lock);
    entry.number = make_qp_number(index, used);
    entry.type = attr.qp_type;
    entry.process = context.client.process();
    entry.context = context.index;
    entry.hca = context.hca_index;
    entry.pd = domain.number;
    entry.send_cq = to_cq(attr.send_cq).index;
    entry.receive_cq = to_cq(attr.recv_cq).index;
    entry.srq = attr.srq != nullptr ? to_srq(attr.srq).index : kNone;
    entry.migration.store(IBV_MIG_MIGRATED);
    entry.mute.store(Mute::no);
    entry.port = 1;
    entry.qkey = entry.access = entry.destination = entry.path_mtu_bytes = 0;
    entry.primary = entry.alternate = {};
    entry.expected_psn = entry.max_dest_rd_atomic = entry.min_rnr_timer = 0;
    entry.held = entry.next_atomic_result = entry.established = 0;
    for (AtomicResult& result : entry.atomic_results) result = {kNone, 0};
    for (auto* count : {&entry.sent_messages, &entry.sent_bytes, &entry.received_messages, &entry.received_bytes,
                        &entry.retries, &entry.rnr_retries, &entry.duplicates, &entry.migrations})
        count->store(0, std::memory_order_relaxed);
    entry.state.store(IBV_QPS_RESET, std::memory_order_release);
}

// Claims and fills an entry of the table; kNone: no room.
std::uint32_t enter(const VerbsPd& domain, const ibv_qp_init_attr& attr, const ibv_qp_cap& cap) {
    const Segment& subnet = domain.owner.subnet();
    const std::uint32_t index = subnet.claim<QueuePair>(kQueuePairs);
    if (index == kNone) return kNone;
    QueuePair& entry = subnet.queue_pairs()[index];
    fill(entry, domain, attr, index);
    entry.receives.ring = 0;
    entry.receives.max_sges = 0;
    if (attr.srq != nullptr || make_ring(subnet, entry.receives, cap.max_recv_wr, cap.max_recv_sge)) return index;
    subnet.release(entry);
    return kNone;
}

void leave(const VerbsContext& context, std::uint32_t index) {
    QueuePair& entry = context.subnet().queue_pairs()[index];
    Guard guard(entry.lock);
    free_ring(context.subnet(), entry.receives);
    context.subnet().release(entry);
}

// After this no other process delivers to the QP.
void close_to_others(const VerbsQp& qp) {
    if (!qp.owner.is_live()) return;
    Guard guard(qp.shared().lock);
    qp.shared().state.store(IBV_QPS_RESET, std::memory_order_release);
}

void count_users(const VerbsQp& qp, int change) {
    to_cq(qp.qp_base.send_cq).users.fetch_add(change);
    to_cq(qp.qp_base.recv_cq).users.fetch_add(change);
    if (qp.qp_base.srq != nullptr) to_srq(qp.qp_base.srq).users.fetch_add(change);
    qp.domain.users.fetch_add(change);
}

void fill_base(VerbsQp& qp, const ibv_qp_init_attr& attr) {
    ibv_qp& base = qp.qp_base;
    base.context = &qp.owner.context;
    base.qp_context = attr.qp_context;
    base.pd = &qp.domain;
    base.send_cq = attr.send_cq;
    base.recv_cq = attr.recv_cq;
    base.srq = attr.srq;
    base.handle = qp.index;
    base.qp_num = qp.shared().number;
    base.state = IBV_QPS_RESET;
    base.qp_type = attr.qp_type;
    pthread_mutex_init(&base.mutex, nullptr);
    pthread_cond_init(&base.cond, nullptr);
}

}  // namespace

VerbsQp* make_qp(VerbsPd& domain, ibv_qp_init_attr& attr) {
    if (const int error = check(domain, attr)) return refuse<VerbsQp>(error);
    const ibv_qp_cap cap = round_up(attr);
    const std::uint32_t index = enter(domain, attr, cap);
    if (index == kNone) return refuse<VerbsQp>(ENOMEM);
    const SendCapacity capacity{cap.max_send_wr, cap.max_send_sge, cap.max_inline_data, attr.sq_sig_all != 0};
    auto* qp = new VerbsQp(domain, index, capacity);
    qp->used = qp->shared().used.load(std::memory_order_relaxed);
    qp->cap = attr.cap = cap;
    qp->all_signaled = capacity.all_signaled;
    fill_base(*qp, attr);
    count_users(*qp, 1);
    domain.owner.qps.add(*qp);
    return qp;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
    constexpr std::uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                                     IBV_QP_INIT_ATTR_CREATE_FLAGS;
    if ((attr->comp_mask & ~kKnown) != 0) return refuse<ibv_qp>(EOPNOTSUPP);
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return refuse<ibv_qp>(EINVAL);
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0)
        return refuse<ibv_qp>(EOPNOTSUPP);
    const bool extended = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    if (extended && (attr->send_ops_flags & ~operations_of(to_context(context), attr->qp_type)) != 0)
        return refuse<ibv_qp>(EOPNOTSUPP);
    // The extended attributes begin with the plain ones.
    VerbsQp* qp = make_qp(to_pd(attr->pd), *reinterpret_cast<ibv_qp_init_attr*>(attr));
    if (qp == nullptr) return nullptr;
    qp->is_extended = extended;
    if (extended) set_work_functions(*qp, attr->send_ops_flags);
    return &qp->qp_base;
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
    VerbsQp* qp = make_qp(to_pd(pd), *attr);
    return qp != nullptr ? &qp->qp_base : nullptr;
}

COOP_VERB ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return to_qp(qp).is_extended ? &to_qp(qp) : nullptr; }

COOP_VERB int ibv_destroy_qp(ibv_qp* destroyed) {
    VerbsQp& qp = to_qp(destroyed);
    VerbsContext& context = qp.owner;
    const std::uint32_t index = qp.index, used = qp.used;
    context.qps.remove(qp);
    close_to_others(qp);
    discard_completions(to_cq(destroyed->recv_cq), destroyed->qp_num);
    if (destroyed->send_cq != destroyed->recv_cq) discard_completions(to_cq(destroyed->send_cq), destroyed->qp_num);
    purge_events(context, EventSource::qp, index, used);
    await_acknowledgements(*destroyed, destroyed->events_completed, qp.events_out);
    count_users(qp, -1);
    pthread_mutex_destroy(&destroyed->mutex);
    pthread_cond_destroy(&destroyed->cond);
    // After fork(), and at the very end of the process, no engine is left that could give up the QP: keep the object.
    if (!context.is_live()) return 0;
    delete &qp;
    leave(context, index);
    return 0;
}

// Applies to data that arrives by RDMA write. Like the drivers, it answers only for a queue pair in RTS.
COOP_VERB int ibv_query_qp_data_in_order(ibv_qp* queried, ibv_wr_opcode opcode, std::uint32_t flags) {
    const VerbsQp& qp = to_qp(queried);
    const bool ready = qp.shared().state.load(std::memory_order_acquire) == IBV_QPS_RTS;
    if (!ready || !is_write(opcode) || qp.owner.profile().in_order == 0 || (flags & ~(kReturnCaps | kDeviceOnly)) != 0)
        return 0;
    return (flags & kReturnCaps) != 0 ? kWholeMessage | kAlignedBlocks : 1;
}
