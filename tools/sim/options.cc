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

struct Row {
    const char* name;
    std::variant<bool*, std::uint64_t*, double*, std::string*> value;
    Unit unit;
    Range range;
    const char* help;
};

constexpr Range kAny{0, 0};

std::vector<Row> rows(Options& o) {
    return {
        {"fat-tree", &o.fat_tree, Unit::kNone, kAny, "nodes below a switch of each level, ':', switches above a node of each level"},
        {"dragonfly", &o.dragonfly, Unit::kNone, kAny, "GROUPSxSWITCHESxHOSTS instead of a fat tree"},
        {"topology", &o.topology, Unit::kNone, kAny, "a file of switch, host and link statements instead of a fat tree"},
        {"host-rate", &o.host_rate, Unit::kRate, {1e6, 1e12}, "what a host moves in each direction"},
        {"switch-rate", &o.switch_rate, Unit::kRate, {1e6, 1e12}, "a cable between switches, in each direction"},
        {"lmc", &o.lmc, Unit::kNone, {0, kHighestLmc}, "2^lmc LIDs, and so paths, per host"},
        {"routing", &o.routing, Unit::kNone, kAny, "scattered: ways of different destinations have nothing to do with each other; by-destination: d-mod-k"},
        {"forwarding", &o.forwarding, Unit::kNone, kAny, "forwarding tables of a subnet manager, from a file that 'coop-sim opensm' made"},
        {"seed", &o.seed, Unit::kNone, {0, 1e18}, "of routes, mapping and neighbours"},
        {"pattern", &o.pattern, Unit::kNone, kAny, "ring, alltoall, allgather, allreduce or shifts"},
        {"ranks", &o.ranks, Unit::kNone, {2, kMostHosts}, "processes of the job, one on a host"},
        {"bytes", &o.bytes, Unit::kBytes, {1, 1e12}, "of a message (allreduce: of the vector)"},
        {"iterations", &o.iterations, Unit::kNone, {1, 1e6}, "of the whole pattern, one after the other"},
        {"messages", &o.messages, Unit::kNone, {1, 1e4}, "of each step, at once"},
        {"only-step", &o.only_step, Unit::kNone, {0, kMostHosts}, "of the ring, this step alone; 0: all"},
        {"every", &o.every, Unit::kNone, {1, kMostHosts}, "of the ring and alltoall, each so-manieth step: a sample of what would take long"},
        {"policy", &o.policy, Unit::kNone, kAny, "original, hsam:PATHS, even:PATHS, bss:PATHS,BATCH, or a policy of btl/coopib with :PATHS"},
        {"as-in-paper", &o.as_in_paper, Unit::kNone, kAny, "adaptive policies neither count what is queued nor probe, and believe every measurement after two"},
        {"alpha", &o.alpha, Unit::kNone, {1, 100}, "percent of the newest measurement in a weight"},
        {"probe-every", &o.probe_every, Unit::kNone, {0, 1e6}, "messages that may pass a path by before it is measured again; 0: never"},
        {"min-stripe", &o.min_stripe, Unit::kBytes, {1, 1e9}, "the shortest stripe"},
        {"mapping", &o.mapping, Unit::kNone, kAny, "sequential, or random: rank to host"},
        {"cluster", &o.cluster, Unit::kNone, {0, kMostHosts}, "only so many hosts, the first ones, are in use; 0: all"},
        {"neighbours", &o.neighbours, Unit::kNone, {0, 1000}, "other jobs beside this one, each with random shifts"},
        {"neighbour-ranks", &o.neighbour_ranks, Unit::kNone, {2, kMostHosts}, "of each of them"},
        {"neighbour-bytes", &o.neighbour_bytes, Unit::kBytes, {1, 1e12}, "of their messages"},
        {"neighbour-policy", &o.neighbour_policy, Unit::kNone, kAny, "theirs"},
        {"lose", &o.lose, Unit::kNone, kAny, "a switch that fails, or a cable as leaf0-spine3"},
        {"lose-at", &o.lose_ns, Unit::kNs, {0, 1e15}, "when"},
        {"back-at", &o.back_ns, Unit::kNs, {0, 1e15}, "when it is there again; 0: never"},
        {"blocking", &o.blocking, Unit::kNone, kAny, "whose rate a slow flow takes down with its own: none; hosts: its host's; cables: all that share a cable with it"},
        {"packets", &o.packets, Unit::kNone, kAny, "move each packet by itself, through buffers of switches, instead of flows"},
        {"mtu", &o.mtu_bytes, Unit::kBytes, {256, 4096}, "of packets"},
        {"buffer", &o.buffer_bytes, Unit::kBytes, {4096, 1e9}, "of a switch for each cable into it, with --packets"},
        {"queues", &o.queues, Unit::kNone, kAny, "of such a buffer: input: one; output: one for each way on"},
        {"slice", &o.slice_ns, Unit::kNs, {-1, 1e9}, "how long rates may be out of date; 0: never; -1: a 32nd of a message"},
        {"memory", &o.memory_mbytes, Unit::kNone, {1, 1e6}, "MB for schedulers; beyond, idle channels keep their weights only"},
        {"start", &o.costs.start_ns, Unit::kNs, {0, 1e9}, "cost of a message at its sender"},
        {"post", &o.costs.post_ns, Unit::kNs, {0, 1e9}, "cost of a stripe with its FIN, or of a control packet"},
        {"completion", &o.costs.completion_ns, Unit::kNs, {0, 1e9}, "cost of a completion or an arrived packet"},
        {"poll", &o.costs.poll_ns, Unit::kNs, {0, 1e9}, "cost of a sweep over the completion queues"},
        {"late", &o.costs.late_ns, Unit::kNs, {0, 1e9}, "the progress engine looks only this often; 0: always"},
        {"hop", &o.costs.hop_ns, Unit::kNs, {0, 1e9}, "latency of a switch"},
        {"wire", &o.costs.wire_ns, Unit::kNs, {0, 1e9}, "latency of the rest"},
        {"register", &o.costs.register_ns, Unit::kNs, {0, 1e9}, "registration for the first message of a channel"},
        {"register-page", &o.costs.register_page_ns, Unit::kNs, {0, 1e9}, "and for each 4096 bytes of it"},
        {"reduce-rate", &o.costs.reduce_bytes_per_s, Unit::kRate, {1e6, 1e12}, "of the CPU, in a reduction"},
        {"retry", &o.costs.retry_ns, Unit::kNs, {1, 1e12}, "until a stripe whose way is gone has failed"},
        {"manager", &o.costs.manager_ns, Unit::kNs, {1, 1e12}, "until there are new routes"},
        {"usage", &o.usage, Unit::kNone, kAny, "also print what each cable carried"},
        {"progress", &o.progress, Unit::kNone, kAny, "say on stderr how far it is"},
        {"help", &o.help, Unit::kNone, kAny, "this"},
    };
}

