// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/shm/trace.h"

#include <array>
#include <cstdio>

namespace coop::fabric {
namespace {

// How the fields of an entry are formatted.
enum class Shows {
    nothing,
    process,
    hca,
    port,
    port_lid,
    lid,
    link,
    link_rate,
    link_time,
    link_value,
    qp,
    qp_peer,
    access,
    cq,
    memory,
    fault_set,
    fault_hit,
    event,
    clock,
    message,
    message_ended
};

struct Row {
    TraceKind kind;
    const char* name;
    Shows shows;
};

constexpr std::array kRows = {
    Row{TraceKind::created, "created", Shows::clock},
    Row{TraceKind::joined, "process joined", Shows::process},
    Row{TraceKind::left, "process left", Shows::process},
    Row{TraceKind::reaped, "dead process reaped", Shows::process},
    Row{TraceKind::hca_down, "HCA down", Shows::hca},
    Row{TraceKind::hca_up, "HCA up", Shows::hca},
    Row{TraceKind::port_down, "port down", Shows::port},
    Row{TraceKind::port_up, "port up", Shows::port},
    Row{TraceKind::lid_down, "LID down", Shows::lid},
    Row{TraceKind::lid_up, "LID up", Shows::lid},
    Row{TraceKind::lid_changed, "LID changed", Shows::port_lid},
    Row{TraceKind::gid_changed, "GID changed", Shows::port},
    Row{TraceKind::link_down, "link down", Shows::link},
    Row{TraceKind::link_up, "link up", Shows::link},
    Row{TraceKind::rate, "rate", Shows::link_rate},
    Row{TraceKind::latency, "latency", Shows::link_time},
    Row{TraceKind::loss, "loss", Shows::link_value},
    Row{TraceKind::background, "background load", Shows::link_rate},
    Row{TraceKind::fault_set, "fault set", Shows::fault_set},
    Row{TraceKind::fault_hit, "fault", Shows::fault_hit},
    Row{TraceKind::retry, "retry", Shows::qp_peer},
    Row{TraceKind::rnr, "receiver not ready", Shows::qp_peer},
    Row{TraceKind::retry_exceeded, "retries exceeded", Shows::qp_peer},
    Row{TraceKind::rnr_exceeded, "RNR retries exceeded", Shows::qp_peer},
    Row{TraceKind::migrated, "path migrated", Shows::qp_peer},
    Row{TraceKind::migration_failed, "path migration failed", Shows::qp_peer},
    Row{TraceKind::armed, "path migration armed", Shows::qp_peer},
    Row{TraceKind::qp_error, "QP to error state", Shows::qp},
    Row{TraceKind::access_error, "remote access refused", Shows::access},
    Row{TraceKind::cq_overflow, "CQ overflow", Shows::cq},
    Row{TraceKind::stale_memory, "registered memory", Shows::memory},
    Row{TraceKind::event, "event", Shows::event},
    Row{TraceKind::late_arrived, "late message executed", Shows::qp_peer},
    Row{TraceKind::late_dropped, "late message dropped", Shows::qp_peer},
    Row{TraceKind::wrong_path, "request on a wrong path dropped", Shows::qp_peer},
    Row{TraceKind::message_begun, "message begun", Shows::message},
    Row{TraceKind::message_ended, "message ended", Shows::message_ended},
    Row{TraceKind::message_arrived, "message arrived", Shows::message},
};

const Row& row_of(TraceKind kind) {
    static constexpr Row unknown{TraceKind::created, "?", Shows::nothing};
    const auto i = static_cast<std::size_t>(kind);
    return i < kRows.size() ? kRows[i] : unknown;
}
static_assert([] {
    for (std::size_t i = 0; i < kRows.size(); ++i)
        if (kRows[i].kind != static_cast<TraceKind>(i)) return false;
    return kRows.size() == static_cast<std::size_t>(TraceKind::message_arrived) + 1;
}());

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

constexpr const char* kFaultNames[] = {"drop",   "corrupt", "lose-ack",         "rnr",  "reorder",
                                       "cut",    "mute-qp", "mute-qp-for-good", "late", "ack-and-die",
                                       "double", "kill-qp", "kill-process"};
static_assert(std::size(kFaultNames) == static_cast<std::size_t>(FaultKind::kill_process) + 1);

const char* opcode_name(std::uint32_t opcode) {
    switch (static_cast<ibv_wr_opcode>(opcode)) {
    case IBV_WR_SEND: return "SEND";
    case IBV_WR_SEND_WITH_IMM: return "SEND_WITH_IMM";
    case IBV_WR_RDMA_WRITE: return "RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM: return "RDMA_WRITE_WITH_IMM";
    case IBV_WR_RDMA_READ: return "RDMA_READ";
    case IBV_WR_ATOMIC_CMP_AND_SWP: return "ATOMIC_CMP_AND_SWP";
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return "ATOMIC_FETCH_AND_ADD";
    default: return "?";
    }
}

// The names of the statuses that the engine produces (verbs.h: ibv_wc_status).
std::string status_name(std::uint32_t status) {
    switch (static_cast<ibv_wc_status>(status)) {
    case IBV_WC_SUCCESS: return "SUCCESS";
    case IBV_WC_LOC_LEN_ERR: return "LOC_LEN_ERR";
    case IBV_WC_LOC_QP_OP_ERR: return "LOC_QP_OP_ERR";
    case IBV_WC_LOC_PROT_ERR: return "LOC_PROT_ERR";
    case IBV_WC_WR_FLUSH_ERR: return "WR_FLUSH_ERR";
    case IBV_WC_REM_INV_REQ_ERR: return "REM_INV_REQ_ERR";
    case IBV_WC_REM_ACCESS_ERR: return "REM_ACCESS_ERR";
    case IBV_WC_REM_OP_ERR: return "REM_OP_ERR";
    case IBV_WC_RETRY_EXC_ERR: return "RETRY_EXC_ERR";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "RNR_RETRY_EXC_ERR";
    default: return "status " + std::to_string(status);
    }
}

// The kind of object that an event concerns, which determines the meaning of its number.
enum class EventOf { device, port, qp, cq, srq };
struct EventName {
    const char* name;
    EventOf of;
};

EventName event_name(std::uint32_t type) {
    switch (static_cast<ibv_event_type>(type)) {
    case IBV_EVENT_CQ_ERR: return {"CQ_ERR", EventOf::cq};
    case IBV_EVENT_QP_FATAL: return {"QP_FATAL", EventOf::qp};
    case IBV_EVENT_QP_REQ_ERR: return {"QP_REQ_ERR", EventOf::qp};
    case IBV_EVENT_QP_ACCESS_ERR: return {"QP_ACCESS_ERR", EventOf::qp};
    case IBV_EVENT_COMM_EST: return {"COMM_EST", EventOf::qp};
    case IBV_EVENT_SQ_DRAINED: return {"SQ_DRAINED", EventOf::qp};
    case IBV_EVENT_PATH_MIG: return {"PATH_MIG", EventOf::qp};
    case IBV_EVENT_PATH_MIG_ERR: return {"PATH_MIG_ERR", EventOf::qp};
    case IBV_EVENT_DEVICE_FATAL: return {"DEVICE_FATAL", EventOf::device};
    case IBV_EVENT_PORT_ACTIVE: return {"PORT_ACTIVE", EventOf::port};
    case IBV_EVENT_PORT_ERR: return {"PORT_ERR", EventOf::port};
    case IBV_EVENT_LID_CHANGE: return {"LID_CHANGE", EventOf::port};
    case IBV_EVENT_PKEY_CHANGE: return {"PKEY_CHANGE", EventOf::port};
    case IBV_EVENT_SM_CHANGE: return {"SM_CHANGE", EventOf::port};
    case IBV_EVENT_SRQ_ERR: return {"SRQ_ERR", EventOf::srq};
    case IBV_EVENT_SRQ_LIMIT_REACHED: return {"SRQ_LIMIT_REACHED", EventOf::srq};
    case IBV_EVENT_QP_LAST_WQE_REACHED: return {"QP_LAST_WQE_REACHED", EventOf::qp};
    case IBV_EVENT_CLIENT_REREGISTER: return {"CLIENT_REREGISTER", EventOf::port};
    case IBV_EVENT_GID_CHANGE: return {"GID_CHANGE", EventOf::port};
    case IBV_EVENT_WQ_FATAL: return {"WQ_FATAL", EventOf::device};
    }
    return {"?", EventOf::device};
}

std::string qp_name(std::uint32_t number) { return "QP " + hex(number); }

// "h0/coop0 PATH_MIG QP 0x10011", "h0/coop0 PORT_ERR port 1".
std::string event_text(const Segment& subnet, const Trace& t) {
    const EventName event = event_name(t.b);
    const std::string text = hca_name(subnet, t.a) + " " + event.name;
    switch (event.of) {
    case EventOf::device: return text;
    case EventOf::port: return text + " port " + std::to_string(t.c);
    case EventOf::cq: return text + " CQ " + std::to_string(t.c);
    case EventOf::srq: return text + " SRQ " + std::to_string(t.c);
    case EventOf::qp: break;
    }
    const auto qps = subnet.ever_used<QueuePair>(kQueuePairs);
    return t.c < qps.size() ? text + " " + qp_name(qps[t.c].number) : text;
}

std::string message_text(const Trace& t) {
    return qp_name(t.a) + " -> " + qp_name(t.b) + " " + opcode_name(t.c & 0xffff) + " " + std::to_string(t.value) +
           " bytes";
}

// For comparison with timestamps of programs.
std::string clock_text(std::int64_t ns) {
    char text[48];
    std::snprintf(text, sizeof text, "%.6f s of CLOCK_MONOTONIC", static_cast<double>(ns) / 1e9);
    return text;
}

std::string fault_text(const Segment& subnet, const Trace& t) {
    const std::string target = target_name(subnet, static_cast<FaultScope>(t.value), t.b);
    return std::string(name_of(static_cast<FaultKind>(t.a))) + ": " + target;
}

std::string details(const Segment& subnet, const Trace& t) {
    const auto number = [](auto value) { return std::to_string(value); };
    switch (row_of(t.kind).shows) {
    case Shows::nothing: return {};
    case Shows::process:
        return "pid " + number(t.c) +
               (t.b < subnet.hosts().size() ? std::string(" on ") + subnet.hosts()[t.b].name : "");
    case Shows::hca: return hca_name(subnet, t.a);
    case Shows::port: return port_name(subnet, t.a);
    case Shows::port_lid: return port_name(subnet, t.a) + " " + hex(t.b);
    case Shows::lid: return hex(t.a);
    case Shows::link: return link_name(subnet, t.a);
    case Shows::link_rate:
        return link_name(subnet, t.a) + " " + (t.value == 0 ? "unlimited" : number(t.value) + " bytes/s");
    case Shows::link_time: return link_name(subnet, t.a) + " " + number(t.value) + " ns";
    case Shows::link_value: return link_name(subnet, t.a) + " " + number(static_cast<double>(t.value) / 4294967296.0);
    case Shows::qp: return qp_name(t.a);
    case Shows::qp_peer:
        return qp_name(t.a) + " -> " + qp_name(t.b) + (t.c != 0 ? " LID " + hex(t.c) : "") + " (" + number(t.value) +
               ")";
    case Shows::access: return qp_name(t.a) + " -> " + qp_name(t.b) + " rkey " + hex(t.c) + " at " + hex(t.value);
    case Shows::cq: return number(t.a);
    case Shows::memory:
        return "pid " + number(t.a) + " region " + number(t.b) + " at " + hex(t.value) +
               (t.c == 0   ? " unmapped"
                : t.c == 1 ? " cannot be watched"
                           : " shared with a child");
    case Shows::fault_set: return fault_text(subnet, t);
    case Shows::fault_hit: return fault_text(subnet, t) + ", sent by " + qp_name(t.c);
    case Shows::event: return event_text(subnet, t);
    case Shows::clock: return "at " + clock_text(subnet.header().created_ns);
    case Shows::message: return message_text(t);
    case Shows::message_ended: return message_text(t) + " " + status_name(t.c >> 16);
    }
    return {};
}

}  // namespace

void trace(const Segment& subnet, TraceKind kind, std::uint32_t a, std::uint32_t b, std::uint32_t c,
           std::uint64_t value) noexcept {
    const auto entries = subnet.traces();
    if (entries.empty()) return;
    const std::uint64_t sequence = subnet.header().traced.fetch_add(1, std::memory_order_relaxed);
    Trace& entry = entries[sequence % entries.size()];
    entry.sequence.store(0, std::memory_order_release);
    entry.time_ns = now_ns();
    entry.kind = kind;
    entry.a = a;
    entry.b = b;
    entry.c = c;
    entry.value = value;
    entry.sequence.store(sequence + 1, std::memory_order_release);
}

const char* name_of(TraceKind kind) { return row_of(kind).name; }

const char* name_of(FaultKind kind) {
    const auto i = static_cast<std::size_t>(kind);
    return i < std::size(kFaultNames) ? kFaultNames[i] : "?";
}

std::string target_name(const Segment& subnet, FaultScope scope, std::uint32_t target) {
    switch (scope) {
    case FaultScope::all: return "all";
    case FaultScope::hca: return hca_name(subnet, target);
    case FaultScope::port: return port_name(subnet, target);
    case FaultScope::link: return "link " + link_name(subnet, target);
    case FaultScope::lid: return "LID " + hex(target);
    case FaultScope::qp: return qp_name(target);
    }
    return "?";
}

std::string hca_name(const Segment& subnet, std::uint32_t hca) {
    if (hca >= subnet.hcas().size()) return "?";
    const Hca& device = subnet.hcas()[hca];
    return std::string(subnet.hosts()[device.host].name) + "/" + device.name;
}

std::string port_name(const Segment& subnet, std::uint32_t port) {
    if (port >= subnet.ports().size()) return "?";
    return hca_name(subnet, subnet.ports()[port].hca) + "/" + std::to_string(subnet.ports()[port].number);
}

std::string link_name(const Segment& subnet, std::uint32_t link) {
    if (link >= subnet.links().size()) return "?";
    const auto end = [&](const Node& node) {
        return node.kind == NodeKind::port ? port_name(subnet, node.index)
                                           : std::string(subnet.switches()[node.index].name);
    };
    const Link& l = subnet.links()[link];
    return end(l.from) + " -> " + end(l.to) + (l.cable == 0 ? "" : ":" + std::to_string(l.cable));
}

std::string describe(const Segment& subnet, const Trace& entry) {
    char time[32];
    std::snprintf(time, sizeof time, "%12.6f s  ",
                  static_cast<double>(entry.time_ns - subnet.header().created_ns) / 1e9);
    return time + std::string(name_of(entry.kind)) + " " + details(subnet, entry);
}

}  // namespace coop::fabric
