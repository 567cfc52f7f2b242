// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/shm/trace.h"

#include <array>
#include <cstdio>

namespace coop::fabric {
namespace {

// How the numbers of an entry are shown.
enum class Shows { nothing, process, hca, port, lid, link, link_rate, link_time, link_value, qp, qp_peer, memory, fault, event, message };

struct Row {
    TraceKind kind;
    const char* name;
    Shows shows;
};

constexpr std::array kRows = {
    Row{TraceKind::created, "created", Shows::nothing},
    Row{TraceKind::joined, "process joined", Shows::process},
    Row{TraceKind::left, "process left", Shows::process},
    Row{TraceKind::reaped, "dead process cleared away", Shows::process},
    Row{TraceKind::hca_down, "HCA down", Shows::hca},
    Row{TraceKind::hca_up, "HCA up", Shows::hca},
    Row{TraceKind::port_down, "port down", Shows::port},
    Row{TraceKind::port_up, "port up", Shows::port},
    Row{TraceKind::lid_down, "LID down", Shows::lid},
    Row{TraceKind::lid_up, "LID up", Shows::lid},
    Row{TraceKind::link_down, "link down", Shows::link},
    Row{TraceKind::link_up, "link up", Shows::link},
    Row{TraceKind::rate, "rate", Shows::link_rate},
    Row{TraceKind::latency, "latency", Shows::link_time},
    Row{TraceKind::loss, "loss", Shows::link_value},
    Row{TraceKind::background, "background load", Shows::link_rate},
    Row{TraceKind::fault_set, "fault set", Shows::fault},
    Row{TraceKind::fault_hit, "fault", Shows::fault},
    Row{TraceKind::retry, "retry", Shows::qp_peer},
    Row{TraceKind::rnr, "receiver not ready", Shows::qp_peer},
    Row{TraceKind::retry_exceeded, "retries exceeded", Shows::qp_peer},
    Row{TraceKind::rnr_exceeded, "RNR retries exceeded", Shows::qp_peer},
    Row{TraceKind::migrated, "path migrated", Shows::qp_peer},
    Row{TraceKind::migration_failed, "path migration failed", Shows::qp_peer},
    Row{TraceKind::armed, "path migration armed", Shows::qp_peer},
    Row{TraceKind::qp_error, "QP to error state", Shows::qp},
    Row{TraceKind::access_error, "remote access refused", Shows::qp_peer},
    Row{TraceKind::cq_overflow, "CQ overflow", Shows::qp},
    Row{TraceKind::stale_memory, "registered memory", Shows::memory},
    Row{TraceKind::event, "event", Shows::event},
    Row{TraceKind::message, "message", Shows::message},
};

const Row& row_of(TraceKind kind) {
    static constexpr Row unknown{TraceKind::created, "?", Shows::nothing};
    const auto i = static_cast<std::size_t>(kind);
    return i < kRows.size() ? kRows[i] : unknown;
}
static_assert([] {
    for (std::size_t i = 0; i < kRows.size(); ++i)
        if (kRows[i].kind != static_cast<TraceKind>(i)) return false;
    return kRows.size() == static_cast<std::size_t>(TraceKind::message) + 1;
}());

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

const char* fault_name(std::uint32_t kind) {
    static constexpr const char* names[] = {"drop", "corrupt", "lose-ack", "rnr", "reorder", "kill-qp", "kill-process"};
    return kind < std::size(names) ? names[kind] : "?";
}

// Most of what a QP number and the host of its process tell.
std::string qp_name(std::uint32_t number) { return "QP " + hex(number); }

std::string details(const Segment& subnet, const Trace& t) {
    const auto number = [](auto value) { return std::to_string(value); };
    switch (row_of(t.kind).shows) {
    case Shows::nothing: return {};
    case Shows::process:
        return "pid " + number(t.c) + (t.b < subnet.hosts().size() ? std::string(" on ") + subnet.hosts()[t.b].name : "");
    case Shows::hca: return hca_name(subnet, t.a);
    case Shows::port: return port_name(subnet, t.a);
    case Shows::lid: return hex(t.a);
    case Shows::link: return link_name(subnet, t.a);
    case Shows::link_rate: return link_name(subnet, t.a) + " " + (t.value == 0 ? "unlimited" : number(t.value) + " bytes/s");
    case Shows::link_time: return link_name(subnet, t.a) + " " + number(t.value) + " ns";
    case Shows::link_value: return link_name(subnet, t.a) + " " + number(static_cast<double>(t.value) / 4294967296.0);
    case Shows::qp: return qp_name(t.a);
    case Shows::qp_peer: return qp_name(t.a) + " -> " + qp_name(t.b) + (t.c != 0 ? " LID " + hex(t.c) : "") + " (" + number(t.value) + ")";
    case Shows::memory: return "pid " + number(t.a) + " region " + number(t.b) + " at " + hex(t.value) + (t.c == 0 ? " unmapped" : " cannot be watched");
    case Shows::fault: return std::string(fault_name(t.a)) + " at " + (t.c == 0 ? "" : qp_name(t.c)) + " target " + hex(t.b);
    case Shows::event:
        return hca_name(subnet, t.a) + " " + number(t.b) + " object " + number(t.c);
    case Shows::message: return qp_name(t.a) + " -> " + qp_name(t.b) + " opcode " + number(t.c) + ", " + number(t.value) + " bytes";
    }
    return {};
}

}  // namespace

void trace(const Segment& subnet, TraceKind kind, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint64_t value) noexcept {
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
        return node.kind == NodeKind::port ? port_name(subnet, node.index) : std::string(subnet.switches()[node.index].name);
    };
    const Link& l = subnet.links()[link];
    return end(l.from) + " -> " + end(l.to) + (l.cable == 0 ? "" : ":" + std::to_string(l.cable));
}

std::string describe(const Segment& subnet, const Trace& entry) {
    char time[32];
    std::snprintf(time, sizeof time, "%12.6f s  ", static_cast<double>(entry.time_ns - subnet.header().created_ns) / 1e9);
    return time + std::string(name_of(entry.kind)) + " " + details(subnet, entry);
}

}  // namespace coop::fabric