// A number with the suffix that goes with its unit.
std::optional<double> parse_number(const std::string& text, Unit unit) {
    if (unit == Unit::kRate) return parse_rate(text);
    static constexpr struct {
        Unit unit;
        const char* suffix;
        double factor;
    } kSuffixes[] = {{Unit::kBytes, "KiB", 1024}, {Unit::kBytes, "MiB", 1024.0 * 1024}, {Unit::kNs, "ns", 1}, {Unit::kNs, "us", 1e3},
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
    if (unit == Unit::kRate)
        std::snprintf(text, sizeof text, "%gMB/s", value / 1e6);
    else
        std::snprintf(text, sizeof text, "%.17g%s", value, unit == Unit::kNs ? "ns" : "");
    return text;
}

std::string bad_number(const Row& row, const std::string& text) {
    return "--" + std::string(row.name) + " '" + text + "' is not allowed (" + shown(row.range.least, row.unit) + " to " + shown(row.range.most, row.unit) + ")";
}

Defect set(const Row& row, const std::string& text) {
    if (const auto* words = std::get_if<std::string*>(&row.value)) {
        **words = text;
        return std::nullopt;
    }
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
    if (std::get_if<bool*>(&row.value)) return "";
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
        if (equals == std::string::npos && i + 1 == words.size()) return "--" + std::string(row->name) + " needs a value";
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
