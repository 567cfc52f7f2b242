// SPDX-License-Identifier: BSD-3-Clause
#include "connect.h"

#include <algorithm>

#include "connections.h"
#include "diagnose.h"
#include "failure.h"
#include "message.h"
#include "module.h"
#include "operation.h"
#include "procs.h"

namespace coop::ib {
namespace {

void make_channel(Module& m, Endpoint& endpoint) {
    endpoint.channel = std::make_unique<Channel>();
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

// The peer that a piece of news is about; it may have asked before this process has heard of it. Null: nobody.
Endpoint* endpoint_of(Module& m, std::uint64_t id) {
    if (const auto known = m.endpoints.find(id); known != m.endpoints.end()) return known->second.get();
    opal_proc_t* proc = opal_proc_for_name(name_of(id));
    return proc != nullptr ? find_endpoint(m, proc) : nullptr;
}

sched::RailSet describe_rails(const Module& m, const Endpoint& endpoint, const std::vector<path::PathChoice>& paths) {
    sched::RailSet set;
    for (const path::PathChoice& path : paths) {
        const path::PortRecord& port = m.own.ports[path.local_port];
        const std::uint64_t mbytes_per_s = std::min(port.rate_mbytes_per_s, endpoint.remote.ports[path.remote_port].rate_mbytes_per_s);
        static_cast<void>(set.add({.hca = port.hca, .port = port.port, .path = path.local_bits, .qp = static_cast<std::uint8_t>(path.qp),
                                   .mtu_bytes = path::mtu_bytes(port.mtu), .bytes_per_s = mbytes_per_s * 1'000'000}));
    }
    set.set_order(path::order_of_use(paths, m.own.ports, m.nearness));
    return set;
}

// The settings describe all rails. Where some have not opened, they are restricted to the open ones.
const sched::SchedConfig& settings_for(const Module& m, Endpoint& endpoint, sched::RailMask open, std::size_t all) {
    Channel& channel = *endpoint.channel;
    if (const auto wrong = check_rails(m.given, m.sched, all)) rails_differ(endpoint.proc, *wrong);
    if (!check_rails(m.given, m.sched, sched::count_of(open))) return m.sched;
    channel.settings = std::make_unique<const sched::SchedConfig>(sched::fitted(m.sched, open));
    fewer_rails(endpoint.proc, sched::count_of(open), all);
    return *channel.settings;
}

void set_mark(Endpoint& endpoint, Rail& rail, std::size_t index) {
    rail.mark.kind = WorkKind::kMark;
    rail.mark.rail = static_cast<sched::RailIndex>(index);
    rail.mark.endpoint = &endpoint;
}

void on_queue_pairs(Module& m, Endpoint& endpoint, const std::vector<QueuePairName>& names) {
    if (!endpoint.channel || endpoint.channel->state == ChannelState::kUnused) begin_connecting(m, endpoint);
    for (const QueuePairName& name : names) m.uses[name.hca].qp_users[name.number] = &endpoint;
}

// Rails that do not serve are kept, since what was posted on them may yet complete with an error.
void keep_closed(Module& m, Channel& channel, std::vector<std::unique_ptr<Rail>>& closed) {
    for (const auto& rail : closed) {
        rail->state = rail::RailState::kClosed;
        m.uses[rail->local_hca].qp_users.erase(rail->qp->qp_num);
    }
    channel.closed.insert(channel.closed.end(), std::make_move_iterator(closed.begin()), std::make_move_iterator(closed.end()));
}

std::optional<sched::RailIndex> rail_for_atomics(const Endpoint& endpoint) {
    const auto& rails = endpoint.channel->rails;
    const auto found = std::find_if(rails.begin(), rails.end(), [&](const auto& rail) { return rail->remote_hca == endpoint.atomic_hca; });
    return found != rails.end() ? std::optional(static_cast<sched::RailIndex>(found - rails.begin())) : std::nullopt;
}

// Starts everything that has waited for the connection, in order.
void release_waiting(Module& m, Endpoint& endpoint) {
    std::uint64_t& waited = endpoint.channel->connect_waits;
    for (; Work* work = endpoint.waiting.pop_front(); ++waited) post_fragment(m, endpoint, Fragment::of(*work));
    for (; RdmaOp* op = endpoint.waiting_ops.pop_front(); ++waited) start_op(m, *op);
}

// The rails that both sides have opened carry data from now on.
void on_established(Module& m, Endpoint& endpoint, News& news) {
    Channel& channel = *endpoint.channel;
    sched::RailMask open = 0;
    std::vector<path::PathChoice> paths;
    for (std::size_t i = 0; i < news.rails.size(); ++i) {
        if (news.rails[i] == nullptr) continue;
        set_mark(endpoint, *news.rails[i], channel.rails.size());
        channel.has_own_receives |= !news.rails[i]->receives.empty();
        news.rails[i]->state = rail::RailState::kUp;
        channel.rails.push_back(std::move(news.rails[i]));
        paths.push_back(news.paths[i]);
        open |= sched::bit_of(static_cast<sched::RailIndex>(i));
    }
    keep_closed(m, channel, news.closed);
    if (!news.silent.empty()) rail_is_silent(endpoint.proc, news.silent.front(), news.silent.size());
    channel.atomic_rail = rail_for_atomics(endpoint);
    channel.scheduler.emplace(settings_for(m, endpoint, open, news.paths.size()), describe_rails(m, endpoint, paths));
    end_connecting(m, channel, ChannelState::kConnected);
    endpoint.connected.store(true, std::memory_order_release);
    // What has arrived meanwhile could not be answered with credits, and the peer may wait for some.
    const bool owes = std::any_of(channel.rails.begin(), channel.rails.end(), [](const auto& rail) { return !rail->receives.empty() && rail->own_receives.owes_half(); });
    if (owes) post_credits(m, endpoint);
    release_waiting(m, endpoint);
}

bool is_waited_for(const Endpoint& endpoint) { return !endpoint.waiting.empty() || !endpoint.waiting_ops.empty(); }

// Where nothing waits for it, inside the node, there is another way: nobody uses this one, and nobody is told.
void on_given_up(Module& m, Endpoint& endpoint, News& news) {
    if (is_waited_for(endpoint) || !OPAL_PROC_ON_LOCAL_NODE(endpoint.proc->proc_flags)) cannot_connect(endpoint.proc, path::describe(news.reason));
    if (!endpoint.channel) make_channel(m, endpoint);
    keep_closed(m, *endpoint.channel, news.closed);
    endpoint.channel->why_broken = path::describe(news.reason);
    end_connecting(m, *endpoint.channel, ChannelState::kBroken);
}

void on_event(Module& m, const News& news) {
    switch (rail::meaning_of(news.event.type)) {
    case rail::Meaning::kNothing: return;
    case rail::Meaning::kNotice: return port_changed(m, news.hca, news.event);
    case rail::Meaning::kRailLost: return on_queue_pair_error(m, news.hca, news.event);
    case rail::Meaning::kHcaLost: return on_hca_lost(m, news.hca, news.event);
    }
}

void on_news(Module& m, News& news) {
    if (news.what == News::What::kEvent) return on_event(m, news);
    Endpoint* endpoint = endpoint_of(m, news.peer);
    if (endpoint == nullptr) return;
    switch (news.what) {
    case News::What::kQueuePairs: return on_queue_pairs(m, *endpoint, news.names);
    case News::What::kEstablished: return on_established(m, *endpoint, news);
    case News::What::kGivenUp: return on_given_up(m, *endpoint, news);
    case News::What::kLate:
        if (is_waited_for(*endpoint)) peer_is_late(endpoint->proc, m.given.connect_timeout);
        return;
    case News::What::kEvent: return;
    }
}

}  // namespace

void take_news(Module& m) {
    for (News& news : m.connections->take_news()) on_news(m, news);
}

void connect(Module& m, Endpoint& endpoint) {
    if (endpoint.channel && endpoint.channel->state == ChannelState::kBroken) cannot_connect(endpoint.proc, endpoint.channel->why_broken);
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
