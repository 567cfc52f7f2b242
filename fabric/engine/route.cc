// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/route.h"

#include <algorithm>
#include <cstring>

namespace coop::fabric {
namespace {

bool is_ethernet(const Port& port) { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }

const PinnedRoute* find_pinned(const Segment& subnet, std::uint16_t slid, std::uint16_t dlid) {
    const auto pinned = subnet.pinned_routes();
    const auto found = std::find_if(pinned.begin(), pinned.end(),
                                    [=](const PinnedRoute& route) { return route.slid == slid && route.dlid == dlid; });
    return found == pinned.end() ? nullptr : &*found;
}

// Follows the forwarding tables from switch to switch. Returns false if they do not lead to the port.
bool follow(const Segment& subnet, Route& route) {
    const auto lids = subnet.lids();
    std::uint32_t link = subnet.ports()[route.from].link_out;
    while (route.hops < kMaxHops) {
        route.links[route.hops++] = link;
        const Node& reached = subnet.links()[link].to;
        if (reached.kind == NodeKind::port) return reached.index == route.to;
        const std::uint32_t next = subnet.forwards()[reached.index * lids.size() + route.dlid].load(
            std::memory_order_relaxed);
        if (next == 0) return false;
        link = next - 1;
    }
    return false;
}

bool has_gid(const Port& port, const std::uint8_t (&gid)[16]) {
    return std::any_of(port.gids, port.gids + port.gid_count,
                       [&](const auto& own) { return std::memcmp(own, gid, sizeof gid) == 0; });
}

// True if the destination port accepts packets of this path. With a global routing header, the GID must be the port's.
// Without one, neither port may require it, and no router may be in between, which would need it.
bool is_taken(const Segment& subnet, const Route& route, const Path& path) {
    const Port &from = subnet.ports()[route.from], &to = subnet.ports()[route.to];
    if (path.is_global != 0) return has_gid(to, path.dgid);
    return from.grh_required == 0 && to.grh_required == 0 && from.gid_prefix == to.gid_prefix;
}

}  // namespace

Route find_route(const Segment& subnet, std::uint32_t from, std::uint16_t slid, std::uint16_t dlid) {
    Route route;
    route.from = from;
    route.slid = slid;
    route.dlid = dlid;
    const auto lids = subnet.lids();
    if (dlid == 0 || dlid >= lids.size() || lids[dlid].port == kNone) return route;
    route.to = lids[dlid].port;
    if (route.to == from) return route;
    if (const PinnedRoute* pinned = find_pinned(subnet, slid, dlid)) {
        route.hops = pinned->hops;
        std::copy_n(pinned->links, pinned->hops, route.links);
        if (pinned->hops == 0) route.to = kNone;
    } else if (!follow(subnet, route)) {
        route.to = kNone;
    }
    return route;
}

Route find_route(const Segment& subnet, std::uint32_t port, const Path& path) {
    const Port& from = subnet.ports()[port];
    const std::uint32_t bits = path.source_path_bits & ((1u << from.lmc) - 1);
    const auto slid = static_cast<std::uint16_t>(from.route_lid | bits);
    if (!is_ethernet(from)) {
        Route route = find_route(subnet, port, slid, path.dlid);
        if (route.leads_somewhere() && !is_taken(subnet, route, path)) route.to = kNone;
        return route;
    }
    const std::uint32_t to = find_port_by_gid(subnet, path.dgid);
    if (to == kNone || !is_ethernet(subnet.ports()[to])) return find_route(subnet, port, slid, 0);
    return find_route(subnet, port, slid, static_cast<std::uint16_t>(subnet.ports()[to].route_lid));
}

Route Route::reversed(const Segment& subnet) const { return find_route(subnet, to, dlid, slid); }

bool is_passable(const Segment& subnet, const Route& route) {
    const auto is_up = [&](std::uint32_t port) {
        const Port& p = subnet.ports()[port];
        return p.down.load(std::memory_order_relaxed) == 0 &&
               subnet.hcas()[p.hca].down.load(std::memory_order_relaxed) == 0;
    };
    const auto lids = subnet.lids();
    if (!is_up(route.from) || !is_up(route.to)) return false;
    if (lids[route.slid].down.load(std::memory_order_relaxed) != 0) return false;
    if (lids[route.dlid].down.load(std::memory_order_relaxed) != 0) return false;
    for (std::uint32_t i = 0; i < route.hops; ++i)
        if (subnet.links()[route.links[i]].down.load(std::memory_order_relaxed) != 0) return false;
    return true;
}

std::uint32_t find_port_by_gid(const Segment& subnet, const std::uint8_t gid[16]) {
    const auto ports = subnet.ports();
    for (std::uint32_t i = 0; i < ports.size(); ++i)
        for (std::uint32_t k = 0; k < ports[i].gid_count; ++k)
            if (std::memcmp(ports[i].gids[k], gid, 16) == 0) return i;
    return kNone;
}

}  // namespace coop::fabric
