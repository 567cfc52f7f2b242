// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/completion_queue.h"

#include <algorithm>
#include <bit>

#include "fabric/engine/completion.h"
#include "fabric/verbs/async_event.h"
#include "fabric/verbs/event_pipe.h"
#include "fabric/verbs/operations.h"

namespace coop::fabric {
namespace {

std::uint64_t ring_bytes(std::uint32_t capacity) { return std::uint64_t{capacity} * sizeof(Completion); }

Completion& place(const Segment& subnet, std::uint64_t ring, std::uint32_t capacity, std::uint32_t position) {
    return subnet.at<Completion>(ring)[position & (capacity - 1)];
}

bool is_good_size(const VerbsContext& owner, int entries) {
    return entries >= 1 && static_cast<std::uint32_t>(entries) <= owner.profile().max_cqe;
}

// Claims an entry of the table and allocates its ring. Returns false if there is no room.
bool enter(VerbsCq& cq, std::uint32_t depth, int notify_fd) {
    const Segment& subnet = cq.owner.subnet();
    const std::uint32_t capacity = std::bit_ceil(depth);
    const std::uint64_t ring = subnet.allocate(ring_bytes(capacity));
    if (ring == 0) return false;
    cq.index = subnet.claim<CompletionQueue>(kCompletionQueues);
    if (cq.index == kNone) {
        subnet.free(ring, ring_bytes(capacity));
        return false;
    }
    CompletionQueue& entry = cq.shared();
    cq.used = entry.used.load(std::memory_order_relaxed);
    if (cq.used == 1)
        entry.lock.create();  // reused entries keep their lock, because another process may be about to take it
    Guard guard(entry.lock);
    entry.process = cq.owner.client.process();
    entry.context = cq.owner.index;
    entry.notify_fd = notify_fd;
    entry.capacity = capacity;
    entry.depth = depth;
    for (auto* count :
         {&entry.put, &entry.taken, &entry.last_solicited, &entry.notified, &entry.armed, &entry.overflowed})
        count->store(0);
    entry.ring = ring;
    return true;
}

void leave(const VerbsCq& cq) {
    if (!cq.owner.is_live()) return;
    const Segment& subnet = cq.owner.subnet();
    CompletionQueue& entry = cq.shared();
    Guard guard(entry.lock);
    subnet.free(entry.ring, ring_bytes(entry.capacity));
    entry.ring = 0;
    subnet.release(entry);
}

void count_user(ibv_comp_channel* channel, int change) {
    if (channel == nullptr) return;
    pthread_mutex_lock(&channel->context->mutex);
    channel->refcnt += change;
    pthread_mutex_unlock(&channel->context->mutex);
}

void purge_notifications(const VerbsCq& cq) {
    purge_records(cq.channel->fd, to_channel(cq.channel).writer, sizeof(ChannelRecord), [&](const void* data) {
        const auto& record = *static_cast<const ChannelRecord*>(data);
        return record.cq == cq.index && record.used == cq.used;
    });
}

void translate(const Completion& from, ibv_wc& to) {
    to.wr_id = from.wr_id;
    to.status = static_cast<ibv_wc_status>(from.status);
    to.opcode = static_cast<ibv_wc_opcode>(from.opcode);
    to.vendor_err = from.vendor_error;
    to.byte_len = from.bytes;
    to.imm_data = from.imm;
    to.qp_num = from.qp_number;
    to.src_qp = from.source_qp;
    to.wc_flags = from.flags;
    to.pkey_index = from.pkey_index;
    to.slid = from.slid;
    to.sl = from.sl;
    to.dlid_path_bits = from.dlid_path_bits;
}

}  // namespace

VerbsCq* make_cq(VerbsContext& owner, int entries, void* cq_context, ibv_comp_channel* channel, std::uint32_t vector) {
    if (!is_good_size(owner, entries) || vector >= static_cast<std::uint32_t>(owner.context.num_comp_vectors))
        return refuse<VerbsCq>(EINVAL);
    auto* cq = new VerbsCq(owner);
    if (!enter(*cq, static_cast<std::uint32_t>(entries), channel != nullptr ? to_channel(channel).writer : -1)) {
        delete cq;
        return refuse<VerbsCq>(ENOMEM);
    }
    cq->context = &owner.context;
    cq->channel = channel;
    cq->cq_context = cq_context;
    cq->handle = cq->index;
    cq->cqe = entries;
    pthread_mutex_init(&cq->mutex, nullptr);
    pthread_cond_init(&cq->cond, nullptr);
    count_user(channel, 1);
    owner.cqs.add(*cq);
    return cq;
}

void discard_completions(VerbsCq& cq, std::uint32_t qp_number) {
    if (!cq.owner.is_live()) return;
    const Segment& subnet = cq.owner.subnet();
    CompletionQueue& entry = cq.shared();
    std::lock_guard taking(cq.taking);
    Guard guard(entry.lock);
    // From the newest to the oldest, move the completions that stay towards the newer end.
    const std::uint32_t taken = entry.taken.load();
    std::uint32_t to = entry.put.load();
    for (std::uint32_t from = to; from != taken;) {
        const Completion& completion = place(subnet, entry.ring, entry.capacity, --from);
        if (completion.qp_number == qp_number) continue;
        if (--to != from) place(subnet, entry.ring, entry.capacity, to) = completion;
    }
    entry.taken.store(to, std::memory_order_release);
}

int poll_cq(ibv_cq* polled, int entries, ibv_wc* completions) {
    VerbsCq& cq = to_cq(polled);
    cq.owner.client.progress();
    std::lock_guard guard(cq.taking);
    if (cq.shared().ring == 0) return 0;  // the process is about to end and has given back its objects
    Completion completion;
    int n = 0;
    while (n < entries && take_completion(cq.owner.subnet(), cq.index, completion))
        translate(completion, completions[n++]);
    return n;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
    arm(to_cq(cq).owner.subnet(), to_cq(cq).index, solicited_only != 0);
    return 0;
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                                int vector) {
    VerbsCq* cq = make_cq(to_context(context), entries, cq_context, channel, static_cast<std::uint32_t>(vector));
    return cq != nullptr ? cq->base() : nullptr;
}

COOP_VERB int ibv_resize_cq(ibv_cq* resized, int entries) {
    VerbsCq& cq = to_cq(resized);
    const Segment& subnet = cq.owner.subnet();
    if (!is_good_size(cq.owner, entries)) return EINVAL;
    const auto depth = static_cast<std::uint32_t>(entries);
    const std::uint32_t capacity = std::bit_ceil(depth);
    const std::uint64_t ring = subnet.allocate(ring_bytes(capacity));
    if (ring == 0) return ENOMEM;
    CompletionQueue& entry = cq.shared();
    std::lock_guard taking(cq.taking);
    Guard guard(entry.lock);
    const std::uint32_t put = entry.put.load(), taken = entry.taken.load();
    if (put - taken > depth) {
        subnet.free(ring, ring_bytes(capacity));
        return EINVAL;
    }
    for (std::uint32_t i = taken; i != put; ++i)
        place(subnet, ring, capacity, i) = place(subnet, entry.ring, entry.capacity, i);
    subnet.free(entry.ring, ring_bytes(entry.capacity));
    entry.ring = ring;
    entry.capacity = capacity;
    entry.depth = depth;
    cq.cqe = entries;
    return 0;
}

COOP_VERB int ibv_destroy_cq(ibv_cq* destroyed) {
    VerbsCq& cq = to_cq(destroyed);
    if (cq.users.load() != 0) return EBUSY;
    cq.owner.cqs.remove(cq);
    leave(cq);
    if (cq.channel != nullptr && cq.owner.is_live()) purge_notifications(cq);
    purge_events(cq.owner, EventSource::cq, cq.index, cq.used);
    await_acknowledgements(*destroyed, destroyed->comp_events_completed, cq.completion_events_out);
    await_acknowledgements(*destroyed, destroyed->async_events_completed, cq.async_events_out);
    count_user(cq.channel, -1);
    pthread_mutex_destroy(&cq.mutex);
    pthread_cond_destroy(&cq.cond);
    delete &cq;
    return 0;
}
