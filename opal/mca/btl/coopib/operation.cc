// SPDX-License-Identifier: BSD-3-Clause
#include "operation.h"

#include <algorithm>
#include <span>

#include "diagnose.h"
#include "loopback.h"
#include "message.h"
#include "module.h"
#include "progress.h"
#include "signal.h"

namespace coop::ib {
namespace {

// Makes a fragment with the rider's packet for each stripe. Returns false, and takes nothing, if there is no memory.
bool fill_riders(Module& m, RdmaOp& op, std::uint32_t stripes) {
    Rider& rider = *op.rider;
    if (!take_fragments(m, *op.endpoint->channel, std::span(op.riders).first(stripes))) return false;
    rider.set_parts(rider.packet, stripes);
    rider.taken = true;
    for (std::uint32_t i = 0; i < stripes; ++i) {
        Fragment& fragment = *op.riders[i];
        fill_unordered(fragment, rider.packet, rider.bytes, rider.tag);
        fragment.fenced = op.kind == WorkKind::kGet;
    }
    // No process has to notice the end of the operation now. Without a marker it was not counted.
    if (op.marker != sched::Marker::kNone) m.handler.under_way(-1);
    return true;
}

// Submits both to the same rail, which posts the stripe before the rider.
void submit_with_rider(Channel& channel, StripeWork& stripe, Fragment& rider) {
    rider.work.endpoint = stripe.endpoint;
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

// Needs the HCA of the peer that executes atomic operations, and follows those that were started before.
bool keeps_order(const RdmaOp& op) { return op.kind == WorkKind::kAtomic || op.beside_atomics; }

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
    stripe.remote_address = op.remote_address + (op.behind != 0 ? 0 : offset);
    stripe.bytes = static_cast<std::uint32_t>(bytes);
    stripe.requests = 1;
    stripe.repeated = stripe.in_order = false;
    stripe.follows = op.behind != 0;
    stripe.left = 0;
    // A rider must be on the queue pair of its read, and is a message; a read beside atomic operations keeps its order with
    // them.
    stripe.apart = op.kind == WorkKind::kGet && !op.has_riders && op.behind == 0 && !op.beside_atomics;
    Channel& channel = *op.endpoint->channel;
    if (op.kind == WorkKind::kPut) channel.writes.on_write(rail);
    count_posted(m, stripe, channel.rails[rail].local_hca);
    // The fences of riders make the HCA execute such reads one by one, so they need no read tokens: at most one read more
    // than the tokens permit is outstanding, and the HCA delays that one until an earlier read has ended.
    if (op.has_riders) return submit_with_rider(channel, stripe, *op.riders[index]);
    const bool with_token = op.kind != WorkKind::kPut && !op.posts_reads;
    if (channel.repairs && keeps_order(op)) return channel.submit_in_order(stripe, with_token);
    channel.submit_stripe(stripe, with_token);
}

std::uint64_t bytes_of(std::span<const RdmaPiece> pieces) {
    std::uint64_t bytes = 0;
    for (const RdmaPiece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

// How many pieces go to one rail together. A queue pair must be able to take them at once, also one to which they go when
// their rail fails.
std::uint32_t pieces_of_list(const Channel& channel, std::uint32_t count) {
    constexpr std::uint32_t kLeast = 8;  // fewer are not worth a second rail
    const std::uint32_t most = channel.most_pieces;
    const auto rails = static_cast<std::uint32_t>(sched::count_of(channel.rails.up()));
    const std::uint32_t each = std::clamp((count + rails - 1) / rails, std::min(kLeast, most), most);
    const std::uint32_t lists = (count + each - 1) / each;
    return (count + lists - 1) / lists;
}

void add_list(Module& m, RdmaOp& op, std::uint32_t index, std::span<const RdmaPiece> pieces) {
    Channel& channel = *op.endpoint->channel;
    StripeWork& stripe = op.stripes[index];
    const sched::Direction direction = rail::direction_of(op.kind);
    stripe.kind = op.kind;
    stripe.endpoint = op.endpoint;
    stripe.posted_ns = sched::kNotMeasured;
    stripe.op = &op;
    stripe.stripe = index;
    stripe.pieces = pieces.data();
    stripe.follows = stripe.repeated = stripe.in_order = false;
    stripe.requests = static_cast<std::uint32_t>(pieces.size());
    stripe.local_address = reinterpret_cast<std::uint64_t>(pieces[0].local_address);
    stripe.remote_address = pieces[0].remote_address;
    stripe.bytes = static_cast<std::uint32_t>(bytes_of(pieces));
    stripe.apart = op.kind == WorkKind::kGet;
    stripe.load_place = 0;
    const bool with_token = op.kind == WorkKind::kGet && !channel.reads_apart();
    // The last rail may have failed with the list before.
    if (!channel.has_usable_rail()) return channel.park(stripe, with_token);
    stripe.rail = channel.scheduler->rail_of_small(
        std::min<std::uint64_t>(stripe.bytes, m.sched.striping_threshold - 1), direction);
    if (op.kind == WorkKind::kPut) channel.writes.on_write(stripe.rail);
    channel.submit_stripe(stripe, with_token);
}

// The operation may complete when its last list is posted, so `op` must not be used after the loop.
void start_lists(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    std::span<const RdmaPiece> left(op.pieces, op.piece_count);
    const std::uint32_t each = pieces_of_list(channel, op.piece_count);
    channel.whole[static_cast<std::size_t>(sched::Reason::kSmall)] += op.piece_count;
    channel.timed[static_cast<std::size_t>(rail::direction_of(op.kind))] = nullptr;
    op.missing = sched::SentStripes((left.size() + each - 1) / each);
    for (std::uint32_t i = 0; !left.empty(); ++i) {
        const auto part = left.first(std::min<std::size_t>(each, left.size()));
        left = left.subspan(part.size());
        add_list(m, op, i, part);
    }
}

void cut(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    const std::uint64_t now = now_ns();
    const sched::Direction direction = rail::direction_of(op.kind);
    const sched::Schedule schedule = op.whole ? channel.scheduler->make_whole(
                                                    op.bytes, op.lane, direction,
                                                    op.not_worth ? sched::Reason::kNotWorth : sched::Reason::kWhole)
                                              : channel.scheduler->make_schedule(op.bytes, op.marker, now, direction);
    const std::uint64_t posted_ns = schedule.is_measured() && !op.not_measured ? now : sched::kNotMeasured;
    op.missing = sched::SentStripes(schedule.size());
    ++(schedule.size() == 1 ? channel.whole : channel.striped)[static_cast<std::size_t>(schedule.header.reason)];
    if (op.rider != nullptr) op.has_riders = fill_riders(m, op, static_cast<std::uint32_t>(schedule.size()));
    // The operation may complete when its last stripe is posted, so `op` must not be used after the loop.
    std::uint32_t i = 0;
    for (const sched::Stripe& stripe : schedule)
        add_stripe(m, op, i++, stripe.rail, stripe.offset_bytes, stripe.length_bytes, posted_ns);
}

// On the queue pairs of the writes, because an HCA executes the requests of a queue pair in order. Writes that have
// waited for a rail with the read may not be cut yet. If the last rail fails with one of them, the read waits again.
void start_behind(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    if (!cut_writes(m, channel) || !channel.has_usable_rail()) return op.endpoint->waiting_ops.push_front(&op);
    const sched::RailMask rails = op.behind & channel.rails.up();
    op.missing = sched::SentStripes(sched::count_of(rails));
    std::uint32_t place = 0;
    // The operation may complete with its last read.
    for (const sched::RailIndex rail : sched::each(rails)) {
        const std::uint32_t i = place++;
        add_stripe(m, op, i, rail, i, 1, sched::kNotMeasured);
    }
}

// The same as cut() for an operation that is too short for stripes, and has no rider.
void start_short(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    op.missing = sched::SentStripes(1);
    ++channel.whole[static_cast<std::size_t>(sched::Reason::kSmall)];
    const sched::RailIndex rail = channel.scheduler->rail_of_small(op.bytes, rail::direction_of(op.kind));
    add_stripe(m, op, 0, rail, 0, op.bytes, sched::kNotMeasured);
}

// Whether the operation goes whole where stripes have taken longer: unless the user has chosen how it is divided.
bool may_go_whole(const Module& m, const Channel& channel, const RdmaOp& op) {
    if (op.whole || !m.sched.compare_whole || op.rider != nullptr || op.bytes < m.sched.striping_threshold)
        return false;
    return op.now ||
           (m.sched.large_policy == sched::Policy::kEpc && channel.scheduler->would_measure(op.bytes, op.marker));
}

// Until it was known that the links do not decide, stripes of such operations were measured, and have changed the weights.
// Weights are kept if operations of another length have shown what the rails can do.
void forget_noise(Channel& channel) {
    const bool are_true = std::any_of(channel.trials.begin(), channel.trials.end(),
                                      [](const sched::StripeTrials& each) { return each.links_matter_somewhere(); });
    if (!are_true) channel.scheduler->forget_weights();
}

// Lets an operation go whole where stripes have taken longer, and measures one that is alone.
void try_whole(Module& m, RdmaOp& op) {
    // Stripes that take longer save more than they cost. Without a nominal bandwidth, links may be the reason earlier.
    constexpr std::uint64_t kLatencies = 250, kUnknownLatencies = 8;
    Channel& channel = *op.endpoint->channel;
    const sched::Direction direction = rail::direction_of(op.kind);
    const auto index = static_cast<std::size_t>(direction);
    sched::StripeTrials& trials = channel.trials[index];
    const bool alone = channel.scheduler->backlog_bytes(direction) == 0;
    channel.timed[index] = nullptr;
    if (!may_go_whole(m, channel, op)) return;
    const std::uint64_t link = channel.scheduler->fastest_rail();
    trials.set_limits((link != 0 ? kLatencies : kUnknownLatencies) * m.sched.latency_ns, link);
    const auto way = alone ? trials.choose(op.bytes) : trials.known(op.bytes);
    op.whole = op.not_worth = way == sched::StripeTrials::Way::kWhole;
    op.not_measured = !trials.links_matter(op.bytes);
    if (trials.links_stop_mattering(op.bytes)) forget_noise(channel);
    if (!alone) return;
    channel.timed[index] = &op;
    op.begun_ns = now_ns();
}

// Whether the operation should wait before it is cut into stripes. Nothing waits for idle rails.
bool waits_whole(const Channel& channel, const RdmaOp& op) {
    const sched::Scheduler& scheduler = *channel.scheduler;
    const sched::Direction direction = rail::direction_of(op.kind);
    if (scheduler.backlog_bytes(direction) != 0 && scheduler.may_wait(op.bytes, op.marker, direction)) return true;
    return op.kind == WorkKind::kGet && !channel.can_read() && scheduler.would_measure(op.bytes, op.marker);
}

// Whether the operation goes at once over the only rail that is usable. Without a read token it waits to be cut, because
// another rail may be back by then. `now`: the caller wants it posted, and that is possible.
bool goes_alone(const Module& m, const Channel& channel, const RdmaOp& op, bool now) {
    if (!channel.scheduler->has_one_usable() || op.rider != nullptr) return false;
    if (now || op.whole) return true;
    return channel.uncut[static_cast<std::size_t>(rail::direction_of(op.kind))].empty() &&
           (op.kind != WorkKind::kGet || op.bytes < m.sched.striping_threshold || channel.can_read());
}

// The same as try_whole() and cut(), where there is nothing to divide, to compare and to measure.
void start_alone(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    const sched::Direction direction = rail::direction_of(op.kind);
    const sched::Reason reason = op.whole                                ? sched::Reason::kWhole
                                 : op.bytes < m.sched.striping_threshold ? sched::Reason::kSmall
                                                                         : sched::Reason::kOneRail;
    channel.timed[static_cast<std::size_t>(direction)] = nullptr;
    op.missing = sched::SentStripes(1);
    ++channel.whole[static_cast<std::size_t>(reason)];
    const sched::RailIndex rail = channel.scheduler->rail_of_any(op.bytes, direction, reason);
    add_stripe(m, op, 0, rail, 0, op.bytes, sched::kNotMeasured);
}

}  // namespace

void note_end(RdmaOp& op, std::uint64_t now) {
    using Way = sched::StripeTrials::Way;
    Channel& channel = *op.endpoint->channel;
    const auto index = static_cast<std::size_t>(rail::direction_of(op.kind));
    if (channel.timed[index] != &op) return;
    channel.timed[index] = nullptr;
    channel.trials[index].on_time(op.bytes, op.not_worth ? Way::kWhole : Way::kStriped, now - op.begun_ns);
}

// In both functions the last rail may fail with each operation that is cut. Then the others wait for a rail.
void cut_waiting(Module& m, Channel& channel) {
    for (OpList& uncut : channel.uncut)
        while (RdmaOp* op = uncut.front()) {
            if (!channel.has_usable_rail() || waits_whole(channel, *op)) break;
            uncut.pop_front();
            cut(m, *op);
        }
}

bool cut_writes(Module& m, Channel& channel) {
    OpList& uncut = channel.uncut[static_cast<std::size_t>(rail::direction_of(WorkKind::kPut))];
    while (!uncut.empty() && channel.has_usable_rail()) cut(m, *uncut.pop_front());
    return uncut.empty();
}

void start_op(Module& m, RdmaOp& op) {
    Channel& channel = *op.endpoint->channel;
    if (keeps_order(op)) {
        op.missing = sched::SentStripes(1);
        channel.had_atomics = true;
        if (!channel.atomic_rail) no_atomics(*op.endpoint);
        // If this rail has failed, the request takes another one to the same HCA, or waits.
        return add_stripe(m, op, 0, *channel.atomic_rail, 0, op.bytes, sched::kNotMeasured);
    }
    if (op.pieces != nullptr) return start_lists(m, op);
    if (op.behind != 0) return start_behind(m, op);
    // A rider is valid only during this call, so an operation with a rider is cut at once. A whole operation is not cut,
    // so it need not wait for better weights.
    OpList& uncut = channel.uncut[static_cast<std::size_t>(rail::direction_of(op.kind))];
    const bool now = goes_now(channel, op);
    op.posts_reads = now;
    if (goes_alone(m, channel, op, now)) return start_alone(m, op);
    try_whole(m, op);
    const bool is_short = op.bytes < m.sched.striping_threshold && !op.whole && op.rider == nullptr;
    if (is_short && (now || uncut.empty())) return start_short(m, op);
    if (op.whole || now || op.rider != nullptr || (uncut.empty() && !waits_whole(channel, op))) return cut(m, op);
    if (op.kind == WorkKind::kGet && !channel.can_read())
        for (Rail& rail : channel.rails) ++rail.counts.read_waits;
    uncut.push_back(&op);
}

}  // namespace coop::ib
