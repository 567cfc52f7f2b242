// SPDX-License-Identifier: BSD-3-Clause
#include "connect.h"

#include <algorithm>

#include "connections.h"
#include "diagnose.h"
#include "failover.h"
#include "failure.h"
#include "message.h"
#include "migration.h"
#include "module.h"
#include "operation.h"
#include "procs.h"

namespace coop::ib {
namespace {

void make_channel(Module& m, Endpoint& endpoint) {
    endpoint.channel = std::make_unique<Channel>(m, endpoint);
    endpoint.channel->repairs = endpoint.survives;
    endpoint.channel->until_ring = m.given.ring_peers == 0 ? 0 : static_cast<std::uint32_t>(m.given.ring_threshold);
}

void begin_connecting(Module& m, Endpoint& endpoint) {
    if (!endpoint.channel) make_channel(m, endpoint);
    endpoint.channel->state = ChannelState::kConnecting;
    ++m.connecting;
}

void end_connecting(Module& m, Channel& channel, ChannelState state) {
    if (channel.state == ChannelState::kConnecting) --m.connecting;
    channel.state = state;
}

// Finds the peer that a piece of news is about, and makes its endpoint if it has none: the peer may have requested the
// connection first. Returns null if there is no such peer.
Endpoint* endpoint_of(Module& m, std::uint64_t id) {
    if (const auto known = m.endpoints.find(id); known != m.endpoints.end()) return known->second.get();
    opal_proc_t* proc = opal_proc_for_name(name_of(id));
    return proc != nullptr ? find_endpoint(m, proc) : nullptr;
}

// Describes all rails, by number, to the scheduler. A rail that has not opened is down.
sched::RailSet describe_rails(const Module& m, const Endpoint& endpoint, const std::vector<path::PathChoice>& paths) {
    sched::RailSet set;
    const sched::RailMask up = endpoint.channel->rails.up();
    for (const path::PathChoice& path : paths) {
        const bool is_up = (up & sched::bit_of(static_cast<sched::RailIndex>(set.size()))) != 0;
        const path::PortRecord& port = m.own.ports[path.local_port];
        const std::uint64_t mbytes_per_s = std::min(port.rate_mbytes_per_s,
                                                    endpoint.remote.ports[path.remote_port].rate_mbytes_per_s);
        static_cast<void>(set.add({.hca = port.hca,
                                   .port = port.port,
                                   .path = path.local_bits,
                                   .qp = static_cast<std::uint8_t>(path.qp),
                                   .mtu_bytes = path::mtu_bytes(port.mtu),
                                   .bytes_per_s = mbytes_per_s * 1'000'000},
                                  is_up ? sched::RailState::kUp : sched::RailState::kDown));
    }
    set.set_order(path::order_of_use(paths, m.own.ports, m.nearness));
    return set;
}

// The settings must fit the number of all rails. If they do not fit the number of open rails, the user is told.
void check_settings(const Module& m, const Endpoint& endpoint) {
    const rail::Rails<Rail>& rails = endpoint.channel->rails;
    const std::size_t all = rails.numbers(), open = sched::count_of(rails.up());
    if (const auto wrong = check_rails(m.given, m.sched, all)) rails_differ(endpoint.proc, *wrong);
    if (check_rails(m.given, m.sched, open)) fewer_rails(endpoint.proc, open, all);
}

void on_queue_pairs(Module& m, Endpoint& endpoint, const std::vector<QueuePairName>& names) {
    if (!endpoint.channel || endpoint.channel->state == ChannelState::kUnused) begin_connecting(m, endpoint);
    for (const QueuePairName& name : names) m.uses[name.hca].qp_users[name.number] = &endpoint;
}

// Moves the rails into the channel; the number of a rail is that of its path, and their queue pairs for reads follow in
// the same order. Closed ones are kept, too, because requests posted on them may still complete.
void take_rails(Module& m, Endpoint& endpoint, News& news) {
    Channel& channel = *endpoint.channel;
    for (std::size_t i = 0, readers = 0; i < news.rails.size(); ++i) {
        std::unique_ptr<Rail>& rail = news.rails[i];
        const bool is_reader = news.paths[i].is_for_reads();
        const std::size_t number = is_reader ? readers++ : i;
        if (rail != nullptr) {
            if (rail->state == rail::RailState::kOpening) rail->state = rail::RailState::kUp;
            if (rail->state == rail::RailState::kClosed) m.uses[rail->local_hca].qp_users.erase(rail->qp.number());
            set_mark(endpoint, *rail, number);
        }
        if (is_reader) channel.rails.put_reader(static_cast<sched::RailIndex>(number), std::move(rail));
        else channel.rails.put(std::move(rail));
    }
    std::erase_if(news.paths, [](const path::PathChoice& path) { return path.is_for_reads(); });
}

std::optional<sched::RailIndex> rail_for_atomics(const Endpoint& endpoint) {
    for (const Rail& rail : endpoint.channel->rails)
        if (rail.remote_hca == endpoint.atomic_hca) return rail.number();
    return std::nullopt;
}

std::uint32_t most_pieces(const Channel& channel) {
    std::uint32_t most = kMostPieces;
    for (const Rail& rail : channel.rails) {
        const Rail* const reader = channel.rails.reader(rail.number());
        most = std::min({most, rail.depth(), reader != nullptr ? reader->depth() : most});
    }
    return most;
}

// Both sides have opened the rails, which carry data from now on.
void on_established(Module& m, Endpoint& endpoint, News& news) {
    Channel& channel = *endpoint.channel;
    const std::vector<path::PathChoice> paths = news.paths;
    take_rails(m, endpoint, news);
    check_settings(m, endpoint);
    check_alternates(m, endpoint);
    if (!news.silent.empty()) rail_is_silent(endpoint.proc, news.silent.front(), news.silent.size());
    for (const Rail& rail : channel.rails) channel.has_own_receives |= !rail.receives.empty();
    channel.atomic_rail = rail_for_atomics(endpoint);
    channel.scheduler.emplace(m.sched, describe_rails(m, endpoint, news.paths));
    channel.most_pieces = most_pieces(channel);
    if (endpoint.survives) prepare_repairs(endpoint, paths);
    end_connecting(m, channel, ChannelState::kConnected);
    endpoint.connected.store(true, std::memory_order_release);
    // Until now nothing could be sent, so the peer may be waiting for credits.
    post_receive_credits(m, endpoint);
    release_waiting(m, endpoint);
}

bool is_waited_for(const Endpoint& endpoint) { return !endpoint.waiting.empty() || !endpoint.waiting_ops.empty(); }

// Ends the job, unless nothing waits for the connection and the peer is on this node, where another transport reaches
// it.
void on_given_up(Module& m, Endpoint& endpoint, News& news) {
    if (is_waited_for(endpoint) || !OPAL_PROC_ON_LOCAL_NODE(endpoint.proc->proc_flags))
        cannot_connect(endpoint.proc, path::describe(news.reason));
    if (!endpoint.channel) make_channel(m, endpoint);
    take_rails(m, endpoint, news);
    endpoint.channel->why_broken = path::describe(news.reason);
    end_connecting(m, *endpoint.channel, ChannelState::kBroken);
}

void on_event(Module& m, const News& news) {
    switch (rail::meaning_of(news.event.type)) {
    case rail::Meaning::kNothing: return;
    case rail::Meaning::kNotice: return on_port_changed(m, news.hca, news.event);
    case rail::Meaning::kRailLost: return on_queue_pair_error(m, news.hca, news.event);
    case rail::Meaning::kHcaLost: return on_hca_lost(m, news.hca, news.event);
    }
}

void on_news(Module& m, News& news) {
    if (news.what == News::What::kEvent) return on_event(m, news);
    if (news.what == News::What::kMoved) return note_moved(m, news.moved);
    Endpoint* endpoint = endpoint_of(m, news.peer);
    if (endpoint == nullptr) return;
    if (news.rail != path::kAllRails && news.what != News::What::kQueuePairs) return on_repair_news(m, *endpoint, news);
    switch (news.what) {
    case News::What::kQueuePairs: return on_queue_pairs(m, *endpoint, news.names);
    case News::What::kEstablished: return on_established(m, *endpoint, news);
    case News::What::kGivenUp: return on_given_up(m, *endpoint, news);
    case News::What::kLate:
        if (is_waited_for(*endpoint)) peer_is_late(endpoint->proc, m.given.connect_timeout);
        return;
    case News::What::kLeft: return on_left(*endpoint);
    case News::What::kEvent:
    case News::What::kMoved:
    case News::What::kClosing:
    case News::What::kAsked:
    case News::What::kBusy: return;
    }
}

}  // namespace

void set_mark(Endpoint& endpoint, Rail& rail, std::size_t number) {
    for (Work* mark : {&rail.mark, &rail.last, &rail.pulse}) {
        mark->rail = static_cast<sched::RailIndex>(number);
        mark->endpoint = &endpoint;
    }
    if (endpoint.channel->module.migrations) endpoint.channel->module.migrations->adopt(rail);
}

// A rail may fail meanwhile, so that the rest has to wait again.
void release_waiting(Module& m, Endpoint& endpoint) {
    std::uint64_t& waited = endpoint.channel->connect_waits;
    for (; endpoint.channel->has_usable_rail() && !endpoint.waiting.empty(); ++waited)
        post_fragment(endpoint, Fragment::of(*endpoint.waiting.pop_front()));
    for (; endpoint.channel->has_usable_rail() && !endpoint.waiting_ops.empty(); ++waited)
        start_op(m, *endpoint.waiting_ops.pop_front());
}

void take_news(Module& m) {
    for (News& news : m.connections->take_news()) on_news(m, news);
}

void connect(Module& m, Endpoint& endpoint) {
    if (endpoint.channel && endpoint.channel->state == ChannelState::kBroken)
        cannot_connect(endpoint.proc, endpoint.channel->why_broken);
    if (endpoint.channel && endpoint.channel->state != ChannelState::kUnused) return;
    begin_connecting(m, endpoint);
    m.connections->want(endpoint.id, endpoint.remote);
    take_news(m);
}

int progress_connections(Module& m) {
    if (m.connecting != 0 || !m.connections->has_thread()) m.connections->poll();
    if (!m.connections->has_news()) return 0;
    Guard guard(m);
    take_news(m);
    return 1;
}

}  // namespace coop::ib
