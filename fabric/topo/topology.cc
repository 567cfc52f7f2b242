// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/topology.h"

#include <algorithm>
#include <set>

#include "fabric/topo/routing.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

Flaw check_sizes(const Topology& t) {
    if (t.hosts.empty()) return {"there is no host"};
    if (t.ports.empty()) return {"there is no port"};
    for (std::uint32_t port = 0; port < t.ports.size(); ++port)
        if (t.ports[port].number < 1 || t.ports[port].number > kMaxPortsPerHca)
            return {t.port_name(port) + ": the ports of an HCA are 1.." + std::to_string(kMaxPortsPerHca), port};
    return {};
}

Flaw check_names(const Topology& t) {
    for (const HostPlan& host : t.hosts)
        if (!is_good_name(host.name, kLongestHostName)) return {"'" + host.name + "' is not a name for a host"};
    for (const SwitchPlan& plan : t.switches)
        if (!is_good_name(plan.name, kLongestHostName)) return {"'" + plan.name + "' is not a name for a switch"};
    for (const HcaPlan& hca : t.hcas)
        if (!is_good_name(hca.name, kLongestHcaName)) return {"'" + hca.name + "' is not a name for an HCA"};
    std::set<std::string> names;
    const auto is_new = [&](const std::string& name) { return names.insert(name).second; };
    for (const HostPlan& host : t.hosts)
        if (!is_new(host.name)) return {"the name '" + host.name + "' is given twice"};
    for (const SwitchPlan& plan : t.switches)
        if (!is_new(plan.name)) return {"the name '" + plan.name + "' is given twice"};
    for (std::uint32_t hca = 0; hca < t.hcas.size(); ++hca)
        if (!is_new(t.hca_name(hca))) return {"the name '" + t.hca_name(hca) + "' is given twice"};
    return {};
}

Flaw check_lids(const Topology& t) {
    std::vector<std::uint32_t> owner(kHighestLid + 1, kNone);
    for (std::uint32_t port = 0; port < t.ports.size(); ++port) {
        const PortPlan& plan = t.ports[port];
        const std::uint32_t count = 1u << plan.lmc;
        const std::string lid = t.port_name(port) + ": LID " + hex_text(plan.lid);
        if (plan.lid % count != 0) return {lid + " is not a multiple of 2^LMC, " + std::to_string(count), port};
        if (plan.lid == 0 || plan.lid + count - 1 > kHighestLid) return {lid + " is not in 0x1..0xbfff", port};
        for (std::uint32_t i = plan.lid; i < plan.lid + count; ++i) {
            if (owner[i] != kNone)
                return {t.port_name(port) + ": LID " + hex_text(i) + " is " + t.port_name(owner[i]) + "'s", port};
            owner[i] = port;
        }
    }
    return {};
}

Flaw check_pkeys(const Topology& t) {
    for (std::uint32_t port = 0; port < t.ports.size(); ++port) {
        const std::vector<std::uint16_t>& keys = t.ports[port].pkeys;
        if (keys.size() > kMaxPkeys)
            return {t.port_name(port) + ": " + std::to_string(keys.size()) + " P_Keys are more than " +
                        std::to_string(kMaxPkeys),
                    port};
        if (t.ethernet && keys != std::vector{kDefaultPkey})
            return {t.port_name(port) + ": RoCE has no partitions: its only P_Key is 0xffff", port};
        std::set<std::uint16_t> seen;
        for (const std::uint16_t key : keys)
            if (key != 0 && !seen.insert(key).second)
                return {t.port_name(port) + ": P_Key " + hex_text(key) + " is given twice", port};
        if (seen.empty()) return {t.port_name(port) + " has no P_Key", port};
    }
    return {};
}

Flaw check_cables(const Topology& t) {
    std::vector<int> cables(t.ports.size(), 0);
    for (const CablePlan& cable : t.cables) {
        if (cable.a == cable.b) return {"a cable from " + t.node_name(cable.a) + " to itself"};
        for (const Node& node : {cable.a, cable.b})
            if (node.kind == NodeKind::port && ++cables[node.index] > 1)
                return {t.port_name(node.index) + " has more than one cable", node.index};
    }
    for (std::uint32_t port = 0; port < t.ports.size(); ++port)
        if (cables[port] == 0) return {t.port_name(port) + " has no cable", port};
    return {};
}

