// SPDX-License-Identifier: BSD-3-Clause
#include "sim/routes.h"

#include <algorithm>

#include "sim/random.h"

namespace coop::sim {
namespace {

// Distance from each node to a switch in cables, breadth first.
std::vector<std::uint32_t> distances_to(const Topology& t, NodeIndex leaf) {
    std::vector<std::uint32_t> distance(t.node_names.size(), kNone);
    std::vector<NodeIndex> waiting = {leaf};
    distance[leaf] = 0;
    for (std::size_t i = 0; i < waiting.size(); ++i)
        for (const LinkIndex link : t.ports[waiting[i]]) {
            const NodeIndex next = t.links[link].to;
            if (!t.links[link].up || t.is_host(next) || distance[next] != kNone) continue;
            distance[next] = distance[waiting[i]] + 1;
            waiting.push_back(next);
        }
    return distance;
}

// Ports of `at` that lead nearer to the destination.
void ports_nearer(const Topology& t, const std::vector<std::uint32_t>& distance, NodeIndex at,
                  std::vector<std::uint8_t>& ports) {
    ports.clear();
    for (std::size_t i = 0; i < t.ports[at].size(); ++i) {
        const Link& link = t.links[t.ports[at][i]];
        if (link.up && !t.is_host(link.to) && distance[link.to] < distance[at])
            ports.push_back(static_cast<std::uint8_t>(i));
    }
}

// For d-mod-k: the number of consecutive destinations that share an uplink, for a switch of each level.
std::vector<std::uint32_t> strides(const Topology& t) {
    std::vector<std::uint32_t> up(1 + *std::max_element(t.levels.begin(), t.levels.end()), 1);
    for (NodeIndex node = t.hosts; node < t.node_names.size(); ++node) {
        std::uint32_t above = 0;
        for (const LinkIndex link : t.ports[node]) above += t.levels[t.links[link].to] > t.levels[node];
        up[t.levels[node]] = std::max(up[t.levels[node]], above);
    }
    std::vector<std::uint32_t> found(up.size(), 1);
    for (std::size_t level = 2; level < up.size(); ++level) found[level] = found[level - 1] * up[level - 1];
    return found;
}

std::uint8_t port_to_host(const Topology& t, NodeIndex leaf, NodeIndex host) {
    const auto& ports = t.ports[leaf];
    return static_cast<std::uint8_t>(std::find(ports.begin(), ports.end(), reverse(t.host_link(host))) - ports.begin());
}

Defect no_way(const Topology& t, NodeIndex from, NodeIndex to) {
    return "the topology is not connected: " + t.node_names[to] + " cannot be reached from " + t.node_names[from];
}

// Tables for all hosts on one leaf, which have the same distances.
class LeafTables {
public:
    LeafTables(const Topology& t, Routing routing, std::uint64_t seed, Routes& routes)
        : t_(t), routing_(routing), random_(seed), strides_(strides(t)), routes_(routes) {}

    Defect fill(NodeIndex leaf, const std::vector<NodeIndex>& hosts) {
        const std::vector<std::uint32_t> distance = distances_to(t_, leaf);
        for (NodeIndex at = t_.hosts; at < t_.node_names.size(); ++at) {
            if (at == leaf || distance[at] == kNone) continue;
            ports_nearer(t_, distance, at, nearer_);
            for (const NodeIndex host : hosts) enter(at, host);
        }
        for (const NodeIndex host : hosts) {
            if (!t_.links[t_.host_link(host)].up) return no_way(t_, host == 0 ? 1 : 0, host);
            for (std::uint32_t k = 0; k < 1u << routes_.lmc; ++k)
                routes_.port(leaf - t_.hosts, routes_.base_lids[host] + k) = port_to_host(t_, leaf, host);
        }
        for (NodeIndex other = 0; other < t_.hosts; ++other)
            if (distance[t_.leaf_of(other)] == kNone) return no_way(t_, other, hosts[0]);
        return std::nullopt;
    }

private:
    void enter(NodeIndex at, NodeIndex host) {
        const std::uint32_t paths = 1u << routes_.lmc;
        const std::uint32_t first = routing_ == Routing::kByDestination ? host / strides_[t_.levels[at]] : 0;
        if (routing_ == Routing::kScattered) random_.shuffle(nearer_, paths);
        for (std::uint32_t k = 0; k < paths; ++k)
            routes_.port(at - t_.hosts, routes_.base_lids[host] + k) = nearer_[(first + k) % nearer_.size()];
    }

