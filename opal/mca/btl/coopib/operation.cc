// SPDX-License-Identifier: BSD-3-Clause
#include "operation.h"

#include <cstring>

#include "diagnose.h"
#include "loopback.h"
#include "message.h"
#include "module.h"
#include "progress.h"

namespace coop::ib {
namespace {

// Makes a fragment with the rider's packet for each stripe. Returns false, and takes nothing, if there is no memory.
bool fill_riders(Module& m, RdmaOp& op, std::uint32_t stripes) {
    Rider& rider = *op.rider;
    for (std::uint32_t i = 0; i < stripes; ++i) {
        op.riders[i] = m.fragments.take();
        if (op.riders[i] != nullptr) continue;
        while (i-- > 0) m.fragments.give_back(*op.riders[i]);
        return false;
    }
    if (!number_riders(*op.endpoint->channel, op.riders, stripes)) {
        for (std::uint32_t i = 0; i < stripes; ++i) m.fragments.give_back(*op.riders[i]);
        return false;
    }
    rider.set_parts(rider.packet, stripes);
    rider.taken = true;
    for (std::uint32_t i = 0; i < stripes; ++i) {
        Fragment& fragment = *op.riders[i];
        fragment.base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
        fragment.fenced = op.kind == WorkKind::kGet;
        fragment.base.des_cbfunc = nullptr;
        fragment.work.kind = WorkKind::kSend;
        fragment.work.bytes = static_cast<std::uint32_t>(sizeof(Header)) + rider.bytes;
        fragment.work.ordered = false;
        fragment.work.wants_credit = true;
        fragment.ring_address = 0;
        *fragment.header = {op.endpoint->channel->repairs ? fragment.work.psn : 0,
                            rider.bytes,
                            rider.tag,
                            static_cast<std::uint8_t>(Kind::kUnordered),
                            0,
                            0,
                            0};
        fragment.header->check = check_of(*fragment.header);
        std::memcpy(fragment.data(), rider.packet, rider.bytes);
    }
    // No process has to notice the end of the operation now. Without a marker it was not counted.
    if (op.marker != sched::Marker::kNone) m.handler.under_way(-1);
    return true;
}

// Submits both to the same rail, which posts the stripe before the rider.
void submit_with_rider(Channel& channel, StripeWork& stripe, Fragment& rider) {
    rider.work.endpoint = stripe.endpoint;
    rider.behind = &stripe;
    channel.submit_stripe(stripe, false);
    rider.work.rail = stripe.rail;  // another one than before if the queue pair has refused the stripe
    channel.submit(rider.work);
}

// Whether the operation is posted in the call that starts it. A queue pair may have only some reads outstanding; more of
// them would hold up all requests behind them, unless the queue pair is for reads alone. Long queues of reads are divided
// by weights that are out of date when their turn comes, which measurably costs bandwidth on unequal rails.
bool goes_now(const Channel& channel, const RdmaOp& op) {
    constexpr std::uint64_t kMostReads = 32 * 1024 * 1024;
    if (!op.now) return false;
    if (op.kind == WorkKind::kPut) return true;
    return channel.reads_apart() && channel.scheduler->backlog_bytes(sched::Direction::kIn) + op.bytes <= kMostReads;
}

void add_stripe(Module& m, RdmaOp& op, std::uint32_t index, sched::RailIndex rail, std::uint64_t offset,
                std::uint64_t bytes, std::uint64_t posted_ns) {
    StripeWork& stripe = op.stripes[index];
    stripe.kind = op.kind;
    stripe.rail = rail;
    stripe.endpoint = op.endpoint;
    stripe.posted_ns = posted_ns;
    stripe.op = &op;
    stripe.stripe = index;
    stripe.local_address = reinterpret_cast<std::uint64_t>(op.local_address) + offset;
    stripe.remote_address = op.remote_address + offset;
    stripe.bytes = static_cast<std::uint32_t>(bytes);
    // A rider must be on the queue pair of its read, and is a message.
    stripe.apart = op.kind == WorkKind::kGet && !op.has_riders;
    Channel& channel = *op.endpoint->channel;
    count_posted(m, stripe, channel.rails[rail].local_hca);
    // The fences of riders make the HCA execute such reads one by one, so they need no read tokens: at most one read more
    // than the tokens permit is outstanding, and the HCA delays that one until an earlier read has ended.
    if (op.has_riders) return submit_with_rider(channel, stripe, *op.riders[index]);
    channel.submit_stripe(stripe, op.kind != WorkKind::kPut && !op.posts_reads);
}

void cut(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    const std::uint64_t now = now_ns();
    const sched::Direction direction = rail::direction_of(op.kind);
    const sched::Schedule schedule = op.whole ? channel.scheduler->make_whole(op.bytes, op.lane, direction)
                                              : channel.scheduler->make_schedule(op.bytes, op.marker, now, direction);
    const std::uint64_t posted_ns = schedule.is_measured() ? now : sched::kNotMeasured;
    op.missing = sched::SentStripes(schedule.size());
    ++(schedule.size() == 1 ? channel.whole : channel.striped)[static_cast<std::size_t>(schedule.header.reason)];
    if (op.rider != nullptr) op.has_riders = fill_riders(m, op, static_cast<std::uint32_t>(schedule.size()));
    // The operation may complete when its last stripe is posted, so `op` must not be used after the loop.
    std::uint32_t i = 0;
    for (const sched::Stripe& stripe : schedule)
        add_stripe(m, op, i++, stripe.rail, stripe.offset_bytes, stripe.length_bytes, posted_ns);
}

// Whether the operation should wait before it is cut into stripes.
bool waits_whole(const Channel& channel, const RdmaOp& op) {
    const sched::Scheduler& scheduler = *channel.scheduler;
    return scheduler.may_wait(op.bytes, op.marker, rail::direction_of(op.kind)) ||
           (op.kind == WorkKind::kGet && scheduler.would_measure(op.bytes, op.marker) && !channel.can_read());
}

}  // namespace

void cut_waiting(Module& m, Channel& channel) {
    if (!channel.has_usable_rail()) return;
    for (OpList& uncut : channel.uncut)
        while (RdmaOp* op = uncut.front()) {
            if (waits_whole(channel, *op)) break;
            uncut.pop_front();
            cut(m, *op);
        }
}

void start_op(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    if (op.kind == WorkKind::kAtomic) {
        op.missing = sched::SentStripes(1);
        if (!channel.atomic_rail) no_atomics(*op.endpoint);
        // If this rail has failed, the request goes to another one to the same HCA, or waits.
        return add_stripe(m, op, 0, *channel.atomic_rail, 0, op.bytes, sched::kNotMeasured);
    }
    // A rider is valid only during this call, so an operation with a rider is cut at once. A whole operation is not cut,
    // so it need not wait for better weights.
    OpList& uncut = channel.uncut[static_cast<std::size_t>(rail::direction_of(op.kind))];
    const bool now = goes_now(channel, op);
    op.posts_reads = now;
    if (op.whole || now || op.rider != nullptr || (uncut.empty() && !waits_whole(channel, op))) return cut(m, op);
    if (op.kind == WorkKind::kGet && !channel.can_read())
        for (Rail& rail : channel.rails) ++rail.counts.read_waits;
    uncut.push_back(&op);
}

}  // namespace coop::ib