Flaw check_route(const Topology& t, const RoutePlan& route) {
    const std::string name = "route " + hex_text(route.slid) + " " + hex_text(route.dlid);
    const std::uint32_t from = port_of_lid(t, route.slid), to = port_of_lid(t, route.dlid);
    if (from == kNone) return {name + ": no port has LID " + hex_text(route.slid)};
    if (to == kNone) return {name + ": no port has LID " + hex_text(route.dlid)};
    if (from == to) return {name + ": both LIDs are " + t.port_name(to) + "'s"};
    if (route.links.size() > kMaxHops)
        return {name + ": " + std::to_string(route.links.size()) + " cables; a route can have at most " +
                std::to_string(kMaxHops)};
    if (route.links.empty()) return {};
    Node at = {NodeKind::port, from};
    for (const std::uint32_t link : route.links) {
        if (!(t.link_from(link) == at)) return {name + ": breaks off at " + t.node_name(at)};
        at = t.link_to(link);
    }
    if (!(at == Node{NodeKind::port, to}))
        return {name + ": ends at " + t.node_name(at) + ", not at " + t.port_name(to)};
    return {};
}

Flaw check_routes(const Topology& t) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (const RoutePlan& route : t.routes) {
        if (Flaw flaw = check_route(t, route)) return flaw;
        if (!seen.insert({route.slid, route.dlid}).second)
            return {"route " + hex_text(route.slid) + " " + hex_text(route.dlid) + " is given twice"};
    }
    return {};
}

Flaw check_reach(const Topology& t) {
    Forwarding tables;
    return find_shortest_paths(t, tables);
}

}  // namespace

std::string Topology::hca_name(std::uint32_t hca) const { return hosts[hcas[hca].host].name + "/" + hcas[hca].name; }

std::string Topology::port_name(std::uint32_t port) const {
    return hca_name(ports[port].hca) + "/" + std::to_string(ports[port].number);
}

std::string Topology::node_name(const Node& node) const {
    return node.kind == NodeKind::port ? port_name(node.index) : switches[node.index].name;
}

bool is_good_name(const std::string& name, std::size_t longest) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto is_good = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' || c == '-';
    };
    // A name must not begin with a digit: the command line accepts LIDs and numbers in the same places.
    return !name.empty() && name.size() <= longest && name[0] != '-' && name[0] != '.' && !is_digit(name[0]) &&
           std::ranges::all_of(name, is_good);
}

Flaw assign_lids(Topology& t) {
    std::vector<bool> taken(kHighestLid + 1, false);
    for (const PortPlan& plan : t.ports)
        if (plan.lid != 0)
            for (std::uint32_t i = plan.lid; i < plan.lid + (1u << plan.lmc) && i <= kHighestLid; ++i) taken[i] = true;
    std::uint32_t next = 1;
    for (std::uint32_t port = 0; port < t.ports.size(); ++port) {
        PortPlan& plan = t.ports[port];
        if (plan.lid != 0) continue;
        const std::uint32_t count = 1u << plan.lmc;
        const auto fits = [&] { return next + count - 1 <= kHighestLid; };
        const auto is_free = [&] {
            return std::find(taken.begin() + next, taken.begin() + next + count, true) == taken.begin() + next + count;
        };
        next = (next + count - 1) / count * count;
        while (fits() && !is_free()) next += count;
        if (!fits())
            return {t.port_name(port) + ": no LID is left: " + std::to_string(t.ports.size()) +
                        " ports, this one with LMC " + std::to_string(plan.lmc) + " (" + std::to_string(count) +
                        " LIDs), do not fit into 0x1..0xbfff",
                    port};
        plan.lid = next;
        next += count;
    }
    return {};
}

std::uint32_t port_of_lid(const Topology& t, std::uint32_t lid) {
    for (std::uint32_t port = 0; port < t.ports.size(); ++port)
        if (lid >= t.ports[port].lid && lid < t.ports[port].lid + (1u << t.ports[port].lmc)) return port;
    return kNone;
}

std::uint32_t number_of_cable(const Topology& t, std::uint32_t cable) {
    const CablePlan& one = t.cables[cable];
    std::uint32_t all = 0, number = 0;
    for (std::uint32_t i = 0; i < t.cables.size(); ++i) {
        const CablePlan& other = t.cables[i];
        if (!(other.a == one.a && other.b == one.b) && !(other.a == one.b && other.b == one.a)) continue;
        ++all;
        if (i <= cable) ++number;
    }
    return all == 1 ? 0 : number;
}

Flaw check(const Topology& t) {
    for (const auto& part :
         {check_sizes, check_names, check_lids, check_pkeys, check_cables, check_reach, check_routes})
        if (Flaw flaw = part(t)) return flaw;
    return {};
}

}  // namespace coop::fabric
