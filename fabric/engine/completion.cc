// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/completion.h"

#include "fabric/engine/responder.h"
#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

Completion& place(const Segment& subnet, const CompletionQueue& cq, std::uint32_t position) {
    return subnet.at<Completion>(cq.ring)[position & (cq.capacity - 1)];
}

// Disarms, and says so, once.
void notify(const Segment& subnet, std::uint32_t index, CompletionQueue& cq) {
    if (cq.armed.exchange(static_cast<std::uint32_t>(Armed::no), std::memory_order_acq_rel) == static_cast<std::uint32_t>(Armed::no)) return;
    const ChannelRecord record{index, cq.used.load(std::memory_order_relaxed)};
    write_to(subnet, cq.process, cq.notify_fd, &record, sizeof record);
}

bool wants(const CompletionQueue& cq, bool solicited) {
    const auto armed = static_cast<Armed>(cq.armed.load(std::memory_order_seq_cst));
    return armed == Armed::any || (armed == Armed::solicited && solicited);
}

void overflow(const Segment& subnet, std::uint32_t index, CompletionQueue& cq) {
    if (cq.overflowed.exchange(1, std::memory_order_acq_rel) != 0) return;
    trace(subnet, TraceKind::cq_overflow, index);
    raise(subnet, cq.context, {IBV_EVENT_CQ_ERR, index, cq.used.load(std::memory_order_relaxed)});
}

}  // namespace

bool put_completion(const Segment& subnet, std::uint32_t index, const Completion& completion) noexcept {
    CompletionQueue& cq = subnet.completion_queues()[index];
    // An unsuccessful completion is as urgent as a solicited one (InfiniBand 11.4.2.2).
    const bool solicited = completion.solicited != 0 || completion.status != IBV_WC_SUCCESS;
    {
        Guard guard(cq.lock);
        const std::uint32_t put = cq.put.load(std::memory_order_relaxed);
        const std::uint32_t waiting = put - cq.taken.load(std::memory_order_acquire);
        if (!Segment::in_use(cq) || cq.ring == 0) return true;
        if (waiting >= cq.depth || cq.overflowed.load(std::memory_order_relaxed) != 0) {
            overflow(subnet, index, cq);
            return false;
        }
        place(subnet, cq, put) = completion;
        if (solicited) cq.last_solicited.store(put + 1, std::memory_order_relaxed);
        cq.put.store(put + 1, std::memory_order_seq_cst);
    }
    if (wants(cq, solicited)) notify(subnet, index, cq);
    return true;
}

bool take_completion(const Segment& subnet, std::uint32_t index, Completion& completion) noexcept {
    CompletionQueue& cq = subnet.completion_queues()[index];
    const std::uint32_t taken = cq.taken.load(std::memory_order_relaxed);
    if (taken == cq.put.load(std::memory_order_acquire) || cq.ring == 0) return false;
    completion = place(subnet, cq, taken);
    cq.taken.store(taken + 1, std::memory_order_release);
    if (completion.of_send_queue != 0)
        if (QueuePair* qp = find_queue_pair(subnet, completion.qp_number)) qp->released.store(completion.released, std::memory_order_release);
    return true;
}

void arm(const Segment& subnet, std::uint32_t index, bool solicited_only) noexcept {
    CompletionQueue& cq = subnet.completion_queues()[index];
    // Asking for less than what is armed already changes nothing (InfiniBand 11.4.2.2).
    auto expected = static_cast<std::uint32_t>(Armed::no);
    if (solicited_only)
        cq.armed.compare_exchange_strong(expected, static_cast<std::uint32_t>(Armed::solicited), std::memory_order_seq_cst);
    else
        cq.armed.store(static_cast<std::uint32_t>(Armed::any), std::memory_order_seq_cst);
    if (subnet.header().strict_arm != 0) return;
    const std::uint32_t taken = cq.taken.load(std::memory_order_relaxed);
    const std::uint32_t newest = solicited_only ? cq.last_solicited.load(std::memory_order_seq_cst) : cq.put.load(std::memory_order_seq_cst);
    if (static_cast<std::int32_t>(newest - taken) > 0) notify(subnet, index, cq);
}

}  // namespace coop::fabric
