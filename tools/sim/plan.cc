// SPDX-License-Identifier: BSD-3-Clause
#include "sim/plan.h"

#include <fstream>
#include <numeric>
#include <sstream>

#include "sim/forwarding_file.h"
#include "sim/placement.h"
#include "sim/topology_file.h"

namespace coop::sim {
namespace {

template <class T>
using Or = std::variant<T, std::string>;  // or an error message

template <class T>
Defect take(Or<T> from, T& to) {
    if (auto* bad = std::get_if<std::string>(&from)) return *bad;
    to = std::move(std::get<T>(from));
    return std::nullopt;
}

Defect read_file(const std::string& path, std::string& text) {
    std::ifstream file(path);
    std::ostringstream contents;
    if (!file || !(contents << file.rdbuf())) return "cannot read '" + path + "'";
    text = contents.str();
    return std::nullopt;
}

// --- topology and routes --------------------------------------------------------------------------------------------

Defect make_topology(const Options& o, Topology& t) {
    const Rates rates{o.host_rate, o.switch_rate};
    if (!o.topology.empty()) {
        std::string text;
        if (Defect bad = read_file(o.topology, text)) return bad;
        if (Defect bad = take(parse_topology(o.topology, text, rates), t)) return bad;
    } else if (!o.dragonfly.empty()) {
        DragonflyShape shape{};
        if (Defect bad = take(parse_dragonfly(o.dragonfly), shape)) return bad;
        t = make_dragonfly(shape, rates);
    } else {
        FatTreeShape shape;
        if (Defect bad = take(parse_fat_tree(o.fat_tree), shape)) return bad;
        t = make_fat_tree(shape, rates);
    }
    return defect(t);
}

Defect parse_routing(const std::string& word, Routing& routing) {
    if (word == "scattered" || word == "by-destination") {
        routing = word == "scattered" ? Routing::kScattered : Routing::kByDestination;
        return std::nullopt;
    }
    return "--routing '" + word + "' is not one of scattered, by-destination";
}

Defect parse_blocking(const std::string& word, Blocking& blocking) {
    static constexpr const char* kNames[] = {"none", "hosts", "cables"};
    for (std::size_t i = 0; i < std::size(kNames); ++i)
        if (word == kNames[i]) {
            blocking = static_cast<Blocking>(i);
            return std::nullopt;
        }
    return "--blocking '" + word + "' is not one of none, hosts, cables";
}

Defect make_packets(const Options& o, WorldPlan& plan) {
    if (o.queues != "input" && o.queues != "output") return "--queues '" + o.queues + "' is not one of input, output";
    if (!o.packets) return std::nullopt;
    if (plan.blocking != Blocking::kOff) return "--blocking " + o.blocking + " is for flows: not with --packets";
    plan.packets = {static_cast<std::uint32_t>(o.mtu_bytes), o.buffer_bytes,
                    o.queues == "input" ? Queues::kInput : Queues::kOutput};
    return std::nullopt;
}

Defect make_routes(const Options& o, const Topology& t, Routing routing, Routes& routes) {
    const auto lmc = static_cast<std::uint32_t>(o.lmc);
    if (Defect bad = lid_defect(t, lmc)) return bad;
    if (o.forwarding.empty()) {
        routes = assign_lids(t, lmc);
        return compute(t, routing, o.seed, routes);
    }
    std::string text;
    if (Defect bad = read_file(o.forwarding, text)) return bad;
    if (Defect bad = take(parse_forwarding(o.forwarding, text, t, lmc), routes)) return bad;
    return defect(t, routes);
}

// --- jobs -----------------------------------------------------------------------------------------------------------

Defect make_scheduling(const Options& o, const std::string& option, const std::string& word, Scheduling& setup) {
    if (Defect bad = take(parse_scheduling(word), setup)) return option + ": " + *bad;
    setup.config.alpha_percent = static_cast<std::uint32_t>(o.alpha);
    setup.config.min_stripe = o.min_stripe;
    setup.config.probe_every = o.as_in_paper ? 0 : static_cast<std::uint32_t>(o.probe_every);
    setup.config.count_backlog = !o.as_in_paper;
    if (o.as_in_paper) setup.config.latency_ns = setup.config.pause_ns = 0;
    if (setup.paths > 1u << o.lmc)
        return option + " '" + word + "' needs " + std::to_string(setup.paths) + " paths; with LMC " +
               std::to_string(o.lmc) + " there are " + std::to_string(1u << o.lmc);
    return std::nullopt;
}

Defect parse_mapping(const std::string& word, Mapping& mapping) {
    if (word != "sequential" && word != "random") return "--mapping '" + word + "' is not one of sequential, random";
    mapping = word == "random" ? Mapping::kRandom : Mapping::kSequential;
    return std::nullopt;
}

// The hosts that a job has left free.
std::vector<NodeIndex> without(const std::vector<NodeIndex>& all, const std::vector<NodeIndex>& taken) {
    std::vector<bool> gone(all.empty() ? 0 : all.back() + 1, false);
    for (const NodeIndex host : taken) gone[host] = true;
    std::vector<NodeIndex> left;
    for (const NodeIndex host : all)
        if (!gone[host]) left.push_back(host);
    return left;
}

Defect add_neighbours(const Options& o, std::vector<NodeIndex> free, WorldPlan& plan) {
    JobPlan job;
    job.background = true;
    job.workload = {Pattern::kShifts, static_cast<std::uint32_t>(o.neighbour_ranks), o.neighbour_bytes, 1, 1, o.seed};
    if (o.neighbours != 0)
        if (Defect bad = make_scheduling(o, "--neighbour-policy", o.neighbour_policy, job.setup)) return bad;
    for (std::uint64_t i = 0; i < o.neighbours; ++i) {
        job.workload.seed = o.seed + 1000 + i;
        if (Defect bad = take(place(Mapping::kRandom, job.workload.ranks, free, job.workload.seed), job.hosts))
            return "neighbour " + std::to_string(i + 1) + ": " + *bad;
        free = without(free, job.hosts);
        plan.jobs.push_back(job);
    }
    return std::nullopt;
}

Defect only_for_allgather(const Options& o) {
    const Options defaults;
    const char* given = o.algorithm != defaults.algorithm       ? "--algorithm"
                        : o.announce != defaults.announce       ? "--announce"
                        : o.await_sends != defaults.await_sends ? "--await-sends"
                        : o.copy_below != 0                     ? "--copy-below"
                        : o.costs.has_new_buffers()             ? "--register-cost"
                                                                : nullptr;
    if (given == nullptr) return std::nullopt;
    return std::string(given) + ": only --pattern allgather has the option";
}

Defect make_allgather(const Options& o, Workload& work) {
    if (work.pattern != Pattern::kAllgather) return only_for_allgather(o);
    const auto algorithm = algorithm_named(o.algorithm);
    if (!algorithm) return "--algorithm '" + o.algorithm + "' is not one of doubling, bruck, ring, neighbour";
    if (!coll::fits(*algorithm, work.ranks)) {
        const char* needed = *algorithm == coll::Algorithm::kNeighbour ? "an even number" : "a power of two";
        return "--algorithm " + o.algorithm + " needs " + needed + " of ranks, not " + std::to_string(work.ranks);
    }
    if (o.announce != "step" && o.announce != "call") return "--announce '" + o.announce + "' is not one of step, call";
    if (o.await_sends != "step" && o.await_sends != "call")
        return "--await-sends '" + o.await_sends + "' is not one of step, call";
    work.algorithm = *algorithm;
    work.await_sends = o.await_sends == "step";
    work.announce = o.announce == "call" ? Announce::kCall : Announce::kStep;
    work.copy_below = o.copy_below;
    return std::nullopt;
}

Defect make_jobs(const Options& o, WorldPlan& plan) {
    const std::uint32_t hosts = plan.topology.hosts;
    if (o.cluster > hosts)
        return "--cluster " + std::to_string(o.cluster) + " is more than the " + std::to_string(hosts) +
               " hosts there are";
    std::vector<NodeIndex> free(o.cluster == 0 ? hosts : o.cluster);
    std::iota(free.begin(), free.end(), 0u);
    JobPlan job;
    const auto pattern = pattern_named(o.pattern);
    if (!pattern) return "--pattern '" + o.pattern + "' is not one of ring, alltoall, allgather, allreduce, shifts";
    job.workload = {*pattern,
                    static_cast<std::uint32_t>(o.ranks),
                    o.bytes,
                    static_cast<std::uint32_t>(o.iterations),
                    static_cast<std::uint32_t>(o.messages),
                    o.seed};
    if (Defect bad = make_allgather(o, job.workload)) return bad;
    if (o.only_step != 0 && (*pattern != Pattern::kRing || o.only_step >= o.ranks))
        return "--only-step " + std::to_string(o.only_step) + ": the ring has steps 1 to " +
               std::to_string(o.ranks - 1) + ", only this pattern has the option";
    const bool equal_steps = *pattern == Pattern::kAllgather && o.algorithm == "ring";
    const bool may_leave_out = *pattern == Pattern::kAlltoall || equal_steps ||
                               (*pattern == Pattern::kRing && o.only_step == 0);
    if (o.every != 1 && (!may_leave_out || o.every >= o.ranks))
        return "--every " + std::to_string(o.every) + ": ring, alltoall and a ring allgather have steps 1 to " +
               std::to_string(o.ranks - 1) + ", only these have the option";
    job.workload.every = static_cast<std::uint32_t>(o.every);
    job.workload.only_step = static_cast<std::uint32_t>(o.only_step);
    if (Defect bad = make_scheduling(o, "--policy", o.policy, job.setup)) return bad;
    Mapping mapping{};
    if (Defect bad = parse_mapping(o.mapping, mapping)) return bad;
    if (Defect bad = take(place(mapping, job.workload.ranks, free, o.seed, static_cast<std::uint32_t>(o.per_host)),
                          job.hosts))
        return bad;
    plan.jobs.push_back(job);
    return add_neighbours(o, without(free, job.hosts), plan);
}

// --- failures -------------------------------------------------------------------------------------------------------

// All cables of a switch, or those between two nodes.
Or<std::vector<LinkIndex>> cables_named(const Topology& t, const std::string& word) {
    const NodeIndex whole = t.find(word);
    if (whole != kNone && !t.is_host(whole)) return t.ports[whole];
    for (std::size_t dash = word.find('-'); dash != std::string::npos; dash = word.find('-', dash + 1)) {
        const NodeIndex a = t.find(word.substr(0, dash)), b = t.find(word.substr(dash + 1));
        if (a == kNone || b == kNone) continue;
        std::vector<LinkIndex> cables;
        for (const LinkIndex link : t.ports[a])
            if (t.links[link].to == b) cables.push_back(link);
        if (!cables.empty()) return cables;
    }
    return "--lose '" + word + "': there is no such switch, and no such cable";
}

Defect make_changes(const Options& o, WorldPlan& plan) {
    if (o.lose.empty()) return std::nullopt;
    std::vector<LinkIndex> cables;
    if (Defect bad = take(cables_named(plan.topology, o.lose), cables)) return bad;
    if (o.back_ns != 0 && o.back_ns <= o.lose_ns) return "--back-at is not after --lose-at";
    Topology without_it = plan.topology;
    for (const LinkIndex cable : cables) without_it.set_cable(cable, false);
    if (Defect bad = defect(without_it)) return "--lose '" + o.lose + "': without it " + *bad;
    plan.changes.push_back({o.lose_ns, cables, false});
    if (o.back_ns != 0) plan.changes.push_back({o.back_ns, cables, true});
    return std::nullopt;
}

}  // namespace

std::variant<WorldPlan, std::string> make_plan(const Options& o) {
    WorldPlan plan;
    Routing routing{};
    if (Defect bad = parse_routing(o.routing, routing)) return *bad;
    if (Defect bad = make_topology(o, plan.topology)) return *bad;
    if (Defect bad = make_routes(o, plan.topology, routing, plan.routes)) return *bad;
    if (Defect bad = make_jobs(o, plan)) return *bad;
    if (Defect bad = make_changes(o, plan)) return *bad;
    plan.new_routes = [routing, seed = o.seed](const Topology& t, Routes& routes) {
        return compute(t, routing, seed, routes);
    };
    plan.costs = o.costs;
    if (Defect bad = parse_blocking(o.blocking, plan.blocking)) return *bad;
    if (Defect bad = make_packets(o, plan)) return *bad;
    const double message_ns = static_cast<double>(o.bytes) / o.host_rate * 1e9;
    plan.slice_ns = o.slice_ns >= 0 ? o.slice_ns : o.packets ? 0 : message_ns / 32;
    plan.memory_bytes = o.memory_mbytes << 20;
    return plan;
}

}  // namespace coop::sim
