// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/faults.h"

#include <algorithm>

#include "fabric/engine/opcode.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

// A rule that is about acknowledgements counts whole messages that are acknowledged. A read has a response instead, and
// is repeated without harm.
bool can_affect(FaultKind kind, const Struck& chunk) {
    switch (kind) {
    case FaultKind::cut: return chunk.qp_type == IBV_QPT_RC && chunk.ends_message && !is_read(chunk.opcode);
    case FaultKind::mute_qp:
    case FaultKind::mute_qp_for_good: return chunk.ends_message;
    case FaultKind::ack_and_die:
        return chunk.qp_type == IBV_QPT_RC && chunk.ends_message && !is_read_or_atomic(chunk.opcode);
    case FaultKind::double_datagram: return chunk.qp_type == IBV_QPT_UD;
    case FaultKind::late: return chunk.qp_type != IBV_QPT_UC && !is_read(chunk.opcode);
    case FaultKind::drop:
    case FaultKind::corrupt:
    case FaultKind::lose_ack:
    case FaultKind::rnr:
    case FaultKind::reorder:
    case FaultKind::kill_qp:
    case FaultKind::kill_process: return true;
    }
    return true;
}

bool meets(const Segment& subnet, const Fault& fault, const Route& route, const Struck& chunk) {
    if (!can_affect(fault.kind, chunk)) return false;
    // The receiving HCA goes down. So the rule spares messages that the HCA or port of its target sends.
    const bool either_end = fault.kind != FaultKind::ack_and_die;
    const auto on_hca = [&](std::uint32_t port) { return subnet.ports()[port].hca == fault.target; };
    switch (fault.scope) {
    case FaultScope::all: return true;
    case FaultScope::hca: return on_hca(route.to) || (either_end && on_hca(route.from));
    case FaultScope::port: return route.to == fault.target || (either_end && route.from == fault.target);
    case FaultScope::lid: return route.slid == fault.target || route.dlid == fault.target;
    case FaultScope::qp: return chunk.source_qp == fault.target || chunk.destination_qp == fault.target;
    case FaultScope::link:
        for (std::uint32_t i = 0; i < route.hops; ++i)
            if (route.links[i] == fault.target) return true;
        return false;
    }
    return false;
}

// Counts the chunk. Returns how many chunks the rule had left for itself, this one included; 0: it spares this one.
std::int64_t strikes(Fault& fault) {
    const std::int64_t until = fault.until_ns.load(std::memory_order_relaxed);
    if (until != 0 && now_ns() > until) return 0;
    if (fault.after.load(std::memory_order_relaxed) > 0 && fault.after.fetch_sub(1, std::memory_order_relaxed) > 0)
        return 0;
    if (fault.count.load(std::memory_order_relaxed) <= 0) return 0;
    return std::max<std::int64_t>(fault.count.fetch_sub(1, std::memory_order_relaxed), 0);
}

// A rule that names the receiving QP mutes that one, any other the sending QP.
void mark_mute(Strike& strike, const Fault& fault, const Struck& chunk, Mute how) {
    const bool receiver = fault.scope == FaultScope::qp && fault.target != chunk.source_qp;
    (receiver ? strike.receiver : strike.sender) = how;
}

void mark(Strike& strike, const Fault& fault, const Struck& chunk, std::int64_t left) {
    switch (fault.kind) {
    case FaultKind::drop: strike.drop = true; return;
    case FaultKind::corrupt: strike.corrupt = true; return;
    case FaultKind::lose_ack: strike.lose_ack = true; return;
    case FaultKind::rnr: strike.not_ready = true; return;
    case FaultKind::reorder: strike.reorder = true; return;
    case FaultKind::cut:
        strike.cut = true;
        strike.cut_now = left == 1;
        strike.cut_scope = fault.scope;
        strike.cut_target = fault.target;
        return;
    case FaultKind::mute_qp: return mark_mute(strike, fault, chunk, Mute::until_error);
    case FaultKind::mute_qp_for_good: return mark_mute(strike, fault, chunk, Mute::for_good);
    case FaultKind::ack_and_die:
        strike.swallow = true;
        strike.swallow_now = left == 1;
        return;
    case FaultKind::double_datagram: strike.twice = true; return;
    case FaultKind::late: strike.late_ns = fault.delay_ns; return;
    case FaultKind::kill_qp: strike.kill_qp = true; return;
    case FaultKind::kill_process: strike.kill_process = true; return;
    }
}

bool is_spent(const Fault& fault) {
    const std::int64_t until = fault.until_ns.load(std::memory_order_relaxed);
    return fault.count.load(std::memory_order_relaxed) <= 0 || (until != 0 && now_ns() > until);
}

}  // namespace

Strike consult_faults(const Segment& subnet, const Route& route, const Struck& chunk) noexcept {
    Strike strike;
    bool spent = false;
    for (Fault& fault : subnet.ever_used<Fault>(kFaults)) {
        if (!Segment::in_use(fault) || !meets(subnet, fault, route, chunk)) continue;
        if (const std::int64_t left = strikes(fault); left > 0) {
            mark(strike, fault, chunk, left);
            trace(subnet, TraceKind::fault_hit, static_cast<std::uint32_t>(fault.kind), fault.target, chunk.source_qp,
                  static_cast<std::uint64_t>(fault.scope));
        }
        spent |= is_spent(fault);
    }
    if (spent) clear_spent_faults(subnet);
    return strike;
}

std::int64_t drops_left(const Segment& subnet, const Route& route, const Struck& chunk) noexcept {
    std::int64_t most = 0;
    if (subnet.header().faults.load(std::memory_order_relaxed) == 0) return most;
    for (const Fault& fault : subnet.ever_used<Fault>(kFaults)) {
        if (!Segment::in_use(fault) || is_spent(fault) || !meets(subnet, fault, route, chunk)) continue;
        const bool now = fault.after.load(std::memory_order_relaxed) <= 0;
        if (now && (fault.kind == FaultKind::drop || fault.kind == FaultKind::corrupt))
            most = std::max(most, fault.count.load(std::memory_order_relaxed));
    }
    return most;
}

std::uint32_t clear_spent_faults(const Segment& subnet) noexcept {
    std::uint32_t left = 0;
    Guard guard(subnet.header().lock);
    for (Fault& fault : subnet.ever_used<Fault>(kFaults)) {
        if (!Segment::in_use(fault)) continue;
        if (is_spent(fault)) subnet.release(fault);
        else ++left;
    }
    subnet.header().faults.store(left, std::memory_order_release);
    return left;
}

}  // namespace coop::fabric
