// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/outage.h"

#include <array>
#include <vector>

#include "fabric/engine/responder.h"
#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

// Busy queue pairs notice by themselves that their HCA is down; those that only wait for messages do not.
void fail_queue_pairs(const Segment& subnet, std::uint32_t hca) {
    for (QueuePair& qp : subnet.ever_used<QueuePair>(kQueuePairs)) {
        if (!Segment::in_use(qp) || qp.hca != hca) continue;
        const std::uint32_t state = qp.state.load(std::memory_order_acquire);
        if (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE)
            fail(subnet, qp, -1);
    }
}

bool is_active(const Segment& subnet, const Port& port) {
    return port.down == 0 && subnet.links()[port.link_out].down == 0 && subnet.links()[port.link_in].down == 0;
}

std::vector<bool> active_ports(const Segment& subnet) {
    std::vector<bool> active;
    for (const Port& port : subnet.ports()) active.push_back(is_active(subnet, port));
    return active;
}

// Applies a change of state, and raises events on the ports that it deactivated or activated.
template <class Change>
void change_state(const Segment& subnet, Change&& change) {
    const std::vector<bool> before = active_ports(subnet);
    change();
    for (std::uint32_t i = 0; i < before.size(); ++i) {
        Port& port = subnet.ports()[i];
        const bool active = is_active(subnet, port);
        if (active == before[i]) continue;
        if (!active) port.counters.link_downed.fetch_add(1, std::memory_order_relaxed);
        raise_on_port(subnet, port, active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    }
    wake_all(subnet);
}

// Sets the `down` of a port, HCA, LID or link; returns true if that changed it. The time is stored first, because
// processes that see the new state use it.
template <class Element>
bool turn(const Segment& subnet, Element& element, bool up) {
    const std::int64_t now = now_ns();
    if (!up && element.down.load(std::memory_order_acquire) == 0)
        element.outage.cut_ns.store(now, std::memory_order_release);
    const bool changed = (element.down.exchange(up ? 0 : 1) == 0) != up;
    if (changed && up) element.outage.back_ns.store(now, std::memory_order_release);
    if (changed) subnet.header().last_change_ns.store(now, std::memory_order_release);
    return changed;
}

// Whether the element was down at some time of this interval.
template <class Element>
bool was_down(const Element& element, std::int64_t from_ns, std::int64_t to_ns) {
    const bool cut_before = element.outage.cut_ns.load(std::memory_order_acquire) <= to_ns;
    if (element.down.load(std::memory_order_acquire) != 0) return cut_before;
    return cut_before && element.outage.back_ns.load(std::memory_order_acquire) > from_ns;
}

bool was_port_down(const Segment& subnet, std::uint32_t port, std::int64_t from_ns, std::int64_t to_ns) {
    const Port& p = subnet.ports()[port];
    return was_down(p, from_ns, to_ns) || was_down(subnet.hcas()[p.hca], from_ns, to_ns);
}

// A port that is down takes its cable with it.
bool was_link_down(const Segment& subnet, const Link& link, std::int64_t from_ns, std::int64_t to_ns) {
    const auto end = [&](const Node& node) {
        return node.kind == NodeKind::port && was_port_down(subnet, node.index, from_ns, to_ns);
    };
    return was_down(link, from_ns, to_ns) || end(link.from) || end(link.to);
}

}  // namespace

void wake_all(const Segment& subnet) {
    for (Process& process : subnet.ever_used<Process>(kProcesses))
        if (Segment::in_use(process)) wake(process);
}

void raise_on_port(const Segment& subnet, const Port& port, ibv_event_type type) {
    raise_on_hca(subnet, port.hca, {static_cast<std::uint32_t>(type), port.number, 0});
}

void set_port(const Segment& subnet, std::uint32_t port, bool up) {
    change_state(subnet, [&] {
        if (turn(subnet, subnet.ports()[port], up)) trace(subnet, up ? TraceKind::port_up : TraceKind::port_down, port);
    });
}

void set_hca(const Segment& subnet, std::uint32_t hca, bool up) {
    if (turn(subnet, subnet.hcas()[hca], up)) {
        trace(subnet, up ? TraceKind::hca_up : TraceKind::hca_down, hca);
        if (!up) {
            raise_on_hca(subnet, hca, {IBV_EVENT_DEVICE_FATAL, 0, 0});
            fail_queue_pairs(subnet, hca);
        }
    }
    wake_all(subnet);
}

void set_lid(const Segment& subnet, std::uint32_t lid, bool up) {
    Lid& entry = subnet.lids()[lid];
    if (turn(subnet, entry, up)) {
        trace(subnet, up ? TraceKind::lid_up : TraceKind::lid_down, lid);
        const Port& port = subnet.ports()[entry.port];
        if (lid == port.lid) raise_on_port(subnet, port, IBV_EVENT_LID_CHANGE);
    }
    wake_all(subnet);
}

void set_links(const Segment& subnet, std::span<const std::uint32_t> links, bool up) {
    change_state(subnet, [&] {
        for (const std::uint32_t link : links)
            if (turn(subnet, subnet.links()[link], up))
                trace(subnet, up ? TraceKind::link_up : TraceKind::link_down, link);
    });
}

void cut_off(const Segment& subnet, FaultScope scope, std::uint32_t target, const Route& route) {
    switch (scope) {
    case FaultScope::lid: return set_lid(subnet, target, false);
    case FaultScope::link: return set_links(subnet, std::array{target, opposite(target)}, false);
    case FaultScope::port: return set_port(subnet, target, false);
    case FaultScope::hca:
        return set_port(subnet, subnet.ports()[route.to].hca == target ? route.to : route.from, false);
    case FaultScope::all:
    case FaultScope::qp: return set_port(subnet, route.to, false);
    }
}

bool survives_changes(const Segment& subnet, const Route& route, std::int64_t on_link_ns,
                      std::int64_t arrived_ns) noexcept {
    // From the destination back to the source: when the last byte passes, and when the first one did.
    std::int64_t last = arrived_ns;
    if (was_down(subnet.lids()[route.dlid], last - on_link_ns, last)) return false;
    if (route.hops == 0 && was_port_down(subnet, route.to, last - on_link_ns, last)) return false;
    for (std::uint32_t i = route.hops; i-- > 0;) {
        const Link& link = subnet.links()[route.links[i]];
        const std::int64_t latency = link.latency_ns.load(std::memory_order_relaxed);
        if (was_link_down(subnet, link, last - latency - on_link_ns, last)) return false;
        last -= latency;
    }
    return !was_down(subnet.lids()[route.slid], last - on_link_ns, last);
}

}  // namespace coop::fabric
