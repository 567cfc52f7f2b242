// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/routing.h"

#include <algorithm>

namespace coop::fabric {
namespace {

using Indices = std::vector<std::uint32_t>;

// The links out of each switch, and the link out of each port.
struct Leaving {
    std::vector<Indices> switches;
    Indices ports;

    explicit Leaving(const Topology& t) : switches(t.switches.size()), ports(t.ports.size(), kNone) {
        for (std::uint32_t link = 0; link < 2 * t.cables.size(); ++link) {
            const Node from = t.link_from(link);
            if (from.kind == NodeKind::port) ports[from.index] = link;
            else switches[from.index].push_back(link);
        }
    }
};

// The number of links from each switch to `port`, by breadth-first search; kNone: unreachable. Cables work in both
// directions.
Indices distances_to(const Topology& t, const Leaving& leaving, std::uint32_t port) {
    Indices distance(t.switches.size(), kNone);
    const Node first = t.link_to(leaving.ports[port]);
    if (first.kind == NodeKind::port) return distance;
    Indices waiting = {first.index};
    distance[first.index] = 1;
    for (std::size_t i = 0; i < waiting.size(); ++i)
        for (const std::uint32_t link : leaving.switches[waiting[i]]) {
            const Node to = t.link_to(link);
            if (to.kind != NodeKind::switch_ || distance[to.index] != kNone) continue;
            distance[to.index] = distance[waiting[i]] + 1;
            waiting.push_back(to.index);
        }
    return distance;
}

// The links from switch `at` that are on a shortest path to `port`.
Indices links_nearer(const Topology& t, const Leaving& leaving, const Indices& distance, std::uint32_t at,
                     std::uint32_t port) {
    Indices links;
    for (const std::uint32_t link : leaving.switches[at]) {
        const Node to = t.link_to(link);
        if (to.kind == NodeKind::port ? to.index == port : distance[to.index] < distance[at]) links.push_back(link);
    }
    return links;
}

Flaw check_reach(const Topology& t, const Leaving& leaving, const Indices& distance, std::uint32_t to) {
    for (std::uint32_t from = 0; from < t.ports.size(); ++from) {
        if (from == to) continue;
        const Node next = t.link_to(leaving.ports[from]);
        const bool is_direct = next == Node{NodeKind::port, to};
        const bool is_reached = is_direct || (next.kind == NodeKind::switch_ && distance[next.index] != kNone);
        if (!is_reached && t.islands) continue;
        if (!is_reached) return {t.port_name(to) + " cannot be reached from " + t.port_name(from), to};
        const std::uint32_t hops = is_direct ? 1 : distance[next.index] + 1;
        if (hops > kMaxHops)
            return {"from " + t.port_name(from) + " to " + t.port_name(to) + " the shortest route has " +
                        std::to_string(hops) + " cables, more than " + std::to_string(kMaxHops),
                    to};
    }
    return {};
}

}  // namespace

Flaw find_shortest_paths(const Topology& t, Forwarding& tables) {
    tables.lids = 0;
    for (const PortPlan& plan : t.ports) tables.lids = std::max(tables.lids, plan.lid + (1u << plan.lmc));
    if (!t.ethernet) {
        std::uint32_t spare = 0, largest = 1;
        for (const PortPlan& plan : t.ports) {
            spare += 1u << plan.lmc;
            largest = std::max(largest, 1u << plan.lmc);
        }
        tables.lids = std::min(tables.lids + spare + largest - 1, kHighestLid + 1);
    }
    tables.next.assign(std::size_t{tables.lids} * t.switches.size(), 0);
    const Leaving leaving(t);
    for (std::uint32_t port = 0; port < t.ports.size(); ++port) {
        const PortPlan& plan = t.ports[port];
        const Indices distance = distances_to(t, leaving, port);
        if (Flaw flaw = check_reach(t, leaving, distance, port)) return flaw;
        for (std::uint32_t at = 0; at < t.switches.size(); ++at) {
            if (distance[at] == kNone) continue;
            const Indices links = links_nearer(t, leaving, distance, at, port);
            for (std::uint32_t bits = 0; bits < 1u << plan.lmc; ++bits)
                tables.next[std::size_t{at} * tables.lids + plan.lid + bits] = links[(port + bits) % links.size()] + 1;
        }
    }
    return {};
}

}  // namespace coop::fabric
