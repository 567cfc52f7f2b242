// SPDX-License-Identifier: BSD-3-Clause
//
// Posting receive requests to a queue pair (InfiniBand 11.4.1.2).
#include "fabric/verbs/operations.h"
#include "fabric/verbs/queue_pair.h"
#include "fabric/verbs/receive_ring.h"

namespace coop::fabric {

int post_recv(ibv_qp* posted, ibv_recv_wr* request, ibv_recv_wr** bad) {
    VerbsQp& qp = to_qp(posted);
    QueuePair& entry = qp.shared();
    if (posted->srq != nullptr || entry.state.load(std::memory_order_acquire) == IBV_QPS_RESET) {
        *bad = request;
        return EINVAL;
    }
    int error = 0;
    {
        std::lock_guard guard(qp.receiving);
        error = post_receives(qp.owner.subnet(), entry.receives, request, bad);
    }
    // It comes back at once. (Seen here, or by who moves the QP there: both look after they wrote.)
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (entry.state.load(std::memory_order_acquire) == IBV_QPS_ERR) qp.local.on_attention();
    return error;
}

}  // namespace coop::fabric
