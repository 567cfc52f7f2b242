// SPDX-License-Identifier: BSD-3-Clause
//
// Modifies and queries the attributes of a queue pair. All attributes are checked
// first; then LocalQp applies those that concern the transport, in one step.
#include <cstring>

#include "fabric/engine/path.h"
#include "fabric/verbs/address_handle.h"
#include "fabric/verbs/port_state.h"
#include "fabric/verbs/qp_transitions.h"
#include "fabric/verbs/queue_pair.h"

namespace coop::fabric {
namespace {

constexpr std::uint32_t kMostQpNumber = 0xffffff;
constexpr unsigned kMostTimeout = 31, kMostRetries = 7;
constexpr unsigned kRemoteAccess = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

// The port of the QP after the modification.
unsigned port_of(const VerbsQp& qp, const ibv_qp_attr& attr, int mask) {
    return (mask & IBV_QP_PORT) != 0 ? attr.port_num : qp.shared().port;
}

bool is_good_mtu(const VerbsContext& context, unsigned port, ibv_mtu mtu) {
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 && to_bytes(mtu) <= context.port(port).mtu_bytes;
}

// Checks an address vector of a connected QP. Port 0 in it means the QP's port.
bool is_good_vector(const VerbsContext& context, unsigned port, ibv_ah_attr attr) {
    if (attr.port_num == 0) attr.port_num = static_cast<std::uint8_t>(port);
    return is_good_address(context, attr);
}

bool is_good_alternate(const VerbsContext& context, const ibv_qp_attr& attr) {
    if (context.profile().apm == 0 || !context.has_port(attr.alt_port_num) ||
        is_ethernet(context.port(attr.alt_port_num)))
        return false;
    return attr.alt_timeout <= kMostTimeout && attr.alt_pkey_index < context.port(attr.alt_port_num).pkey_count &&
           is_good_vector(context, attr.alt_port_num, attr.alt_ah_attr);
}

// Checks a change of the migration state (InfiniBand 17.2.8). The program may request arming, given an alternate path,
// or migration; only the transport sets the armed state.
bool is_good_migration(const VerbsQp& qp, const ibv_qp_attr& attr, int mask) {
    const std::uint32_t now = qp.shared().migration.load();
    const bool has_alternate = (mask & IBV_QP_ALT_PATH) != 0 || qp.shared().alternate.port != 0;
    switch (attr.path_mig_state) {
    case IBV_MIG_MIGRATED: return true;
    case IBV_MIG_REARM: return has_alternate && qp.owner.profile().apm != 0;
    case IBV_MIG_ARMED: return now == IBV_MIG_ARMED;
    }
    return false;
}

bool is_good_cur_state(ibv_qp_state given, ibv_qp_state is) {
    return given == is && (is == IBV_QPS_RTR || is == IBV_QPS_RTS || is == IBV_QPS_SQD || is == IBV_QPS_SQE);
}

bool are_good(const VerbsQp& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state from) {
    const VerbsContext& context = qp.owner;
    const Profile& profile = context.profile();
    const unsigned port = port_of(qp, attr, mask);
    const auto has = [mask](int bit) { return (mask & bit) != 0; };
    if (!context.has_port(port)) return false;
    if (has(IBV_QP_CUR_STATE) && !is_good_cur_state(attr.cur_qp_state, from)) return false;
    if (has(IBV_QP_PKEY_INDEX) && attr.pkey_index >= context.port(port).pkey_count) return false;
    if (has(IBV_QP_ACCESS_FLAGS) && (attr.qp_access_flags & ~(kRemoteAccess | IBV_ACCESS_LOCAL_WRITE)) != 0)
        return false;
    if (has(IBV_QP_PATH_MTU) && !is_good_mtu(context, port, attr.path_mtu)) return false;
    if (has(IBV_QP_DEST_QPN) && attr.dest_qp_num > kMostQpNumber) return false;
    if (has(IBV_QP_AV) && !is_good_vector(context, port, attr.ah_attr)) return false;
    if (has(IBV_QP_TIMEOUT) && attr.timeout > kMostTimeout) return false;
    if (has(IBV_QP_RETRY_CNT) && attr.retry_cnt > kMostRetries) return false;
    if (has(IBV_QP_RNR_RETRY) && attr.rnr_retry > kMostRetries) return false;
    if (has(IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > kMostTimeout) return false;
    if (has(IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > profile.max_rd_atomic) return false;
    if (has(IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > profile.max_rd_atomic) return false;
    if (has(IBV_QP_ALT_PATH) && !is_good_alternate(context, attr)) return false;
    return !has(IBV_QP_PATH_MIG_STATE) || is_good_migration(qp, attr, mask);
}

void remember(VerbsQp& qp, const ibv_qp_attr& attr, int mask) {
    if ((mask & IBV_QP_AV) != 0) qp.primary = attr.ah_attr;
    if ((mask & IBV_QP_ALT_PATH) == 0) return;
    qp.alternate = attr.alt_ah_attr;
}

// Discards the QP's completions when it is reset.
void forget_completions(const VerbsQp& qp) {
    discard_completions(to_cq(qp.qp_base.recv_cq), qp.qp_base.qp_num);
    if (qp.qp_base.send_cq != qp.qp_base.recv_cq) discard_completions(to_cq(qp.qp_base.send_cq), qp.qp_base.qp_num);
}

// The shared entry stores only the path; the other attributes are those of the address vector that the program gave for
// it.
void complete_vector(const VerbsQp& qp, ibv_ah_attr& attr) {
    for (const ibv_ah_attr* given : {&qp.primary, &qp.alternate}) {
        if (given->dlid != attr.dlid || given->src_path_bits != attr.src_path_bits ||
            std::memcmp(given->grh.dgid.raw, attr.grh.dgid.raw, sizeof attr.grh.dgid.raw) != 0)
            continue;
        attr.grh = given->grh;
        attr.static_rate = given->static_rate;
        return;
    }
}

ibv_qp_init_attr init_attr_of(const VerbsQp& qp) {
    const ibv_qp& base = qp.qp_base;
    return {base.qp_context, base.send_cq, base.recv_cq, base.srq, qp.cap, base.qp_type, qp.all_signaled ? 1 : 0};
}

}  // namespace
}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB int ibv_modify_qp(ibv_qp* modified, ibv_qp_attr* attr, int mask) {
    VerbsQp& qp = to_qp(modified);
    std::lock_guard guard(qp.changing);
    const auto from = static_cast<ibv_qp_state>(qp.shared().state.load(std::memory_order_acquire));
    const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
    if (const int error = check_transition(modified->qp_type, from, to, mask)) return error;
    if (!are_good(qp, *attr, mask, from)) return EINVAL;
    qp.local.modify(*attr, mask);
    remember(qp, *attr, mask);
    if ((mask & IBV_QP_STATE) == 0) return 0;
    if (to == IBV_QPS_RESET) forget_completions(qp);
    modified->state = to;
    return 0;
}

COOP_VERB int ibv_query_qp(ibv_qp* queried, ibv_qp_attr* attr, int, ibv_qp_init_attr* init_attr) {
    VerbsQp& qp = to_qp(queried);
    std::lock_guard guard(qp.changing);
    *attr = {};
    qp.local.query(*attr);
    complete_vector(qp, attr->ah_attr);
    complete_vector(qp, attr->alt_ah_attr);
    attr->cap = qp.cap;
    *init_attr = init_attr_of(qp);
    queried->state = attr->qp_state;
    return 0;
}
