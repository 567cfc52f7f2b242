// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/shared_receive_queue.h"

#include <algorithm>
#include <cstring>

#include "fabric/shm/process.h"
#include "fabric/verbs/async_event.h"
#include "fabric/verbs/operations.h"
#include "fabric/verbs/receive_ring.h"

namespace coop::fabric {
namespace {

bool enter(VerbsSrq& srq, const ibv_srq_attr& attr) {
    const Segment& subnet = srq.owner.subnet();
    srq.index = subnet.claim<SharedReceiveQueue>(kSharedReceiveQueues);
    if (srq.index == kNone) return false;
    SharedReceiveQueue& entry = srq.shared();
    srq.used = entry.used.load(std::memory_order_relaxed);
    if (srq.used == 1) entry.lock.create();
    Guard guard(entry.lock);
    entry.process = srq.owner.client.process();
    entry.context = srq.owner.index;
    entry.pd = srq.domain.number;
    entry.limit.store(0);
    if (make_ring(subnet, entry.receives, attr.max_wr, std::max(attr.max_sge, 1u))) return true;
    subnet.release(entry);
    return false;
}

void leave(const VerbsSrq& srq) {
    if (!srq.owner.is_live()) return;
    SharedReceiveQueue& entry = srq.shared();
    Guard guard(entry.lock);
    free_ring(srq.owner.subnet(), entry.receives);
    srq.owner.subnet().release(entry);
}

// Moves the posted requests into a ring of another size.
int resize(VerbsSrq& srq, std::uint32_t depth) {
    const Segment& subnet = srq.owner.subnet();
    SharedReceiveQueue& entry = srq.shared();
    ReceiveRing larger{};
    if (!make_ring(subnet, larger, depth, entry.receives.max_sges)) return ENOMEM;
    Guard guard(entry.lock);
    ReceiveRing& ring = entry.receives;
    const std::uint32_t put = ring.put.load(), taken = ring.taken.load();
    if (put - taken > depth) {
        free_ring(subnet, larger);
        return EINVAL;
    }
    for (std::uint32_t i = taken; i != put; ++i)
        std::memcpy(&receive_at(subnet, larger, i), &receive_at(subnet, ring, i), receive_stride(ring));
    free_ring(subnet, ring);
    ring.ring = larger.ring;
    ring.capacity = larger.capacity;
    ring.depth = depth;
    return 0;
}

// Arms IBV_EVENT_SRQ_LIMIT_REACHED, which is raised when fewer requests than the limit are posted. Raises it at once if
// that is already so.
void set_limit(const VerbsSrq& srq, std::uint32_t limit) {
    SharedReceiveQueue& entry = srq.shared();
    bool reached = false;
    {
        Guard guard(entry.lock);
        reached = entry.receives.put.load() - entry.receives.taken.load() < limit;
        entry.limit.store(reached ? 0 : limit, std::memory_order_release);
    }
    if (reached) raise(srq.owner.subnet(), srq.owner.index, {IBV_EVENT_SRQ_LIMIT_REACHED, srq.index, srq.used});
}

}  // namespace

int post_srq_recv(ibv_srq* posted, ibv_recv_wr* request, ibv_recv_wr** bad) {
    VerbsSrq& srq = to_srq(posted);
    std::lock_guard guard(srq.posting);
    return post_receives(srq.owner.subnet(), srq.shared().receives, request, bad);
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
    *number = to_srq(srq).index + 1;
    return 0;
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
    VerbsPd& domain = to_pd(pd);
    const Profile& profile = domain.owner.profile();
    ibv_srq_attr& attr = init->attr;
    if (profile.max_srq_wr == 0) return refuse<ibv_srq>(EOPNOTSUPP);
    if (attr.max_wr == 0 || attr.max_wr > profile.max_srq_wr || attr.max_sge > profile.max_sge)
        return refuse<ibv_srq>(EINVAL);
    auto* srq = new VerbsSrq(domain);
    if (!enter(*srq, attr)) {
        delete srq;
        return refuse<ibv_srq>(ENOMEM);
    }
    attr.max_sge = srq->shared().receives.max_sges;
    srq->context = pd->context;
    srq->srq_context = init->srq_context;
    srq->pd = pd;
    srq->handle = srq->index;
    pthread_mutex_init(&srq->mutex, nullptr);
    pthread_cond_init(&srq->cond, nullptr);
    domain.users.fetch_add(1);
    domain.owner.srqs.add(*srq);
    return srq;
}

COOP_VERB int ibv_modify_srq(ibv_srq* modified, ibv_srq_attr* attr, int mask) {
    VerbsSrq& srq = to_srq(modified);
    if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
    std::lock_guard guard(srq.posting);
    const std::uint32_t depth = (mask & IBV_SRQ_MAX_WR) != 0 ? attr->max_wr : srq.shared().receives.depth;
    if (depth == 0 || depth > srq.owner.profile().max_srq_wr) return EINVAL;
    if ((mask & IBV_SRQ_LIMIT) != 0 && attr->srq_limit > depth) return EINVAL;
    if ((mask & IBV_SRQ_MAX_WR) != 0)
        if (const int error = resize(srq, depth)) return error;
    if ((mask & IBV_SRQ_LIMIT) != 0) set_limit(srq, attr->srq_limit);
    return 0;
}

COOP_VERB int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
    const SharedReceiveQueue& entry = to_srq(srq).shared();
    attr->max_wr = entry.receives.depth;
    attr->max_sge = entry.receives.max_sges;
    attr->srq_limit = entry.limit.load();
    return 0;
}

COOP_VERB int ibv_destroy_srq(ibv_srq* destroyed) {
    VerbsSrq& srq = to_srq(destroyed);
    if (srq.users.load() != 0) return EBUSY;
    srq.owner.srqs.remove(srq);
    leave(srq);
    purge_events(srq.owner, EventSource::srq, srq.index, srq.used);
    await_acknowledgements(*destroyed, destroyed->events_completed, srq.events_out);
    srq.domain.users.fetch_sub(1);
    pthread_mutex_destroy(&srq.mutex);
    pthread_cond_destroy(&srq.cond);
    delete &srq;
    return 0;
}
