// SPDX-License-Identifier: BSD-3-Clause
//
// One sweep over the rings and the completion queues of all HCAs. What is
// complete is taken off its rail under the lock; the upper layer hears of it with
// the lock released.
#include <time.h>

#include <atomic>

#include "entry.h"

namespace coop::ib {
namespace {

constexpr int kBatch = 32;
constexpr unsigned kMostRingsAlone = 8;  // sweeps over rings that found something, before the queues have their turn

void call(Module& m, Fragment& fragment) {
    const std::uint32_t flags = fragment.base.des_flags;
    if (fragment.base.des_cbfunc != nullptr) fragment.base.des_cbfunc(&m.base, fragment.work.endpoint, &fragment.base, OPAL_SUCCESS);
    if ((flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0) give_back(&m.base, &fragment.base);
}

void call(Module& m, RdmaOp& op) {
    if (op.callback != nullptr)
        op.callback(&m.base, op.endpoint, op.local_address, op.local_handle, op.context, op.data, OPAL_SUCCESS);
    Guard guard(m);
    if (op.kind != WorkKind::kAtomic && !op.has_riders) async::handler.under_way(-1);
    --op.endpoint->outstanding_ops;
    m.ops.give_back(op);
}

// What to tell the upper layer of; null: nothing yet.
struct Finished {
    Fragment* fragment = nullptr;
    RdmaOp* op = nullptr;
};

Finished finish(Module& m, Work& work, const ibv_wc& wc, std::uint64_t now) {
    Guard guard(m);
    Endpoint& endpoint = *work.endpoint;
    if (wc.status != IBV_WC_SUCCESS) rail_failed(m, endpoint, &work, wc);
    sched::Scheduler& scheduler = *endpoint.channel->scheduler;
    Finished finished;
    if (work.kind == WorkKind::kMark) {
        on_mark_done(m, endpoint, *endpoint.channel->rails[work.rail]);
        return finished;
    }
    if (work.kind == WorkKind::kSend) {
        finished.fragment = &Fragment::of(work);
        scheduler.on_completed(work.rail, finished.fragment->header->bytes + sizeof(Header), work.posted_ns, now);
    } else {
        auto& stripe = static_cast<StripeWork&>(work);
        scheduler.on_completed(work.rail, stripe.bytes, work.posted_ns, now);
        count_completed(stripe);
        if (stripe.op->missing.on_completed(stripe.stripe) == sched::Landed::kComplete) finished.op = stripe.op;
    }
    on_posted_done(m, work);
    return finished;
}

int sweep(Module& m, const HcaUse& use) {
    ibv_wc wcs[kBatch];
    const int n = ibv_poll_cq(use.cq.get(), kBatch, wcs);
    if (n <= 0) return 0;
    const std::uint64_t now = now_ns();  // of the whole sweep: sched/feedback.h says why
    for (int i = 0; i < n; ++i) {
        const ibv_wc& wc = wcs[i];
        if ((wc.wr_id & 1) != 0) {
            on_received(m, use, *reinterpret_cast<ReceiveBuffer*>(wc.wr_id & ~std::uint64_t{1}), wc);
            continue;
        }
        const Finished finished = finish(m, *reinterpret_cast<Work*>(wc.wr_id), wc, now);
        if (finished.fragment != nullptr) call(m, *finished.fragment);
        if (finished.op != nullptr) call(m, *finished.op);
    }
    return n;
}

// Each ring has its turn before one of them has its second: one that is never empty starves nobody.
int poll_rings(Module& m) {
    int events = 0;
    const std::uint32_t count = m.inboxes.size();
    for (std::uint32_t i = 0; i < count; ++i)
        if (Inbox& inbox = m.inboxes[i]; inbox.may_have_message()) events += on_slot_filled(m, inbox);
    return events;
}

// Counted by several threads at once, with MPI_THREAD_MULTIPLE: one more or less makes no difference.
class Turns {
public:
    unsigned next() noexcept {
        const unsigned n = n_.load(std::memory_order_relaxed) + 1;
        n_.store(n, std::memory_order_relaxed);
        return n;
    }

private:
    std::atomic<unsigned> n_{0};
};

}  // namespace

std::uint64_t now_ns() noexcept {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

int progress() noexcept {
    const async::Polling turn;
    Module& m = module;
    // Who waits for a short message waits for a ring: it is not kept from going on by queues, as long as they have their turn.
    static Turns rings_alone;
    int events = 0;
    for (const HcaUse& use : m.uses) {
        events += poll_rings(m);
        if (events != 0 && rings_alone.next() % kMostRingsAlone != 0) return events;
        events += sweep(m, use);
    }
    // Connections are rare: their queues are looked at now and then, and always while one is being made.
    static Turns turns;
    if (turns.next() % 32 == 0 || m.connecting != 0) events += progress_connections(m, now_ns());
    async::handler.swept();
    return events;
}

}  // namespace coop::ib
