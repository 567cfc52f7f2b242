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
    // In the error state the requests are flushed at once. Both sides write first and check afterwards, so either this
    // thread sees the state, or the process that sets it causes a flush that finds the requests.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (entry.state.load(std::memory_order_acquire) == IBV_QPS_ERR) qp.local.on_attention();
    return error;
}

}  // namespace coop::fabric
