// SPDX-License-Identifier: BSD-3-Clause
//
// A table for each connected peer, printed when the process ends. A rail that never
// opened has no line, and the others keep their numbers.
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "migration.h"
#include "module.h"
#include "progress.h"

namespace coop::ib {
namespace {

std::string line_of(const Module& m, const Channel& channel, const Rail& rail) {
    char line[256];
    const sched::RailSet& known = channel.scheduler->rails();
    const sched::RailInfo& info = known[rail.number()].info;
    const rail::RailCounts counts = counts_of(channel, rail);
    std::snprintf(
        line, sizeof line, "  %-4u  %-10s  %4u  %9u  %2u  %15llu  %9llu  %9llu  %9llu  %9llu  %9llu  %5.1f %%\n",
        static_cast<unsigned>(rail.number()), m.hcas[rail.local_hca].name().c_str(), static_cast<unsigned>(info.port),
        static_cast<unsigned>(info.path), static_cast<unsigned>(info.qp), static_cast<unsigned long long>(counts.bytes),
        static_cast<unsigned long long>(counts.sends), static_cast<unsigned long long>(counts.stripes),
        static_cast<unsigned long long>(counts.waits), static_cast<unsigned long long>(counts.read_waits),
        static_cast<unsigned long long>(rail.early), 100 * known.share(rail.number()));
    return line;
}

// One line for each scheduling reason that has occurred.
std::string operations_of(const Channel& channel) {
    std::string lines;
    for (std::size_t i = 0; i < sched::kReasons; ++i)
        if (channel.whole[i] + channel.striped[i] > 0)
            lines += "  RDMA operations: " + std::to_string(channel.whole[i]) + " whole, " +
                     std::to_string(channel.striped[i]) + " in stripes: " + sched::text(static_cast<sched::Reason>(i)) +
                     "\n";
    return lines;
}

// The thresholds that follow the rails, and from where they come.
std::string thresholds_of(const Module& m, const Channel& channel) {
    const sched::Scheduler& scheduler = *channel.scheduler;
    std::string line = "  packets of up to " + std::to_string(m.base.btl_eager_limit) +
                       " bytes go without a handshake (" +
                       (m.limit_set ? "btl_coopib_eager_limit" : "what a packet can carry") + ")\n";
    if (m.awaited_packet_max < m.base.btl_eager_limit)
        line += "  if the sender waits: of up to " + std::to_string(m.awaited_packet_max) +
                " bytes (longer ones are faster in stripes on ports this slow)\n";
    if (m.long_packet_max != 0 && channel.outbox && channel.outbox->slots.shape().most_bytes > m.buffer_bytes())
        line += "  in a ring: of up to " + std::to_string(m.long_packet_max) +
                " bytes, if that is quicker than a handshake (pml_coop_report counts them)\n";
    if (channel.rails.numbers() < 2) return line;
    line += "  shortest stripe: " + std::to_string(scheduler.limits().min) + " bytes (";
    if (m.sched.min_stripe != 0) return line + "btl_coopib_min_stripe)\n";
    const std::uint64_t fastest = scheduler.fastest_rail() / 1'000'000;
    if (fastest == 0) return line + "the rates of the rails are unknown)\n";
    return line + "the fastest rail has " + std::to_string(fastest) + " MB/s)\n";
}

// Uses the id, because Open MPI may have freed endpoint.proc by now.
std::string readers_of(const Channel& channel) {
    std::size_t readers = 0;
    std::uint64_t bytes = 0;
    for (const Rail& rail : channel.rails)
        if (const Rail* const reader = channel.rails.reader(rail.number())) {
            ++readers;
            bytes += reader->counts.bytes;
        }
    return readers == 0 ? ""
                        : "  read over queue pairs of their own, which " + std::to_string(readers) +
                              (readers == 1 ? " rail has: " : " rails have: ") + std::to_string(bytes) + " bytes\n";
}

// One line for each rail that has failed.
std::string failures_of(const Channel& channel) {
    std::string lines;
    for (std::size_t i = 0; i < channel.repair.size(); ++i) {
        const RailRepair& repair = channel.repair[i];
        if (repair.failures == 0 && repair.recoveries == 0) continue;
        lines += "  rail " + std::to_string(i) + " failed " + std::to_string(repair.failures) + " times, came back " +
                 std::to_string(repair.recoveries) + " times, is " + path::name(repair.life.state()) + " (generation " +
                 std::to_string(repair.life.generation()) +
                 "); sent again over others: " + std::to_string(repair.repeated) + " requests, " +
                 std::to_string(repair.repeated_bytes) + " bytes\n";
    }
    if (lines.empty()) return lines;
    return lines + "  arrived twice and dropped: " + std::to_string(channel.duplicates) +
           "; times without a rail: " + std::to_string(channel.partitions) + "\n";
}

// If the queue pair leaves congested paths, and something was measured. Numbers of paths begin with 1, in the order of the ring.
std::string rates_of(const Rail* rail, const char* what) {
    if (rail == nullptr || rail->balance == nullptr) return {};
    const path::Balance& balance = *rail->balance;
    std::string rates;
    bool any = false;
    for (std::size_t path = 0; path < balance.paths(); ++path) {
        const auto mbytes_per_s = static_cast<std::uint64_t>(balance.rate(path) * 1e3);
        any |= mbytes_per_s != 0;
        rates += (path == 0 ? "" : ", ") + (mbytes_per_s != 0 ? std::to_string(mbytes_per_s) : "-");
    }
    if (!any) return {};
    return "  rail " + std::to_string(rail->number()) + ": " + what + " go over path " +
           std::to_string(balance.current() + 1) + " of " + std::to_string(balance.paths()) + "; measured: " + rates +
           " MB/s\n";
}

// One line for each rail, if rails are to have alternate paths. Asks the HCAs.
std::string moves_of(const Module& m, const Channel& channel) {
    std::string lines;
    for (Rail& rail : channel.rails) {
        if (m.migrations == nullptr) break;
        Rail* const reader = channel.rails.reader(rail.number());
        const bool armed = m.migrations->is_armed(rail, now_ns()) &&
                           (reader == nullptr || m.migrations->is_armed(*reader, now_ns()));
        lines += "  rail " + std::to_string(rail.number()) + " moved " + std::to_string(moves_of(channel, rail)) +
                 " times, is on port " + std::to_string(rail.port) + ", path bits " + std::to_string(rail.path_bits) +
                 ", " + (armed ? "armed" : "not armed") +
                 (rail.no_alternate == path::NoAlternate::kNone
                      ? ""
                      : std::string(": ") + path::describe(rail.no_alternate)) +
                 "\n" + rates_of(&rail, "sends and writes") + rates_of(reader, "reads");
    }
    return lines;
}

std::uint32_t rank_of(const Endpoint& endpoint) { return static_cast<std::uint32_t>(endpoint.id & 0xffffffff); }

std::string table_of(const Module& m, const Endpoint& endpoint) {
    const Channel& channel = *endpoint.channel;
    std::string table = "btl/coopib: rank " + std::to_string(OPAL_PROC_MY_NAME.vpid) + " to rank " +
                        std::to_string(rank_of(endpoint)) +
                        "\n  rail  HCA         port  path bits  QP            bytes      sends    stripes      waits   "
                        "   reads      early  weight now\n";
    for_each_used_rail(channel, [&](const Rail& rail) { table += line_of(m, channel, rail); });
    table += "  waited for the connection: " + std::to_string(channel.connect_waits) +
             "; datagrams sent again: " + std::to_string(m.connections->repeated(endpoint.id)) +
             "\n  written into the peer's ring: " + std::to_string(channel.ring_messages) +
             "; messages with nothing but credits: " + std::to_string(channel.credit_messages) + "\n" +
             readers_of(channel) + moves_of(m, channel) + failures_of(channel) + thresholds_of(m, channel) +
             operations_of(channel);
    if (channel.signals > 0) table += "  signals behind writes: " + std::to_string(channel.signals) + "\n";
    if (!channel.scheduler->last_small().empty())
        table += "  last small message: " + channel.scheduler->describe_last_small() + "\n";
    if (!channel.scheduler->last_large().empty())
        table += "  last large message: " + channel.scheduler->describe_last_large() + "\n";
    return table;
}

}  // namespace

void print_report(const Module& m) {
    std::vector<const Endpoint*> peers;
    for (const auto& [id, endpoint] : m.endpoints)
        if (endpoint->channel && endpoint->channel->state == ChannelState::kConnected) peers.push_back(endpoint.get());
    std::sort(peers.begin(), peers.end(), [](const Endpoint* a, const Endpoint* b) { return a->id < b->id; });
    // Written at once, so that the lines of several processes do not mix.
    std::string all;
    for (const Endpoint* peer : peers) all += table_of(m, *peer);
    std::fputs(all.c_str(), stderr);
    std::fflush(stderr);
}

}  // namespace coop::ib
