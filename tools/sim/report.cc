// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report.h"

#include <cstdio>

namespace coop::sim {
namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

std::string list(const std::vector<double>& values, double factor = 1) {
    std::string text = "[";
    for (const double value : values) text.append(text.size() > 1 ? ", " : "").append(number(value * factor));
    return text + "]";
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + "\"";
}

// The time of each iteration, from the end of the one before it.
std::vector<double> durations(const std::vector<double>& ends) {
    std::vector<double> found;
    for (std::size_t i = 0; i < ends.size(); ++i) found.push_back(ends[i] - (i == 0 ? 0 : ends[i - 1]));
    return found;
}

std::string cables(const World& world) {
    const Topology& t = world.topology();
    std::string text = "[";
    for (LinkIndex link = 0; link < t.links.size(); ++link) {
        if (text.size() > 1) text += ",\n  ";
        text += "[" + quoted(t.node_names[t.links[link].from]) + ", " + quoted(t.node_names[t.links[link].to]) + ", " +
                number(world.network().bytes_over(link)) + "]";
    }
    return text + "]";
}

// MB/s of each process in each step of the ring.
std::string bandwidths(const JobResult& result, const Workload& work) {
    std::string text = "[";
    for (const std::vector<double>& step : result.step_ns) {
        std::vector<double> rates;
        for (const double ns : step) rates.push_back(static_cast<double>(work.bytes * work.messages) / ns * 1e3);
        text.append(text.size() > 1 ? ",\n  " : "").append(list(rates));
    }
    return text + "]";
}

}  // namespace

std::string to_json(const Options& o, const World& world, const WorldPlan& plan, double wall_s) {
    const JobResult& job = world.results()[0];
    std::string text = "{\"program\": \"coop-sim\", \"schema\": 1,\n \"hosts\": " +
                       std::to_string(world.topology().hosts);
    text += ", \"switches\": " + std::to_string(world.topology().switches()) + ", \"lmc\": " + std::to_string(o.lmc);
    text += ", \"pattern\": " + quoted(o.pattern) + ", \"policy\": " + quoted(o.policy) +
            ", \"ranks\": " + std::to_string(o.ranks);
    text += ", \"bytes\": " + std::to_string(o.bytes) + ", \"mapping\": " + quoted(o.mapping) +
            ", \"seed\": " + std::to_string(o.seed);
    text += ",\n \"iteration_us\": " + list(durations(job.iteration_end_ns), 1e-3);
    text += ",\n \"messages\": " + std::to_string(job.messages) + ", \"stripes\": " + std::to_string(job.stripes);
    text += ", \"replayed\": " + std::to_string(job.replayed) + ", \"probes\": " + std::to_string(job.probes);
    text += std::string(", \"idle_channels_keep_weights_only\": ") + (job.keeps_weights_only ? "true" : "false");
    text += ",\n \"events\": " + std::to_string(world.events()) +
            ", \"solved\": " + std::to_string(world.network().work()) + ", \"wall_s\": " + number(wall_s);
    if (!job.step_ns.empty()) text += ",\n \"mb_per_s\": " + bandwidths(job, plan.jobs[0].workload);
    if (o.usage) text += ",\n \"cables\": " + cables(world);
    return text + "}\n";
}

}  // namespace coop::sim
