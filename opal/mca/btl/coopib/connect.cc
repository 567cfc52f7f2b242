// SPDX-License-Identifier: BSD-3-Clause
//
// Channels are made on demand: path/connect.h decides, this carries out.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "module.h"

namespace coop::ib {
namespace {

constexpr std::uint32_t kMostOwnReceives = 64;  // of a queue pair without a shared receive queue

bool post_receives(Module& m, std::uint32_t hca, std::uint32_t count, ibv_srq* srq, Rail* rail, std::vector<std::unique_ptr<ReceiveBuffer>>& buffers) {
    rail::Hca* const own[] = {&m.hcas[hca]};  // no other HCA writes there
    const std::size_t each = (m.buffer_bytes() + 63) / 64 * 64;
    auto memory = std::make_shared<RegisteredMemory>();
    if (!memory->make(each * count, own)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        buffers.push_back(std::make_unique<ReceiveBuffer>());
        *buffers.back() = {memory, memory->data() + i * each, rail, srq};
        post_receive(m, *buffers.back());
    }
    return true;
}

// A completion queue that everything on its queue pairs fits into.
void make_room(Module& m, std::uint32_t hca, std::uint32_t more) {
    HcaUse& use = m.uses[hca];
    use.cq_needed += more;
    if (use.cq_needed <= static_cast<std::uint32_t>(use.cq->cqe)) return;
    const std::uint32_t wanted = std::min(std::bit_ceil(use.cq_needed), m.hcas[hca].caps().max_cqe);
    ibv_resize_cq(use.cq, static_cast<int>(wanted));
}

std::unique_ptr<Rail> make_rail(Module& m, Endpoint& endpoint, const path::PathChoice& path) {
    const path::PortRecord& local = m.own.ports[path.local_port];
    const path::PortRecord& remote = endpoint.remote.ports[path.remote_port];
    rail::Hca& hca = m.hcas[local.hca];
    HcaUse& use = m.uses[local.hca];
    rail::RcCaps caps;
    caps.sends = std::min(static_cast<std::uint32_t>(m.given.send_depth), hca.caps().max_qp_wr);
    caps.receives = use.srq ? 1 : std::min({static_cast<std::uint32_t>(m.given.receives), kMostOwnReceives, hca.caps().max_qp_wr});
    caps.inline_bytes = hca.caps().max_inline;
    make_room(m, local.hca, caps.sends + (use.srq ? 0 : caps.receives));
    auto made = rail::make_rc_qp(hca, local, use.cq, use.cq, use.srq, caps);
    if (!made) return nullptr;
    auto rail = std::make_unique<Rail>();
    rail->local_hca = local.hca;
    rail->remote_hca = remote.hca;
    rail->depth = caps.sends;
    rail->max_inline = made->got.inline_bytes;
    rail->reads.reset(rail::rd_atomic_depth(hca, remote));
    rail->qp = std::move(made->qp);
    rail->counts_credits = remote.has_srq == 0;
    if (use.srq) return rail;
    rail->own_receives = sched::ReceiveCredits(caps.receives);
    endpoint.channel->has_own_receives = true;
    if (!post_receives(m, local.hca, caps.receives, nullptr, rail.get(), rail->receives)) return nullptr;
    return rail;
}

std::vector<std::uint32_t> make_rails(Module& m, Endpoint& endpoint) {
    Channel& channel = *endpoint.channel;
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < channel.connection->rails(); ++i) {
        channel.rails.push_back(make_rail(m, endpoint, channel.connection->path(i)));
        const Rail* rail = channel.rails.back().get();
        numbers.push_back(rail != nullptr ? rail->qp->qp_num : 0);
        if (rail != nullptr) m.uses[rail->local_hca].qp_users[rail->qp->qp_num] = &endpoint;
    }
    return numbers;
}

// Those that could not be.
path::RailMask connect_rails(Module& m, Endpoint& endpoint) {
    Channel& channel = *endpoint.channel;
    path::Connection& connection = *channel.connection;
    rail::RcTimes times;
    times.timeout = static_cast<std::uint8_t>(m.given.timeout);
    times.retries = static_cast<std::uint8_t>(m.given.retry_count);
    times.min_rnr_timer = static_cast<std::uint8_t>(m.given.min_rnr_timer);
    path::RailMask failed = 0;
    for (std::size_t i = 0; i < connection.rails(); ++i) {
        Rail* rail = channel.rails[i].get();
        if ((connection.live() >> i & 1) == 0 || rail == nullptr) continue;
        const path::PathChoice& path = connection.path(i);
        const auto done = rail::connect_rc_qp(m.hcas[rail->local_hca], rail->qp, m.own.ports[path.local_port],
                                              endpoint.remote.ports[path.remote_port], path, connection.rail(i), times);
        if (!done) {
            opal_output(0, "btl/coopib: a rail is not used: %s", done.trouble().sentence.c_str());
            failed |= path::RailMask{1} << i;
        }
    }
    return failed;
}

sched::RailSet describe_rails(const Module& m, const Channel& channel, const std::vector<path::PathChoice>& paths) {
    sched::RailSet set;
    for (std::size_t i = 0; i < channel.rails.size(); ++i) {
        const path::PortRecord& port = m.own.ports[paths[i].local_port];
        static_cast<void>(set.add({.hca = port.hca, .port = port.port, .path = paths[i].local_bits, .qp = static_cast<std::uint8_t>(paths[i].qp),
                                   .mtu_bytes = path::mtu_bytes(port.mtu), .bytes_per_s = port.rate_mbytes_per_s * std::uint64_t{1'000'000}}));
    }
    return set;
}

// What the parameters say of the rails is of all of them. Where some have not opened, it is taken for those that have.
const sched::SchedConfig& settings_for(const Module& m, Endpoint& endpoint, sched::RailMask open) {
    Channel& channel = *endpoint.channel;
    const std::size_t all = channel.connection->rails();
    if (const auto wrong = check_rails(m.given, m.sched, all)) rails_differ(endpoint.proc, *wrong);
    if (!check_rails(m.given, m.sched, sched::count_of(open))) return m.sched;
    channel.settings = std::make_unique<const sched::SchedConfig>(sched::fitted(m.sched, open));
    fewer_rails(endpoint.proc, sched::count_of(open), all);
    return *channel.settings;
}

// The rails that both sides have opened carry data from now on.
void establish(Module& m, Endpoint& endpoint) {
    Channel& channel = *endpoint.channel;
    const path::RailMask live = channel.connection->live();
    std::vector<std::unique_ptr<Rail>> rails;
    std::vector<path::PathChoice> paths;
    sched::RailMask open = 0;
    for (std::size_t i = 0; i < channel.rails.size(); ++i) {
        if ((live >> i & 1) == 0 || channel.rails[i] == nullptr) {
            if (const Rail* gone = channel.rails[i].get()) m.uses[gone->local_hca].qp_users.erase(gone->qp->qp_num);
            continue;
        }
        rails.push_back(std::move(channel.rails[i]));
        paths.push_back(channel.connection->path(i));
        open |= sched::bit_of(static_cast<sched::RailIndex>(i));
    }
    channel.rails = std::move(rails);
    const auto by_hca = [](const auto& a, const auto& b) { return a->remote_hca < b->remote_hca; };
    channel.atomic_rail = static_cast<std::size_t>(std::min_element(channel.rails.begin(), channel.rails.end(), by_hca) - channel.rails.begin());
    const sched::RailSet set = describe_rails(m, channel, paths);
    const sched::SchedConfig& settings = settings_for(m, endpoint, open);
    for (std::size_t i = 0; i < channel.rails.size(); ++i) {
        Work& mark = channel.rails[i]->mark;
        mark.kind = WorkKind::kMark;
        mark.rail = static_cast<sched::RailIndex>(i);
        mark.endpoint = &endpoint;
    }
    channel.scheduler.emplace(settings, set);
    if (channel.state == ChannelState::kConnecting) --m.connecting;
    channel.state = ChannelState::kConnected;
    release_waiting(m, endpoint);
}

// Where nothing waits for it, inside the node, there is another way: nobody uses this one, and nobody is told.
void give_up(Module& m, Endpoint& endpoint, path::Reason reason) {
    Channel& channel = *endpoint.channel;
    const bool is_needed = !endpoint.waiting.empty() || !endpoint.waiting_ops.empty();
    if (is_needed || !OPAL_PROC_ON_LOCAL_NODE(endpoint.proc->proc_flags)) cannot_connect(endpoint.proc, path::describe(reason));
    if (channel.state == ChannelState::kConnecting) --m.connecting;
    channel.state = ChannelState::kBroken;
}

void carry_out(Module& m, Endpoint& endpoint, const path::Actions& actions) {
    path::Connection& connection = *endpoint.channel->connection;
    for (const path::Action& action : actions) {
        switch (action.what) {
        case path::Do::kMakeQueuePairs: carry_out(m, endpoint, connection.on_qps_ready(make_rails(m, endpoint), now_ns())); break;
        case path::Do::kConnectQueuePairs: carry_out(m, endpoint, connection.on_connected(connect_rails(m, endpoint), now_ns())); break;
        case path::Do::kSend:
            // What does not go out is repeated.
            static_cast<void>(m.connector->send(endpoint.remote.ports, encode(connection.datagram(action.kind)), connection.attempt()));
            break;
        case path::Do::kEstablished: establish(m, endpoint); break;
        case path::Do::kGiveUp: give_up(m, endpoint, action.reason); break;
        }
    }
}

void make_channel(Module& m, Endpoint& endpoint) {
    endpoint.channel = std::make_unique<Channel>();
    endpoint.channel->until_ring = m.given.ring_peers == 0 ? 0 : static_cast<std::uint32_t>(m.given.ring_threshold);
    path::Patience patience;
    patience.limit = static_cast<std::uint64_t>(m.given.connect_timeout) * 1'000'000'000u;
    const auto generation = static_cast<std::uint32_t>(now_ns() >> 10) | 1;
    endpoint.channel->connection.emplace(m.id, endpoint.id, generation, path::choose_paths(m.own, endpoint.remote), patience);
}

void take_datagram(Module& m, std::span<const std::byte> bytes) {
    const path::Decoded decoded = path::decode(bytes);
    const auto* datagram = std::get_if<path::Datagram>(&decoded);
    if (datagram == nullptr || datagram->receiver != m.id) return;  // of another job, or broken on the way: it is repeated
    opal_process_name_t name;
    name.jobid = static_cast<opal_jobid_t>(datagram->sender >> 32);
    name.vpid = static_cast<opal_vpid_t>(datagram->sender & 0xffffffff);
    Endpoint* endpoint = nullptr;
    if (const auto known = m.endpoints.find(datagram->sender); known != m.endpoints.end()) endpoint = known->second.get();
    else if (opal_proc_t* proc = opal_proc_for_name(name)) endpoint = find_endpoint(m, proc);
    if (endpoint == nullptr) return;
    if (!endpoint->channel) make_channel(m, *endpoint);
    Channel& channel = *endpoint->channel;
    if (channel.state == ChannelState::kUnused) {
        channel.state = ChannelState::kConnecting;
        ++m.connecting;
    }
    carry_out(m, *endpoint, channel.connection->on_datagram(*datagram, now_ns()));
}

}  // namespace

