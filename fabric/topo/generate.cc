// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/generate.h"

#include <algorithm>

namespace coop::fabric {
namespace {

// The latency of cable `which` if `cables` cables share `latency_ns`. The first cables get the remainder.
std::int64_t share(std::int64_t latency_ns, int cables, int which) {
    return latency_ns / cables + (which < latency_ns % cables ? 1 : 0);
}

// 0 means unlimited and is therefore the highest rate.
std::uint64_t highest_rate(const Sizes& sizes) {
    if (std::ranges::find(sizes.rates, 0u) != sizes.rates.end()) return 0;
    return *std::ranges::max_element(sizes.rates);
}

// Adds a host with its HCAs and cables. All ports are on `first_switch`, or, rail-optimised, those of HCA i on
// first_switch + i.
void add_host(const Sizes& sizes, std::uint32_t first_switch, std::int64_t out_ns, std::int64_t in_ns, Topology& t) {
    const auto host = static_cast<std::uint32_t>(t.hosts.size());
    t.hosts.push_back({"h" + std::to_string(host)});
    for (std::uint32_t i = 0; i < sizes.hcas; ++i) {
        const auto hca = static_cast<std::uint32_t>(t.hcas.size());
        const std::uint64_t rate = sizes.rates.size() == 1 ? sizes.rates[0] : sizes.rates[i];
        const std::uint32_t on_switch = first_switch + (sizes.rail_optimised ? i : 0);
        t.hcas.push_back({host, "coop" + std::to_string(i), sizes.profile, sizes.register_cost});
        for (std::uint32_t number = 1; number <= sizes.ports; ++number) {
            t.cables.push_back({{NodeKind::port, static_cast<std::uint32_t>(t.ports.size())},
                                {NodeKind::switch_, on_switch},
                                {.rate = rate, .latency_ns = out_ns},
                                {.rate = rate, .latency_ns = in_ns}});
            t.ports.push_back({hca, number, 0, sizes.lmc, sizes.mtu_bytes, sizes.pkeys, sizes.grh_required});
        }
    }
}

void make_star(const Sizes& sizes, Topology& t) {
    t.switches.push_back({"sw0"});
    for (std::uint32_t host = 0; host < sizes.hosts; ++host)
        add_host(sizes, 0, share(sizes.latency_ns, 2, 0), share(sizes.latency_ns, 2, 1), t);
}

// Four cables lead from port to port: port to leaf, leaf to spine, spine to leaf, leaf to port.
std::int64_t share_of_four(const Sizes& sizes, int which) { return share(sizes.latency_ns, 4, which); }

void add_switches(std::uint32_t leaves, std::uint32_t spines, Topology& t) {
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) t.switches.push_back({"leaf" + std::to_string(leaf)});
    for (std::uint32_t spine = 0; spine < spines; ++spine) t.switches.push_back({"spine" + std::to_string(spine)});
}

void add_cables_to_spines(const Sizes& sizes, std::uint32_t leaves, Topology& t) {
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf)
        for (std::uint32_t spine = 0; spine < sizes.spines; ++spine)
            t.cables.push_back({{NodeKind::switch_, leaf},
                                {NodeKind::switch_, leaves + spine},
                                {.rate = highest_rate(sizes), .latency_ns = share_of_four(sizes, 1)},
                                {.rate = highest_rate(sizes), .latency_ns = share_of_four(sizes, 2)}});
}

void make_fat_tree(const Sizes& sizes, Topology& t) {
    add_switches(sizes.leaves, sizes.spines, t);
    for (std::uint32_t leaf = 0; leaf < sizes.leaves; ++leaf)
        for (std::uint32_t host = 0; host < sizes.hosts_per_leaf; ++host)
            add_host(sizes, leaf, share_of_four(sizes, 0), share_of_four(sizes, 3), t);
    add_cables_to_spines(sizes, sizes.leaves, t);
}

void make_rail_optimised(const Sizes& sizes, Topology& t) {
    add_switches(sizes.hcas, sizes.spines, t);
    for (std::uint32_t host = 0; host < sizes.hosts; ++host)
        add_host(sizes, 0, share_of_four(sizes, 0), share_of_four(sizes, 3), t);
    add_cables_to_spines(sizes, sizes.hcas, t);
}

}  // namespace

Flaw generate(const Sizes& sizes, Topology& t) {
    t = {};
    t.ethernet = sizes.ethernet;
    if (sizes.ethernet && sizes.lmc != 0)
        return {"RoCE has no LIDs, and so no LMC: " + std::to_string(sizes.lmc) + " is not 0"};
    if (sizes.ethernet && sizes.grh_required)
        return {"RoCE packets always have a global routing header: it need not be required"};
    if (sizes.rates.size() != 1 && sizes.rates.size() != sizes.hcas)
        return {std::to_string(sizes.rates.size()) + " rates for " + std::to_string(sizes.hcas) +
                " HCAs per host: give one for all, or one for each"};
    if (sizes.rail_optimised) make_rail_optimised(sizes, t);
    else if (sizes.leaves != 0) make_fat_tree(sizes, t);
    else make_star(sizes, t);
    if (Flaw flaw = assign_lids(t)) return flaw;
    return check(t);
}

}  // namespace coop::fabric
