// SPDX-License-Identifier: BSD-3-Clause
//
// Stripes on their queue pairs: one after the other, each a flow over its route.
// Failed stripes are sent again on another rail.
//
//     posted -> queued -> first on its queue pair -> flow -> landed -> FIN, completion
//                               |                     |
//                               | a cable of the route is down
//                               +---- retry_ns -------+-> failed -> another rail
#include <algorithm>

#include "sim/world.h"

namespace coop::sim {

void World::post(Process& process, std::uint32_t index) {
    StripeOnRail& stripe = stripes_[index];
    process.cpu_ns += plan_.costs.post_ns;
    if (stays_on_host(stripe)) process.cpu_ns += plan_.costs.node_copy_ns(stripe.bytes);
    channel_of(stripe).scheduler->on_posted(stripe.rail, stripe.bytes, stripe.posted_ns);
    agenda_.add(process.cpu_ns, EventKind::kPosted, index);
}

void World::on_posted(std::uint32_t index) {
    StripeOnRail& stripe = stripes_[index];
    Channel& channel = channel_of(stripe);
    stripe.next = kNone;
    if (channel.first[stripe.rail] == kNone) {
        channel.first[stripe.rail] = channel.last[stripe.rail] = index;
        return begin_stripe(index);
    }
    stripes_[channel.last[stripe.rail]].next = index;
    channel.last[stripe.rail] = index;
}

bool World::stays_on_host(const StripeOnRail& stripe) const noexcept {
    const Message& message = messages_[stripe.message];
    return processes_[message.sender].host == processes_[message.receiver].host;
}

void World::begin_stripe(std::uint32_t index) {
    StripeOnRail& stripe = stripes_[index];
    if (stays_on_host(stripe)) {  // it was copied when it was posted
        stripe.way_ns = plan_.costs.node_ns;
        return on_landed(index);
    }
    Channel& channel = channel_of(stripe);
    const Message& message = messages_[stripe.message];
    const std::uint32_t path = channel.scheduler->rails()[stripe.rail].info.path;
    const Route way = trace(plan_.topology, plan_.routes, processes_[message.sender].host,
                            processes_[message.receiver].host, path);
    const auto links = way.span();
    const bool broken = std::any_of(links.begin(), links.end(),
                                    [&](LinkIndex link) { return !plan_.topology.links[link].up; });
    if (links.empty() || broken) return fail_later(index);
    stripe.way_ns = plan_.costs.wire_ns + plan_.costs.hop_ns * (way.hops - 1);
    stripe.flow = network_->begin(way, static_cast<double>(std::max<std::uint64_t>(stripe.bytes, 1)), index);
}

void World::on_landed(std::uint32_t index) {
    StripeOnRail& stripe = stripes_[index];
    const Message& message = messages_[stripe.message];
    stripe.flow = kNone;
    take_off_rail(index);
    tell(message.receiver, now_ns_ + stripe.way_ns, NoticeKind::kFin, stripe.message, stripe.index);
    tell(message.sender, now_ns_ + 2 * stripe.way_ns, NoticeKind::kCompletion, index);
}

// Removes the first stripe of a queue pair and starts the next.
void World::take_off_rail(std::uint32_t index) {
    const StripeOnRail& stripe = stripes_[index];
    Channel& channel = channel_of(stripe);
    channel.first[stripe.rail] = stripe.next;
    if (stripe.next != kNone) begin_stripe(stripe.next);
}

// --- failures -------------------------------------------------------------------------------------------------------

void World::fail_later(std::uint32_t stripe) {
    agenda_.add(now_ns_ + plan_.costs.retry_ns, EventKind::kFailed, stripe);
}

// The queue pair is broken: all stripes that wait on it come back.
void World::on_failed(std::uint32_t index) {
    const StripeOnRail stripe = stripes_[index];
    Channel& channel = channel_of(stripe);
    channel.first[stripe.rail] = channel.last[stripe.rail] = kNone;
    for (std::uint32_t flushed = index; flushed != kNone; flushed = stripes_[flushed].next)
        tell(messages_[stripes_[flushed].message].sender, now_ns_, NoticeKind::kFailure, flushed);
}

// Sends the stripe on the rail that would get the largest share of it now. If there
// is no other rail, it stays on the same one: the next try may succeed.
void World::on_failure(Process& process, const Notice& notice) {
    StripeOnRail& stripe = stripes_[notice.what];
    Channel& channel = channel_of(stripe);
    sched::Scheduler& scheduler = *channel.scheduler;
    scheduler.on_aborted(stripe.rail, stripe.bytes, stripe.posted_ns);
    refresh_rails(channel);
    if (sched::count_of(scheduler.rails().usable() & ~sched::bit_of(stripe.rail)) != 0) {
        scheduler.set_state(stripe.rail, sched::RailState::kDown);
        const sched::Schedule again = scheduler.make_schedule(stripe.bytes, sched::Marker::kCollective,
                                                              static_cast<std::uint64_t>(process.cpu_ns));
        stripe.rail = std::max_element(again.begin(), again.end(), [](const auto& a, const auto& b) {
                          return a.length_bytes < b.length_bytes;
                      })->rail;
    }
    if (stripe.posted_ns != sched::kNotMeasured) stripe.posted_ns = static_cast<std::uint64_t>(process.cpu_ns);
    ++results_[process.job].replayed;
    post(process, notice.what);
}

// New routes come with new queue pairs: all rails are up again.
void World::refresh_rails(Channel& channel) {
    if (channel.routes_seen == routes_generation_) return;
    channel.routes_seen = routes_generation_;
    for (sched::RailIndex rail = 0; rail < channel.scheduler->rails().size(); ++rail)
        channel.scheduler->set_state(rail, sched::RailState::kUp);
}

}  // namespace coop::sim
