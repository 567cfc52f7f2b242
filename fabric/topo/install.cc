// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/install.h"

#include <algorithm>
#include <cstring>

#include "fabric/shm/trace.h"
#include "fabric/topo/profiles.h"
#include "fabric/topo/routing.h"

namespace coop::fabric {
namespace {

constexpr std::uint64_t kFirstGuid = 0x0002c90300000000;

template <std::size_t N>
void set_name(char (&to)[N], const std::string& name) {
    std::strncpy(to, name.c_str(), N - 1);
    to[N - 1] = '\0';
}

void put_64(std::uint8_t* at, std::uint64_t value) {
    for (int i = 7; i >= 0; --i, value >>= 8) at[i] = static_cast<std::uint8_t>(value);
}

std::uint64_t guid_of(std::uint32_t hca) { return kFirstGuid + (std::uint64_t{hca} + 1) * 16; }

// splitmix64: gives links with consecutive numbers unrelated random sequences.
std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    value ^= value >> 31;
    return value == 0 ? 1 : value;
}

Capacity capacity_for(const Topology& t, const Forwarding& tables) {
    Capacity capacity;
    capacity.hosts = static_cast<std::uint32_t>(t.hosts.size());
    capacity.hcas = static_cast<std::uint32_t>(t.hcas.size());
    capacity.ports = static_cast<std::uint32_t>(t.ports.size());
    capacity.switches = static_cast<std::uint32_t>(t.switches.size());
    capacity.links = static_cast<std::uint32_t>(2 * t.cables.size());
    capacity.lids = tables.lids;
    capacity.pinned_routes = static_cast<std::uint32_t>(t.routes.size());
    return capacity;
}

void fill_header(const Topology& t, const SubnetSettings& settings, Header& header) {
    header.seed = settings.seed;
    header.subnet_prefix = t.prefix;
    header.islands = t.islands ? 1 : 0;
    header.strict_memory = settings.strict_memory;
    header.strict_arm = settings.strict_arm;
    header.strict_fork = settings.strict_fork;
    header.trace_messages = settings.trace_messages;
    header.memory_lock_limit = settings.memory_lock_limit;
}

void fill_hosts(const Topology& t, const Segment& subnet) {
    for (std::uint32_t i = 0; i < t.hosts.size(); ++i) set_name(subnet.hosts()[i].name, t.hosts[i].name);
    for (std::uint32_t i = 0; i < t.hcas.size(); ++i) {
        Host& host = subnet.hosts()[t.hcas[i].host];
        if (host.hcas++ == 0) host.first_hca = i;
    }
    for (std::uint32_t i = 0; i < t.switches.size(); ++i) set_name(subnet.switches()[i].name, t.switches[i].name);
}

void fill_hcas(const Topology& t, const SubnetSettings& settings, const Segment& subnet) {
    for (std::uint32_t i = 0; i < t.hcas.size(); ++i) {
        Hca& hca = subnet.hcas()[i];
        hca.host = t.hcas[i].host;
        set_name(hca.name, t.hcas[i].name);
        hca.guid = guid_of(i);
        hca.profile = *t.hcas[i].profile;
        if (t.ethernet) hca.profile.apm = 0;  // RoCE has none
        hca.register_cost = t.hcas[i].register_cost;
        hca.atomics.create();
        hca.landing = mixed(~settings.seed + i);
    }
    for (std::uint32_t i = 0; i < t.ports.size(); ++i) {
        Hca& hca = subnet.hcas()[t.ports[i].hca];
        if (hca.ports++ == 0) hca.first_port = i;
    }
}

void fill_ib_gids(Port& port, std::uint64_t port_guid) {
    put_64(port.gids[0], port.gid_prefix);
    put_64(port.gids[0] + 8, port_guid);
    port.gid_count = 1;
}

// The MAC address is 00:02:c9:HH:HH:PP from HCA and port number; the GID holds it as EUI-64, with the universal/local
// bit inverted.
void fill_roce_gids(const Segment& subnet, Port& port) {
    const Hca& hca = subnet.hcas()[port.hca];
    const std::uint64_t number = (std::uint64_t{port.hca} + 1) << 8 | port.number;
    put_64(port.gids[0], kDefaultPrefix);
    put_64(port.gids[0] + 8, 0x0202c9fffe000000 | number);
    const Host& host = subnet.hosts()[hca.host];
    const std::uint32_t first = subnet.hcas()[host.first_hca].first_port;
    const std::uint32_t rail = hca.first_port + port.number - 1 - first;
    put_64(port.gids[1] + 8, 0x0000ffff00000000 | 10u << 24 | (rail & 0xff) << 16 | ((hca.host + 1) & 0xffff));
    port.gid_count = 2;
}

void fill_ports(const Topology& t, const SubnetSettings& settings, const Segment& subnet) {
    for (std::uint32_t i = 0; i < t.ports.size(); ++i) {
        const PortPlan& plan = t.ports[i];
        Port& port = subnet.ports()[i];
        port.loopback_rate = settings.loopback_rate;
        port.hca = plan.hca;
        port.number = plan.number;
        port.link_layer = t.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
        port.lid = t.ethernet ? 0 : plan.lid;
        port.route_lid = plan.lid;
        port.lmc = plan.lmc;
        port.mtu_bytes = plan.mtu_bytes;
        port.gid_prefix = plan.prefix != 0 ? plan.prefix : t.prefix;
        port.grh_required = plan.grh_required ? 1 : 0;
        port.pkey_count = static_cast<std::uint32_t>(plan.pkeys.size());
        std::ranges::copy(plan.pkeys, port.pkeys);
        if (t.ethernet) fill_roce_gids(subnet, port);
        else fill_ib_gids(port, guid_of(plan.hca) + plan.number);
    }
}

void fill_link(const Topology& t, const SubnetSettings& settings, std::uint32_t index, const Segment& subnet) {
    const CablePlan& cable = t.cables[index / 2];
    const DirectionPlan& direction = index & 1 ? cable.back : cable.there;
    Link& link = subnet.links()[index];
    link.from = t.link_from(index);
    link.to = t.link_to(index);
    link.cable = number_of_cable(t, index / 2);
    link.rate = direction.rate;
    link.latency_ns = direction.latency_ns;
    link.loss = direction.loss;
    link.background = direction.background;
    link.dice = mixed(settings.seed + index);
    if (link.from.kind == NodeKind::port) subnet.ports()[link.from.index].link_out = index;
    if (link.to.kind == NodeKind::port) subnet.ports()[link.to.index].link_in = index;
}

void fill_lids(const Topology& t, const Segment& subnet) {
    for (Lid& lid : subnet.lids()) lid.port = kNone;
    for (std::uint32_t i = 0; i < t.ports.size(); ++i)
        for (std::uint32_t bits = 0; bits < 1u << t.ports[i].lmc; ++bits) subnet.lids()[t.ports[i].lid + bits].port = i;
}

void fill_routes(const Topology& t, const Forwarding& tables, const Segment& subnet) {
    for (std::size_t i = 0; i < tables.next.size(); ++i) subnet.forwards()[i] = tables.next[i];
    for (std::size_t i = 0; i < t.routes.size(); ++i) {
        PinnedRoute& route = subnet.pinned_routes()[i];
        route.slid = static_cast<std::uint16_t>(t.routes[i].slid);
        route.dlid = static_cast<std::uint16_t>(t.routes[i].dlid);
        route.hops = static_cast<std::uint32_t>(t.routes[i].links.size());
        std::ranges::copy(t.routes[i].links, route.links);
    }
}

DirectionPlan direction_of(const Link& link) {
    return {.rate = link.rate, .latency_ns = link.latency_ns, .loss = link.loss, .background = link.background};
}

}  // namespace

