// SPDX-License-Identifier: BSD-3-Clause
//
// Polls the rings and the completion queues of all HCAs. The rail of a completed request
// is updated under the lock; the upper layer is called with the lock released.
#include "progress.h"

#include <time.h>

#include <algorithm>
#include <atomic>

#include "connect.h"
#include "failover.h"
#include "failure.h"
#include "loopback.h"
#include "migration.h"
#include "module.h"
#include "operation.h"
#include "receive.h"
#include "rules.h"

namespace coop::ib {
namespace {

constexpr int kBatch = 32;
constexpr unsigned kSweepsPerLook = 1024;  // for mute rails, with failover
constexpr int kMostOfRing = 8;             // messages of one ring before those of the others
constexpr unsigned kMostRingsAlone = 8;    // messages from rings after which the queues are swept, too

// The fragment or operation to report to the upper layer as complete; null: none.
struct Finished {
    Fragment* fragment = nullptr;
    RdmaOp* op = nullptr;
};

// The rail on which the request was posted. Null: it was repeated on another one since, or the rail was replaced.
Rail* rail_of(const Module& m, const HcaUse& use, const Work& work, const ibv_wc& wc) {
    const Channel& channel = *work.endpoint->channel;
    Rail* const rail = work.kind == WorkKind::kMark ? channel.rail_of_mark(work) : channel.posted_on(work);
    return rail != nullptr && rail->qp.number() == wc.qp_num && &m.uses[rail->local_hca] == &use ? rail : nullptr;
}

// A peer that has ended has got all messages that it wanted. Its queue pair does not acknowledge the last ones.
bool is_settled_by_end(const Rail& rail, const Work& work) {
    return work.endpoint->channel->left && &work != &rail.last &&
           (work.kind == WorkKind::kSend || work.kind == WorkKind::kMark);
}

bool was_executed(const Rail& rail, const Work& work, const ibv_wc& wc) {
    if (is_settled_by_end(rail, work)) return true;
    if (wc.status == IBV_WC_WR_FLUSH_ERR && work.kind != WorkKind::kMark) return !holds(Rule::kFlushed);
    return wc.status == IBV_WC_SUCCESS;
}

Finished finish(Module& m, const HcaUse& use, Work& work, const ibv_wc& wc, std::uint64_t now) {
    Guard guard(m);
    if (work.endpoint == nullptr) return {};  // the probe of a rail that is not part of a channel
    Rail* const rail = rail_of(m, use, work, wc);
    if (rail == nullptr) return {};
    if (!was_executed(*rail, work, wc)) return on_send_error(*rail, work, wc), Finished{};
    Channel& channel = *work.endpoint->channel;
    Finished finished;
    if (work.kind == WorkKind::kMark) {
        if (&work == &rail->pulse) on_pulse(m, *rail);
        else channel.on_mark_completed(*rail);
        return finished;
    }
    if (m.given.apm_balance != 0) [[unlikely]]
        balance(m, *rail, work, now);
    if (work.kind == WorkKind::kSend) {
        Fragment& fragment = Fragment::of(work);
        fragment.landed = true;
        if (fragment.repeats) [[unlikely]]
            end_repetition(channel, fragment);
        finished.fragment = &fragment;
    } else {
        auto& stripe = static_cast<StripeWork&>(work);
        if (stripe.left != 0 && read_further(channel, stripe, now)) [[unlikely]]
            return finished;
        count_completed(m, stripe);
        if (stripe.op->missing.on_completed(stripe.stripe) == sched::Landed::kComplete) {
            finished.op = stripe.op;
            note_end(*stripe.op, now);
        }
    }
    channel.on_completed(work, now);
    cut_waiting(m, channel);
    return finished;
}

int handle(Module& m, HcaUse& use, const ibv_wc& wc, std::uint64_t now) {
    if ((wc.wr_id & 1) != 0)
        return on_received(m, use, *reinterpret_cast<ReceiveBuffer*>(wc.wr_id & ~std::uint64_t{1}), wc);
    const Finished finished = finish(m, use, *reinterpret_cast<Work*>(wc.wr_id), wc, now);
    if (finished.fragment != nullptr) complete(m, *finished.fragment);
    if (finished.op != nullptr) complete(m, *finished.op);
    return 1;
}

// Polls all queues before it handles anything, and gives all completions the same time, so that a rail does not look
// slower because its HCA is polled later (sched/feedback.h). Not inlined, so that messages from rings do not pay for
// its large stack frame.
[[gnu::noinline]] int sweep_queues(Module& m) {
    ibv_wc wcs[kMaxHcas][kBatch];
    int counts[kMaxHcas];
    int all = 0;
    bool emptied = true;
    const std::size_t hcas = m.uses.size();
    const std::uint64_t begun = m.given.apm_balance != 0 ? now_ns() : 0;
    for (std::size_t i = 0; i < hcas; ++i) {
        all += counts[i] = std::max(ibv_poll_cq(m.uses[i].cq.get(), kBatch, wcs[i]), 0);
        emptied &= counts[i] < kBatch;
    }
    if (m.repairing != 0) [[unlikely]]
        note_sweep(m, emptied);
    if (all != 0) {
        const std::uint64_t now = now_ns();
        ++m.sweeps;
        for (std::size_t i = 0; i < hcas; ++i)
            for (int n = 0; n < counts[i]; ++n) handle(m, m.uses[i], wcs[i][n], now);
        --m.sweeps;
    }
    if (emptied) m.swept_ns = begun;
    return all;
}

// Takes at most kMostOfRing messages of each ring, so that a ring that is never empty does not starve the others.
int poll_rings(Module& m) {
    int events = 0;
    const std::uint32_t count = m.inboxes.size();
    for (std::uint32_t i = 0; i < count; ++i) {
        Inbox& inbox = m.inboxes[i];
        for (int left = kMostOfRing; left > 0 && inbox.may_have_message() && on_slot_filled(m, inbox) != 0; --left)
            ++events;
    }
    return events;
}

// With MPI_THREAD_MULTIPLE several threads count at once. A lost increment does not matter.
class Turns {
public:
    // Adds `by`. Returns whether the count has passed a multiple of `every`.
    bool pass(unsigned every, unsigned by = 1) noexcept {
        const unsigned n = n_.load(std::memory_order_relaxed);
        n_.store(n + by, std::memory_order_relaxed);
        return n / every != (n + by) / every;
    }

private:
    std::atomic<unsigned> n_{0};
};

// Lets only one thread at a time take arrivals. If several did and one of them were preempted while it holds
// completions, later messages that other threads take would have to wait for these, without a limit on their number.
// The thread may call progress() recursively.
class Taker {
public:
    bool begin(std::uint64_t thread) noexcept {
        std::uint64_t nobody = 0;
        if (owner_.load(std::memory_order_relaxed) != thread &&
            !owner_.compare_exchange_strong(nobody, thread, std::memory_order_acquire))
            return false;
        ++depth_;
        return true;
    }
    void end() noexcept {
        if (--depth_ == 0) owner_.store(0, std::memory_order_release);
    }

private:
    std::atomic<std::uint64_t> owner_{0};
    unsigned depth_ = 0;  // nesting of the owner's calls
};

int take_arrivals(Module& m) {
    // Poll the rings first. While they have messages, sweep the completion queues only once for kMostRingsAlone of them,
    // because a sweep costs more than a ring message.
    static Turns rings_alone;
    const int events = poll_rings(m);
    if (events != 0 && !rings_alone.pass(kMostRingsAlone, static_cast<unsigned>(events))) return events;
    // News first: they tell of a port that is down, or of a peer that has ended, and so why requests fail.
    const int told = progress_connections(m), swept = told + sweep_queues(m);
    static Turns looks;
    if (m.repairing != 0 || (m.given.failover != 0 && looks.pass(kSweepsPerLook))) [[unlikely]]
        repair(m);
    m.handler.swept();
    // A sweep takes longer than a look at the rings. A message that has arrived meanwhile need not wait for the next call.
    return events + swept != 0 ? events + swept : poll_rings(m);
}

int take_arrivals_alone(Module& m, std::uint64_t thread) {
    static Taker taker;
    if (!taker.begin(thread)) return 0;
    const int events = take_arrivals(m);
    taker.end();
    return events;
}

}  // namespace

std::uint64_t now_ns() noexcept {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

int progress() noexcept {
    Module& m = module;
    const async::Polling turn(m.handler.get());
    int kept = 0;
    if (m.kept.any() && !m.handler.is_handler()) [[unlikely]]
        kept = m.kept.make(m);
    const std::uint64_t thread = this_thread();
    return kept + (thread == 0 ? take_arrivals(m) : take_arrivals_alone(m, thread));
}

}  // namespace coop::ib
