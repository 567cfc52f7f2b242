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

// Disarms the CQ to notify about the completion before position `behind`. Returns true for only one of several callers.
bool disarm(CompletionQueue& cq, std::uint32_t behind) {
    if (cq.armed.exchange(static_cast<std::uint32_t>(Armed::no), std::memory_order_acq_rel) ==
        static_cast<std::uint32_t>(Armed::no))
        return false;
    cq.notified.store(behind, std::memory_order_release);
    return true;
}

// The CQ's lock keeps it, and so its channel, from being destroyed meanwhile.
void write_notice(const Segment& subnet, const ChannelRecord& record) {
    CompletionQueue& cq = subnet.completion_queues()[record.cq];
    Guard guard(cq.lock);
    if (cq.used.load(std::memory_order_relaxed) == record.used)
        write_to(subnet, cq.process, cq.notify_fd, &record, sizeof record);
}

bool wants(const CompletionQueue& cq, bool solicited) {
    const auto armed = static_cast<Armed>(cq.armed.load(std::memory_order_seq_cst));
    return armed == Armed::any || (armed == Armed::solicited && solicited);
}

// The vendor errors of ConnectX cards, as seen in users' reports about Open MPI (openib), UCX and perftest. 0: not
// known, or not always the same for that status.
std::uint32_t vendor_error_of(std::uint32_t status) {
    switch (static_cast<ibv_wc_status>(status)) {
    case IBV_WC_LOC_LEN_ERR: return 0x69;
    case IBV_WC_RETRY_EXC_ERR: return 0x81;
    case IBV_WC_RNR_RETRY_EXC_ERR: return 0x87;
    case IBV_WC_REM_ACCESS_ERR: return 0x88;
    case IBV_WC_REM_OP_ERR: return 0x89;
    case IBV_WC_REM_INV_REQ_ERR: return 0x8a;
    default: return 0;
    }
}

void overflow(const Segment& subnet, std::uint32_t index, CompletionQueue& cq) {
    if (cq.overflowed.exchange(1, std::memory_order_acq_rel) != 0) return;
    trace(subnet, TraceKind::cq_overflow, index);
    raise(subnet, cq.context, {IBV_EVENT_CQ_ERR, index, cq.used.load(std::memory_order_relaxed)});
}

}  // namespace

void Notices::add(const Segment& subnet, std::uint32_t cq, bool of_sender) noexcept {
    if (count_ == kRoom) flush(subnet);
    notices_[count_++] = {{cq, subnet.completion_queues()[cq].used.load(std::memory_order_relaxed)}, of_sender};
}

void Notices::flush(const Segment& subnet) noexcept {
    const std::span<const Notice> all(notices_.data(), count_);
    for (const bool of_sender : {true, false})
        for (const Notice& notice : all)
            if (notice.of_sender == of_sender) write_notice(subnet, notice.record);
    count_ = 0;
}

bool put_completion(const Segment& subnet, std::uint32_t index, const Completion& completion,
                    Notices& notices) noexcept {
    CompletionQueue& cq = subnet.completion_queues()[index];
    // An unsuccessful completion is as urgent as a solicited one (InfiniBand 11.4.2.2).
    const bool solicited = completion.solicited != 0 || completion.status != IBV_WC_SUCCESS;
    std::uint32_t put;
    {
        Guard guard(cq.lock);
        put = cq.put.load(std::memory_order_relaxed);
        const std::uint32_t waiting = put - cq.taken.load(std::memory_order_acquire);
        if (!Segment::in_use(cq) || cq.ring == 0) return true;
        if (waiting >= cq.depth || cq.overflowed.load(std::memory_order_relaxed) != 0) {
            overflow(subnet, index, cq);
            return false;
        }
        place(subnet, cq, put) = completion;
        place(subnet, cq, put).vendor_error = vendor_error_of(completion.status);
        if (solicited) cq.last_solicited.store(put + 1, std::memory_order_relaxed);
        cq.put.store(put + 1, std::memory_order_seq_cst);
    }
    if (wants(cq, solicited) && disarm(cq, put + 1)) notices.add(subnet, index, completion.of_send_queue != 0);
    return true;
}

bool take_completion(const Segment& subnet, std::uint32_t index, Completion& completion) noexcept {
    CompletionQueue& cq = subnet.completion_queues()[index];
    const std::uint32_t taken = cq.taken.load(std::memory_order_relaxed);
    if (taken == cq.put.load(std::memory_order_acquire) || cq.ring == 0) return false;
    completion = place(subnet, cq, taken);
    cq.taken.store(taken + 1, std::memory_order_release);
    if (completion.of_send_queue != 0)
        if (QueuePair* qp = find_queue_pair(subnet, completion.qp_number))
            qp->released.store(completion.released, std::memory_order_release);
    return true;
}

void arm(const Segment& subnet, std::uint32_t index, bool solicited_only) noexcept {
    CompletionQueue& cq = subnet.completion_queues()[index];
    // Arming for solicited completions does not weaken a CQ that is armed for all (InfiniBand 11.4.2.2).
    auto expected = static_cast<std::uint32_t>(Armed::no);
    if (solicited_only)
        cq.armed.compare_exchange_strong(expected, static_cast<std::uint32_t>(Armed::solicited),
                                         std::memory_order_seq_cst);
    else cq.armed.store(static_cast<std::uint32_t>(Armed::any), std::memory_order_seq_cst);
    if (subnet.header().strict_arm != 0) return;
    const std::uint32_t newest = solicited_only ? cq.last_solicited.load(std::memory_order_seq_cst)
                                                : cq.put.load(std::memory_order_seq_cst);
    // The owner knows of completions that it has taken or was notified of. Both counters are free-running.
    std::uint32_t known = cq.taken.load(std::memory_order_relaxed);
    const std::uint32_t notified = cq.notified.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(notified - known) > 0) known = notified;
    if (static_cast<std::int32_t>(newest - known) <= 0 || !disarm(cq, known + 1)) return;
    Notices now;
    now.add(subnet, index, false);
    now.flush(subnet);
}

bool is_armed(const Segment& subnet, std::uint32_t index) noexcept {
    return subnet.completion_queues()[index].armed.load(std::memory_order_relaxed) !=
           static_cast<std::uint32_t>(Armed::no);
}

}  // namespace coop::fabric