Error install(const Topology& t, const SubnetSettings& settings, const std::string& name, bool until_i_end,
              Segment& subnet) {
    Forwarding tables;
    if (Flaw flaw = find_shortest_paths(t, tables)) return {flaw.text};
    if (Error error = subnet.create(name, capacity_for(t, tables))) return error;
    fill_header(t, settings, subnet.header());
    fill_hosts(t, subnet);
    fill_hcas(t, settings, subnet);
    fill_ports(t, settings, subnet);
    for (std::uint32_t i = 0; i < subnet.links().size(); ++i) fill_link(t, settings, i, subnet);
    fill_lids(t, subnet);
    fill_routes(t, tables, subnet);
    subnet.header().keeper.create();
    if (until_i_end) {
        subnet.header().has_keeper = 1;
        subnet.header().keeper.lock();
    }
    subnet.publish();
    trace(subnet, TraceKind::created);
    return {};
}

Topology read_topology(const Segment& subnet) {
    Topology t;
    t.prefix = subnet.header().subnet_prefix;
    t.islands = subnet.header().islands != 0;
    for (const Host& host : subnet.hosts()) t.hosts.push_back({host.name});
    for (const Hca& hca : subnet.hcas())
        t.hcas.push_back({hca.host, hca.name, find_profile(hca.profile.name), hca.register_cost});
    for (std::uint32_t i = 0; i < subnet.ports().size(); ++i) {
        const Port& port = subnet.ports()[i];
        t.ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
        t.ports.push_back({port.hca,
                           port.number,
                           port.route_lid,
                           port.lmc,
                           port.mtu_bytes,
                           {port.pkeys, port.pkeys + port.pkey_count},
                           port.grh_required != 0,
                           port.gid_prefix == t.prefix ? 0 : port.gid_prefix});
    }
    for (const Switch& one : subnet.switches()) t.switches.push_back({one.name});
    for (std::size_t i = 0; i + 1 < subnet.links().size(); i += 2) {
        const Link &there = subnet.links()[i], &back = subnet.links()[i + 1];
        t.cables.push_back({there.from, there.to, direction_of(there), direction_of(back)});
    }
    for (const PinnedRoute& route : subnet.pinned_routes())
        t.routes.push_back({route.slid, route.dlid, {route.links, route.links + route.hops}});
    return t;
}

bool is_abandoned(const Segment& subnet) {
    return subnet.header().has_keeper != 0 && !subnet.header().keeper.is_held();
}

}  // namespace coop::fabric
