// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/qp_transitions.h"

namespace coop::fabric {
namespace {

constexpr int kNothing = 0;
constexpr unsigned kRc = 1, kUc = 2, kUd = 4, kConnected = kRc | kUc, kAll = kConnected | kUd;

constexpr int kAddress = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kTimers = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
constexpr int kBeforeConnecting = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int kConnectedLive = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | kMigration;
constexpr int kDatagramLive = IBV_QP_CUR_STATE | IBV_QP_QKEY;

struct Transition {
    ibv_qp_state from, to;
    unsigned types;
    int needed;
    int allowed;  // in addition to the required ones
};

constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kConnected, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, kNothing},
    {IBV_QPS_RESET, IBV_QPS_INIT, kUd, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, kNothing},

    {IBV_QPS_INIT, IBV_QPS_INIT, kConnected, kNothing, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, kUd, kNothing, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},

    {IBV_QPS_INIT, IBV_QPS_RTR, kRc, kAddress | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, kBeforeConnecting},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUc, kAddress, kBeforeConnecting},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUd, kNothing, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {IBV_QPS_RTR, IBV_QPS_RTS, kRc, kTimers | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     kConnectedLive | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUc, IBV_QP_SQ_PSN, kConnectedLive},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUd, IBV_QP_SQ_PSN, kDatagramLive},

    {IBV_QPS_RTS, IBV_QPS_RTS, kRc, kNothing, kConnectedLive | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUc, kNothing, kConnectedLive},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUd, kNothing, kDatagramLive},

    {IBV_QPS_RTS, IBV_QPS_SQD, kAll, kNothing, IBV_QP_EN_SQD_ASYNC_NOTIFY},

    {IBV_QPS_SQD, IBV_QPS_RTS, kRc, kNothing, kConnectedLive | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUc, kNothing, kConnectedLive},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUd, kNothing, kDatagramLive},

    {IBV_QPS_SQD, IBV_QPS_SQD, kRc, kNothing,
     IBV_QP_PORT | IBV_QP_AV | kTimers | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
         IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | kMigration},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUc, kNothing, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | kMigration},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUd, kNothing, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {IBV_QPS_SQE, IBV_QPS_RTS, kUc, kNothing, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_SQE, IBV_QPS_RTS, kUd, kNothing, kDatagramLive},
};

unsigned bit_of(ibv_qp_type type) { return type == IBV_QPT_RC ? kRc : type == IBV_QPT_UC ? kUc : kUd; }

bool takes(const Transition& transition, int mask) {
    const int given = mask & ~IBV_QP_STATE;
    return (given & transition.needed) == transition.needed && (given & ~(transition.needed | transition.allowed)) == 0;
}

}  // namespace

int check_transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
    if (to == IBV_QPS_RESET) return (mask & ~IBV_QP_STATE) == 0 ? 0 : EINVAL;
    if (to == IBV_QPS_ERR) return from != IBV_QPS_RESET && (mask & ~IBV_QP_STATE) == 0 ? 0 : EINVAL;
    for (const Transition& transition : kTransitions)
        if (transition.from == from && transition.to == to && (transition.types & bit_of(type)) != 0)
            return takes(transition, mask) ? 0 : EINVAL;
    return EINVAL;
}

}  // namespace coop::fabric