    const Topology& t_;
    Routing routing_;
    Random random_;
    std::vector<std::uint32_t> strides_;
    Routes& routes_;
    std::vector<std::uint8_t> nearer_;
};

}  // namespace

Defect lid_defect(const Topology& t, std::uint32_t lmc) {
    if (lmc > kHighestLmc) return "LMC " + std::to_string(lmc) + " is not in 0.." + std::to_string(kHighestLmc);
    const std::uint64_t needed = ((std::uint64_t{t.hosts} + 1) << lmc) - 1 + t.switches();
    if (needed <= kHighestLid) return std::nullopt;
    return "LMC " + std::to_string(lmc) + " does not fit: " + std::to_string(t.hosts) + " hosts with " +
           std::to_string(1u << lmc) + " LIDs each and " + std::to_string(t.switches()) + " switches need LIDs up to " +
           std::to_string(needed) + ", the highest is " + std::to_string(kHighestLid);
}

Routes assign_lids(const Topology& t, std::uint32_t lmc) {
    Routes routes;
    routes.lmc = lmc;
    routes.lids = (t.hosts + 1) << lmc;
    for (NodeIndex host = 0; host < t.hosts; ++host) routes.base_lids.push_back((host + 1) << lmc);
    routes.tables.assign(std::size_t{t.switches()} * routes.lids, kNoPort);
    return routes;
}

Defect compute(const Topology& t, Routing routing, std::uint64_t seed, Routes& routes) {
    std::fill(routes.tables.begin(), routes.tables.end(), kNoPort);
    std::vector<std::vector<NodeIndex>> hosts_of(t.node_names.size());
    for (NodeIndex host = 0; host < t.hosts; ++host) hosts_of[t.leaf_of(host)].push_back(host);
    LeafTables tables(t, routing, seed, routes);
    for (NodeIndex leaf = t.hosts; leaf < t.node_names.size(); ++leaf) {
        if (hosts_of[leaf].empty()) continue;
        if (Defect bad = tables.fill(leaf, hosts_of[leaf])) return bad;
    }
    return std::nullopt;
}

Defect defect(const Topology& t, const Routes& routes) {
    for (NodeIndex to = 0; to < t.hosts; ++to)
        for (std::uint32_t k = 0; k < 1u << routes.lmc; ++k)
            for (NodeIndex from = 0; from < t.hosts; ++from) {
                // The routes of hosts on one leaf differ only in their first link.
                if (from == to || (from != 0 && from - 1 != to && t.leaf_of(from) == t.leaf_of(from - 1))) continue;
                if (trace(t, routes, from, to, k).hops == 0)
                    return "the forwarding tables have no route from " + t.node_names[from] + " to LID " +
                           std::to_string(routes.base_lids[to] + k) + " (" + t.node_names[to] + ") with at most " +
                           std::to_string(kMostHops) + " cables";
            }
    return std::nullopt;
}

Route trace(const Topology& t, const Routes& routes, NodeIndex from, NodeIndex to, std::uint32_t path) noexcept {
    Route route;
    const std::uint32_t lid = routes.base_lids[to] + path;
    LinkIndex link = t.host_link(from);
    while (route.hops < kMostHops) {
        route.links[route.hops++] = link;
        const NodeIndex at = t.links[link].to;
        if (at == to) return route;
        if (t.is_host(at)) break;
        const std::uint8_t port = routes.port(at - t.hosts, lid);
        if (port >= t.ports[at].size()) break;
        link = t.ports[at][port];
    }
    route.hops = 0;
    return route;
}

}  // namespace coop::sim
