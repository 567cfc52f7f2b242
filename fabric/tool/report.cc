// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/report.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"
#include "fabric/tool/table.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

constexpr auto kLookAtTraceEvery = std::chrono::milliseconds(20);

const char* state_name(std::uint32_t state) {
    constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return state < std::size(names) ? names[state] : "?";
}

const char* migration_name(std::uint32_t state) {
    constexpr const char* names[] = {"migrated", "rearm", "armed"};
    return state < std::size(names) ? names[state] : "?";
}

const char* type_name(std::uint32_t type) {
    return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : type == IBV_QPT_UD ? "UD" : "?";
}

const char* state_of(const Segment& subnet, const Port& port) {
    if (subnet.hcas()[port.hca].down != 0) return "HCA down";
    if (port.down != 0) return "down";
    return subnet.links()[port.link_out].down != 0 || subnet.links()[port.link_in].down != 0 ? "no link" : "active";
}

TextTable port_table(const Segment& subnet) {
    TextTable table("ports", {"port", "state", "LID", "LMC", "sent_bytes", "received_bytes", "sent_packets",
                              "received_packets", "sent_messages", "received_messages", "discards", "symbol_errors",
                              "wait_ms", "link_downed", "bad_pkeys"});
    for (std::uint32_t i = 0; i < subnet.ports().size(); ++i) {
        const Port& port = subnet.ports()[i];
        const PortCounters& c = port.counters;
        table.row()
            .add(port_name(subnet, i))
            .add(state_of(subnet, port))
            .add(hex_text(port.lid))
            .add(port.lmc)
            .add(c.sent_bytes.load())
            .add(c.received_bytes.load())
            .add(c.sent_packets.load())
            .add(c.received_packets.load())
            .add(c.sent_messages.load())
            .add(c.received_messages.load())
            .add(c.discards.load())
            .add(c.symbol_errors.load())
            .add(static_cast<double>(c.wait_ns.load()) / 1e6)
            .add(c.link_downed.load())
            .add(c.bad_pkeys.load());
    }
    return table;
}

TextTable link_table(const Segment& subnet) {
    TextTable table("links", {"link", "state", "rate", "latency", "load", "bytes", "packets", "lost"});
    for (std::uint32_t i = 0; i < subnet.links().size(); ++i) {
        const Link& link = subnet.links()[i];
        table.row()
            .add(link_name(subnet, i))
            .add(link.down != 0 ? "down" : "up")
            .add(rate_text(link.rate))
            .add(time_text(link.latency_ns))
            .add(load_text(link.background))
            .add(link.bytes.load())
            .add(link.packets.load())
            .add(link.lost.load());
    }
    return table;
}

TextTable qp_table(const Segment& subnet) {
    TextTable table("queue_pairs",
                    {"QP", "type", "state", "HCA", "pid", "to_QP", "sent_messages", "sent_bytes", "received_messages",
                     "received_bytes", "retries", "RNR_retries", "duplicates", "migrations", "path"});
    for (const QueuePair& qp : subnet.ever_used<QueuePair>(kQueuePairs)) {
        if (!Segment::in_use(qp)) continue;
        table.row()
            .add(hex_text(qp.number))
            .add(type_name(qp.type))
            .add(std::string(state_name(qp.state)) + (qp.mute.load() != Mute::no ? ", mute" : ""))
            .add(hca_name(subnet, qp.hca))
            .add(subnet.processes()[qp.process].pid)
            .add(hex_text(qp.destination))
            .add(qp.sent_messages.load())
            .add(qp.sent_bytes.load())
            .add(qp.received_messages.load())
            .add(qp.received_bytes.load())
            .add(qp.retries.load())
            .add(qp.rnr_retries.load())
            .add(qp.duplicates.load())
            .add(qp.migrations.load())
            .add(migration_name(qp.migration));
    }
    return table;
}

// Includes processes that have ended, until another process takes their entry.
TextTable process_table(const Segment& subnet) {
    TextTable table("processes",
                    {"pid", "command", "host", "state", "engine_cpu_ms", "engine_wakeups", "locked_bytes"});
    for (const Process& process : subnet.ever_used<Process>(kProcesses))
        table.row()
            .add(process.pid)
            .add(process.command)
            .add(subnet.hosts()[process.host].name)
            .add(is_alive(process)          ? "running"
                 : Segment::in_use(process) ? "dead"
                                            : "ended")
            .add(static_cast<double>(process.engine_cpu_ns.load()) / 1e6)
            .add(process.engine_wakeups.load())
            .add(process.locked_bytes.load());
    return table;
}

}  // namespace

void print_counters(const Segment& subnet, const CounterChoice& choice, bool json) {
    std::vector<TextTable> tables;
    if (choice.ports) tables.push_back(port_table(subnet));
    if (choice.links) tables.push_back(link_table(subnet));
    if (choice.qps) tables.push_back(qp_table(subnet));
    if (choice.processes) tables.push_back(process_table(subnet));
    std::string all = json ? "{\n  \"subnet\": " + json_text(subnet.header().name) : std::string();
    for (std::size_t i = 0; i < tables.size(); ++i)
        if (json) all += ",\n  " + tables[i].json();
        else if (!tables[i].empty()) all += (i == 0 ? "" : "\n") + tables[i].text();
    std::printf("%s%s", all.c_str(), json ? "\n}\n" : "");
    std::fflush(stdout);
}

std::uint64_t write_trace(const Segment& subnet, FILE* to, std::uint64_t from) {
    const std::uint64_t end = read_traces(
        subnet, from, [&](const Trace& entry) { std::fprintf(to, "%s\n", describe(subnet, entry).c_str()); });
    if (end != from) std::fflush(to);
    return end;
}

void follow_trace(const Segment& subnet, FILE* to, const std::stop_token& stop) {
    const std::string file = Segment::path(subnet.header().name);
    std::uint64_t from = 0;
    bool there = true;
    while (!stop.stop_requested() && there && !std::ferror(to)) {
        there = access(file.c_str(), F_OK) == 0;
        from = write_trace(subnet, to, from);
        std::this_thread::sleep_for(kLookAtTraceEvery);
    }
    write_trace(subnet, to, from);
}

}  // namespace coop::fabric
