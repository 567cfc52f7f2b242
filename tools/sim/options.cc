// SPDX-License-Identifier: BSD-3-Clause
#include "sim/options.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "sim/routes.h"
#include "sim/topology_file.h"

namespace coop::sim {
namespace {

struct Range {
    double least, most;
};
enum class Unit : std::uint8_t { kNone, kBytes, kRate, kNs };

struct Cost {
    double *base_ns, *page_ns;
};

struct Row {
    const char* name;
    std::variant<bool*, std::uint64_t*, double*, std::string*, Cost> value;
    Unit unit;
    Range range;
    const char* help;
};

constexpr Range kAny{0, 0};

std::vector<Row> rows(Options& o) {
    return {
        {"fat-tree", &o.fat_tree, Unit::kNone, kAny,
         "nodes below a switch of each level, ':', switches above a node of each level"},
        {"dragonfly", &o.dragonfly, Unit::kNone, kAny, "GROUPSxSWITCHESxHOSTS instead of a fat tree"},
        {"topology", &o.topology, Unit::kNone, kAny,
         "a file of switch, host and link statements instead of a fat tree"},
        {"host-rate", &o.host_rate, Unit::kRate, {1e6, 1e12}, "rate of a host's cable, in each direction"},
        {"switch-rate",
         &o.switch_rate,
         Unit::kRate,
         {1e6, 1e12},
         "rate of a cable between switches, in each direction"},
        {"lmc", &o.lmc, Unit::kNone, {0, kHighestLmc}, "2^lmc LIDs, and so paths, per host"},
        {"routing", &o.routing, Unit::kNone, kAny,
         "scattered: routes to different destinations are independent; by-destination: d-mod-k"},
        {"forwarding", &o.forwarding, Unit::kNone, kAny,
         "forwarding tables of a subnet manager, from a file written by 'coop-sim opensm'"},
        {"seed", &o.seed, Unit::kNone, {0, 1e18}, "seed of routes, mapping and neighbours"},
        {"pattern", &o.pattern, Unit::kNone, kAny, "ring, alltoall, allgather, allreduce or shifts"},
        {"algorithm", &o.algorithm, Unit::kNone, kAny, "of allgather: doubling, bruck, ring or neighbour"},
        {"announce", &o.announce, Unit::kNone, kAny,
         "handshakes of allgather: step: rendezvous in each step; call: one exchange of addresses per call"},
        {"await-sends", &o.await_sends, Unit::kNone, kAny,
         "with --announce call, wait for the completion of sends at the end of each step or of the call"},
        {"copy-below",
         &o.copy_below,
         Unit::kBytes,
         {0, 1e9},
         "steps of allgather of up to this size are copied through buffers, without a handshake"},
        {"copy-rate", &o.costs.copy_bytes_per_s, Unit::kRate, {1e6, 1e12}, "rate of the CPU in such a copy"},
        {"register-cost",
         Cost{&o.costs.new_buffer_ns, &o.costs.new_buffer_page_ns},
         Unit::kNs,
         {0, 1e9},
         "BASE,PER_PAGE: allgather registers new buffers in each call, as often as --announce says"},
        {"ranks", &o.ranks, Unit::kNone, {2, kMostHosts}, "processes of the job"},
        {"bytes", &o.bytes, Unit::kBytes, {1, 1e12}, "length of a message (allreduce: of the vector)"},
        {"iterations", &o.iterations, Unit::kNone, {1, 1e6}, "repetitions of the whole pattern"},
        {"messages", &o.messages, Unit::kNone, {1, 1e4}, "messages at once in each step"},
        {"only-step", &o.only_step, Unit::kNone, {0, kMostHosts}, "run only this step of the ring; 0: all"},
        {"every",
         &o.every,
         Unit::kNone,
         {1, kMostHosts},
         "run only every N-th step of the ring, alltoall or an allgather by ring, as a sample of a long run"},
        {"policy", &o.policy, Unit::kNone, kAny,
         "original, hsam:PATHS, even:PATHS, bss:PATHS,BATCH, or a policy of btl/coopib with :PATHS"},
        {"as-in-paper", &o.as_in_paper, Unit::kNone, kAny,
         "adaptive policies ignore queued bytes, do not probe, and trust every measurement after two"},
        {"alpha", &o.alpha, Unit::kNone, {1, 100}, "weight of the newest measurement, in percent"},
        {"probe-every",
         &o.probe_every,
         Unit::kNone,
         {0, 1e6},
         "messages without a measurement of a path before it is probed; 0: never"},
        {"min-stripe", &o.min_stripe, Unit::kBytes, {1, 1e9}, "the shortest stripe"},
        {"mapping", &o.mapping, Unit::kNone, kAny, "of ranks to hosts: sequential or random"},
        {"per-host", &o.per_host, Unit::kNone, {1, 256}, "processes on each host, with consecutive ranks"},
        {"cluster", &o.cluster, Unit::kNone, {0, kMostHosts}, "use only the first N hosts; 0: all"},
        {"neighbours", &o.neighbours, Unit::kNone, {0, 1000}, "number of other jobs, each with random shifts"},
        {"neighbour-ranks", &o.neighbour_ranks, Unit::kNone, {2, kMostHosts}, "ranks of each neighbour"},
        {"neighbour-bytes", &o.neighbour_bytes, Unit::kBytes, {1, 1e12}, "length of the neighbours' messages"},
        {"neighbour-policy", &o.neighbour_policy, Unit::kNone, kAny, "policy of the neighbours"},
        {"lose", &o.lose, Unit::kNone, kAny, "a switch that fails, or a cable such as leaf0-spine3"},
        {"lose-at", &o.lose_ns, Unit::kNs, {0, 1e15}, "time of the failure"},
        {"back-at", &o.back_ns, Unit::kNs, {0, 1e15}, "time of the repair; 0: never"},
        {"blocking", &o.blocking, Unit::kNone, kAny,
         "flows that a slow flow slows down: none; hosts: those of its host; cables: all that share a cable with it"},
        {"packets", &o.packets, Unit::kNone, kAny, "simulate packets and the buffers of switches instead of flows"},
        {"mtu", &o.mtu_bytes, Unit::kBytes, {256, 4096}, "size of packets"},
        {"buffer",
         &o.buffer_bytes,
         Unit::kBytes,
         {4096, 1e9},
         "buffer of a switch for each incoming cable, with --packets"},
        {"queues", &o.queues, Unit::kNone, kAny,
         "queues of such a buffer: input: one; output: one for each outgoing cable"},
        {"slice",
         &o.slice_ns,
         Unit::kNs,
         {-1, 1e9},
         "interval of computing rates; 0: always exact; -1: 1/32 of the time of a message"},
        {"memory",
         &o.memory_mbytes,
         Unit::kNone,
         {1, 1e6},
         "MB for schedulers; above this, idle channels keep only their weights"},
        {"start", &o.costs.start_ns, Unit::kNs, {0, 1e9}, "cost of a message at its sender"},
        {"post", &o.costs.post_ns, Unit::kNs, {0, 1e9}, "cost of a stripe with its FIN, or of a control packet"},
        {"completion", &o.costs.completion_ns, Unit::kNs, {0, 1e9}, "cost of a completion or an arrived packet"},
        {"poll", &o.costs.poll_ns, Unit::kNs, {0, 1e9}, "cost of a sweep over the completion queues"},
        {"late", &o.costs.late_ns, Unit::kNs, {0, 1e9}, "interval at which the progress engine polls; 0: always"},
        {"hop", &o.costs.hop_ns, Unit::kNs, {0, 1e9}, "latency of a switch"},
        {"wire", &o.costs.wire_ns, Unit::kNs, {0, 1e9}, "latency without the switches"},
        {"node", &o.costs.node_ns, Unit::kNs, {0, 1e9}, "latency between processes of a host"},
        {"node-rate",
         &o.costs.node_bytes_per_s,
         Unit::kRate,
         {1e6, 1e12},
         "rate of the sender's CPU, which copies a message to another process of its host"},
        {"register",
         &o.costs.register_ns,
         Unit::kNs,
         {0, 1e9},
         "cost of registering memory for the first message of a channel"},
        {"register-page", &o.costs.register_page_ns, Unit::kNs, {0, 1e9}, "additional cost for each 4096 bytes of it"},
        {"reduce-rate", &o.costs.reduce_bytes_per_s, Unit::kRate, {1e6, 1e12}, "rate of the CPU in a reduction"},
        {"retry", &o.costs.retry_ns, Unit::kNs, {1, 1e12}, "time until a stripe on a broken route fails"},
        {"manager", &o.costs.manager_ns, Unit::kNs, {1, 1e12}, "time until the subnet manager has new routes"},
        {"usage", &o.usage, Unit::kNone, kAny, "also print the bytes carried by each cable"},
        {"progress", &o.progress, Unit::kNone, kAny, "print progress on stderr"},
        {"help", &o.help, Unit::kNone, kAny, "print this help"},
    };
}

// A number with the suffix that goes with its unit.
std::optional<double> parse_number(const std::string& text, Unit unit) {
    if (unit == Unit::kRate) return parse_rate(text);
    static constexpr struct {
        Unit unit;
        const char* suffix;
        double factor;
    } kSuffixes[] = {{Unit::kBytes, "KiB", 1024}, {Unit::kBytes, "MiB", 1024.0 * 1024},
                     {Unit::kNs, "ns", 1},        {Unit::kNs, "us", 1e3},
                     {Unit::kNs, "ms", 1e6},      {Unit::kNs, "s", 1e9}};
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
    if (*end == '\0') return value;
    for (const auto& known : kSuffixes)
        if (known.unit == unit && std::string_view(known.suffix) == end) return value * known.factor;
    return std::nullopt;
}

std::string shown(double value, Unit unit) {
    char text[64];
    if (unit == Unit::kRate) std::snprintf(text, sizeof text, "%gMB/s", value / 1e6);
    else std::snprintf(text, sizeof text, "%.17g%s", value, unit == Unit::kNs ? "ns" : "");
    return text;
}

std::string bad_number(const Row& row, const std::string& text) {
    return "--" + std::string(row.name) + " '" + text + "' is not allowed (" + shown(row.range.least, row.unit) +
           " to " + shown(row.range.most, row.unit) + ")";
}

Defect set_cost(const Row& row, const Cost& cost, const std::string& text) {
    const std::size_t comma = text.find(',');
    if (comma == std::string::npos) return "--" + std::string(row.name) + " '" + text + "' is not BASE,PER_PAGE";
    const std::pair<double*, std::string> parts[] = {{cost.base_ns, text.substr(0, comma)},
                                                     {cost.page_ns, text.substr(comma + 1)}};
    for (const auto& [value, part] : parts) {
        const std::optional<double> number = parse_number(part, row.unit);
        if (!number || *number < row.range.least || *number > row.range.most) return bad_number(row, part);
        *value = *number;
    }
    return std::nullopt;
}

Defect set(const Row& row, const std::string& text) {
    if (const auto* words = std::get_if<std::string*>(&row.value)) {
        **words = text;
        return std::nullopt;
    }
    if (const auto* cost = std::get_if<Cost>(&row.value)) return set_cost(row, *cost, text);
    const std::optional<double> number = parse_number(text, row.unit);
    if (!number || *number < row.range.least || *number > row.range.most) return bad_number(row, text);
    if (const auto* real = std::get_if<double*>(&row.value)) {
        **real = *number;
        return std::nullopt;
    }
    if (*number != std::floor(*number)) return bad_number(row, text);
    **std::get_if<std::uint64_t*>(&row.value) = static_cast<std::uint64_t>(*number);
    return std::nullopt;
}

std::string default_of(const Row& row) {
    if (std::get_if<bool*>(&row.value) || std::get_if<Cost>(&row.value)) return "";
    if (const auto* words = std::get_if<std::string*>(&row.value)) return (*words)->empty() ? "" : " (" + **words + ")";
    const auto* real = std::get_if<double*>(&row.value);
    return " (" + shown(real ? **real : static_cast<double>(**std::get_if<std::uint64_t*>(&row.value)), row.unit) + ")";
}

}  // namespace

Defect read_options(const std::vector<std::string>& words, Options& options) {
    const std::vector<Row> known = rows(options);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const std::size_t equals = word.find('=');
        const Row* row = nullptr;
        for (const Row& candidate : known)
            if (word.substr(0, equals) == "--" + std::string(candidate.name)) row = &candidate;
        if (row == nullptr) return "there is no option '" + word + "' (--help lists them)";
        if (const auto* flag = std::get_if<bool*>(&row->value)) {
            if (equals != std::string::npos) return "--" + std::string(row->name) + " takes no value";
            **flag = true;
            continue;
        }
        if (equals == std::string::npos && i + 1 == words.size())
            return "--" + std::string(row->name) + " needs a value";
        if (Defect bad = set(*row, equals == std::string::npos ? words[++i] : word.substr(equals + 1))) return bad;
    }
    return std::nullopt;
}

std::string options_help() {
    Options defaults;
    std::string text;
    for (const Row& row : rows(defaults)) {
        std::string name = std::string("  --") + row.name;
        name.resize(std::max<std::size_t>(name.size() + 1, 22), ' ');
        text += name + row.help + default_of(row) + "\n";
    }
    return text;
}

}  // namespace coop::sim
