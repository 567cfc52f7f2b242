// SPDX-License-Identifier: BSD-3-Clause
#include "sim/packets.h"

#include <algorithm>

namespace coop::sim {

PacketNetwork::PacketNetwork(const Topology& t, const PacketRules& rules) : rules_(rules) {
    for (const Link& link : t.links) {
        Cable& cable = cables_.emplace_back();
        cable.ns_per_byte = 1e9 / link.bytes_per_s;
        cable.from_host = t.is_host(link.from);
        cable.to_host = t.is_host(link.to);
    }
    for (const auto& ports : t.ports)
        for (std::uint32_t port = 0; port < ports.size(); ++port) cables_[ports[port]].port = port;
    for (LinkIndex link = 0; link < cables_.size(); ++link) {
        if (cables_[link].to_host) continue;
        cables_[link].first_queue = static_cast<std::uint32_t>(queues_.size());
        const std::size_t ways = rules.queues == Queues::kInput ? 1 : t.ports[t.links[link].to].size();
        for (std::size_t i = 0; i < ways; ++i) queues_.push_back({link, {}});
    }
}

FlowIndex PacketNetwork::begin(const Route& route, double bytes, std::uint32_t owner) {
    FlowIndex index;
    if (free_.empty()) {
        index = static_cast<FlowIndex>(flows_.size());
        flows_.emplace_back();
    } else {
        index = free_.back();
        free_.pop_back();
    }
    flows_[index] = {route, static_cast<std::uint64_t>(bytes), 0, owner, true, false};
    cables_[route.links[0]].asking.push_back(index);
    send(route.links[0]);
    return index;
}

// The flow stays until its last packet has arrived, or until the HCA's turn reaches it.
void PacketNetwork::cut(FlowIndex index) noexcept {
    Flow& flow = flows_[index];
    flow.cut = true;
    flow.live = false;
}

// Sends the next packet over a link, if there is one and the buffer has room for it.
void PacketNetwork::send(LinkIndex link) {
    Cable& cable = cables_[link];
    while (!cable.busy && !cable.asking.empty()) {
        const std::uint32_t first = cable.asking.front();
        Packet packet{};
        if (cable.from_host) {
            Flow& flow = flows_[first];
            if (flow.cut) {
                cable.asking.pop_front();
                flow.to_send = 0;
                if (flow.under_way == 0) release(first);
                continue;
            }
            packet = {first, static_cast<std::uint32_t>(std::min<std::uint64_t>(rules_.mtu_bytes, flow.to_send)), 0};
        } else {
            packet = queues_[first].packets.front();
        }
        if (!cable.to_host && cable.used + packet.bytes > rules_.buffer_bytes) return;
        cable.asking.pop_front();
        if (cable.from_host) {
            Flow& flow = flows_[first];
            flow.to_send -= packet.bytes;
            flow.under_way += packet.bytes;
            if (flow.to_send != 0) cable.asking.push_back(first);
        }
        cable.used += packet.bytes;
        cable.packet = packet;
        cable.from_queue = first;
        cable.busy = true;
        arrivals_.add(now_ns_ + packet.bytes * cable.ns_per_byte, EventKind::kLanded, link);
    }
}

void PacketNetwork::take_done(double end_ns, const OnDone& on_done) {
    while (arrivals_.next_ns() <= end_ns) {
        const Event event = arrivals_.take();
        now_ns_ = event.at_ns;
        arrive(event.what, on_done);
    }
    now_ns_ = end_ns;
}

void PacketNetwork::arrive(LinkIndex link, const OnDone& on_done) {
    Cable& cable = cables_[link];
    const Packet packet = cable.packet;
    cable.busy = false;
    cable.carried += packet.bytes;
    if (!cable.from_host) leave_queue(cable.from_queue);
    if (cable.to_host) {
        cable.used -= packet.bytes;
        deliver(packet, on_done);
    } else {
        enter_queue(link, packet);
    }
    send(link);
}

// The first packet of this queue has left: its space is free, and the next packet asks for its link.
void PacketNetwork::leave_queue(std::uint32_t index) {
    Queue& queue = queues_[index];
    cables_[queue.cable].used -= queue.packets.front().bytes;
    queue.packets.pop_front();
    if (!queue.packets.empty()) ask(index);
    send(queue.cable);
}

void PacketNetwork::enter_queue(LinkIndex link, const Packet& packet) {
    Packet here = packet;
    ++here.hop;
    const LinkIndex next = flows_[here.flow].route.links[here.hop];
    const std::uint32_t index = cables_[link].first_queue + (rules_.queues == Queues::kInput ? 0 : cables_[next].port);
    queues_[index].packets.push_back(here);
    if (queues_[index].packets.size() == 1) ask(index);
}

void PacketNetwork::ask(std::uint32_t index) {
    const Packet& first = queues_[index].packets.front();
    const LinkIndex next = flows_[first.flow].route.links[first.hop];
    cables_[next].asking.push_back(index);
    send(next);
}

void PacketNetwork::deliver(const Packet& packet, const OnDone& on_done) {
    Flow& flow = flows_[packet.flow];
    flow.under_way -= packet.bytes;
    if (flow.to_send != 0 || flow.under_way != 0) return;
    const bool cut = flow.cut;
    const std::uint32_t owner = flow.owner;
    release(packet.flow);
    if (!cut) on_done(owner, now_ns_);
}

void PacketNetwork::release(FlowIndex flow) {
    flows_[flow].live = false;
    free_.push_back(flow);
}

std::vector<FlowIndex> PacketNetwork::flows_over(LinkIndex link) const {
    std::vector<FlowIndex> found;
    for (FlowIndex flow = 0; flow < flows_.size(); ++flow) {
        const auto links = flows_[flow].route.span();
        if (flows_[flow].live && std::find(links.begin(), links.end(), link) != links.end()) found.push_back(flow);
    }
    return found;
}

}  // namespace coop::sim
