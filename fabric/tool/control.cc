// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/control.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/engine/faults.h"
#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

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
            fault.delay_ns = rule.delay_ns;
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
