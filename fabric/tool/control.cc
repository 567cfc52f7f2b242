// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/control.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "fabric/engine/faults.h"
#include "fabric/engine/responder.h"
#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"
#include "fabric/tool/names.h"

namespace coop::fabric {
namespace {

void wake_all(const Segment& subnet) {
    for (Process& process : subnet.ever_used<Process>(kProcesses))
        if (Segment::in_use(process)) wake(process);
}

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

void raise_on_port(const Segment& subnet, const Port& port, ibv_event_type type) {
    raise_on_hca(subnet, port.hca, {static_cast<std::uint32_t>(type), port.number, 0});
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

// Sets `down`; returns true if that changed it.
bool turn(Shared<std::uint32_t>& down, bool up) { return (down.exchange(up ? 0 : 1) == 0) != up; }

bool kill_alive(const Process& process) {
    const std::int32_t pid = process.pid;
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) return false;
    // Check again now that the pidfd is open: it could be that of another process that has reused the number.
    const bool killed = is_alive(process) && process.pid == pid &&
                        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0;
    close(pidfd);
    return killed;
}

template <class Matches>
int kill_those(const Segment& subnet, Matches&& matches) {
    int killed = 0;
    for (const Process& process : subnet.ever_used<Process>(kProcesses))
        if (is_alive(process) && process.pid != getpid() && matches(process) && kill_alive(process)) ++killed;
    return killed;
}

}  // namespace

void set_port(const Segment& subnet, std::uint32_t port, bool up) {
    change_state(subnet, [&] {
        if (turn(subnet.ports()[port].down, up)) trace(subnet, up ? TraceKind::port_up : TraceKind::port_down, port);
    });
}

void set_hca(const Segment& subnet, std::uint32_t hca, bool up) {
    if (turn(subnet.hcas()[hca].down, up)) {
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
    if (turn(entry.down, up)) {
        trace(subnet, up ? TraceKind::lid_up : TraceKind::lid_down, lid);
        const Port& port = subnet.ports()[entry.port];
        if (lid == port.lid) raise_on_port(subnet, port, IBV_EVENT_LID_CHANGE);
    }
    wake_all(subnet);
}

void set_links(const Segment& subnet, std::span<const std::uint32_t> links, bool up) {
    change_state(subnet, [&] {
        for (const std::uint32_t link : links)
            if (turn(subnet.links()[link].down, up))
                trace(subnet, up ? TraceKind::link_up : TraceKind::link_down, link);
    });
}

void change_manager(const Segment& subnet) {
    for (const Port& port : subnet.ports()) raise_on_port(subnet, port, IBV_EVENT_SM_CHANGE);
}

void set_rate(const Segment& subnet, std::uint32_t link, std::uint64_t bytes_per_s) {
    subnet.links()[link].rate = bytes_per_s;
    trace(subnet, TraceKind::rate, link, 0, 0, bytes_per_s);
    wake_all(subnet);
}

void set_latency(const Segment& subnet, std::uint32_t link, std::int64_t ns) {
    subnet.links()[link].latency_ns = ns;
    trace(subnet, TraceKind::latency, link, 0, 0, static_cast<std::uint64_t>(ns));
    wake_all(subnet);
}

void set_loss(const Segment& subnet, std::uint32_t link, std::uint32_t loss) {
    subnet.links()[link].loss = loss;
    trace(subnet, TraceKind::loss, link, 0, 0, loss);
    wake_all(subnet);
}

void set_background(const Segment& subnet, std::uint32_t link, std::uint64_t bytes_per_s) {
    subnet.links()[link].background = bytes_per_s;
    trace(subnet, TraceKind::background, link, 0, 0, bytes_per_s);
    wake_all(subnet);
}

bool set_fault(const Segment& subnet, const FaultRule& rule) {
    for (int tried = 0; tried < 100; ++tried) {
        const std::uint32_t index = subnet.claim<Fault>(kFaults);
        if (index == kNone) return false;
        Fault& fault = subnet.faults()[index];
        {
            // Until `count` is set, the rule looks spent, and clear_spent_faults() of another process would remove it.
            // Hold the lock that clear_spent_faults() takes. If the rule has been removed already, claim another entry.
            Guard guard(subnet.header().lock);
            if (!Segment::in_use(fault)) continue;
            fault.kind = rule.kind;
            fault.scope = rule.scope;
            fault.target = rule.target;
            fault.after = rule.after;
            fault.until_ns = rule.for_ns == 0 ? 0 : now_ns() + rule.for_ns;
            fault.count.store(rule.count, std::memory_order_release);
        }
        clear_spent_faults(subnet);  // also counts the rules in force
        trace(subnet, TraceKind::fault_set, static_cast<std::uint32_t>(rule.kind), rule.target, 0,
              static_cast<std::uint64_t>(rule.scope));
        wake_all(subnet);
        return true;
    }
    return false;
}

void clear_faults(const Segment& subnet) {
    for (Fault& fault : subnet.ever_used<Fault>(kFaults)) fault.count.store(0, std::memory_order_release);
    clear_spent_faults(subnet);
    wake_all(subnet);
}

int kill_on_host(const Segment& subnet, std::uint32_t host) {
    return kill_those(subnet, [=](const Process& process) { return process.host == host; });
}

int kill_process(const Segment& subnet, std::int32_t pid) {
    return kill_those(subnet, [=](const Process& process) { return process.pid == pid; });
}

}  // namespace coop::fabric