bool open_receives(Module& m, std::uint32_t hca) {
    HcaUse& use = m.uses[hca];
    const auto count = std::min(static_cast<std::uint32_t>(m.given.receives), m.hcas[hca].caps().max_srq_wr);
    make_room(m, hca, count);
    return post_receives(m, hca, count, use.srq, nullptr, use.receives);
}

void connect(Module& m, Endpoint& endpoint) {
    if (!endpoint.channel) make_channel(m, endpoint);
    Channel& channel = *endpoint.channel;
    if (channel.state == ChannelState::kBroken) cannot_connect(endpoint.proc, path::describe(channel.connection->reason()));
    if (channel.state != ChannelState::kUnused) return;
    channel.state = ChannelState::kConnecting;
    ++m.connecting;
    carry_out(m, endpoint, channel.connection->on_want(now_ns()));
}

int progress_connections(Module& m, std::uint64_t now) {
    Guard guard(m);
    if (!m.connector) return 0;
    const int arrived = m.connector->poll([&](std::span<const std::byte> bytes) { take_datagram(m, bytes); });
    if (m.connecting == 0) return arrived;
    for (const auto& [id, endpoint] : m.endpoints) {
        if (!endpoint->channel || endpoint->channel->state == ChannelState::kUnused) continue;
        const auto due = endpoint->channel->connection->next_tick();
        if (due && *due <= now) carry_out(m, *endpoint, endpoint->channel->connection->on_tick(now));
    }
    return arrived;
}

}  // namespace coop::ib
