// SPDX-License-Identifier: BSD-3-Clause
#include "sim/topology.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace coop::sim {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Whole numbers separated by `separator`; empty if the text is anything else.
std::vector<std::uint32_t> numbers(std::string_view text, char separator) {
    std::vector<std::uint32_t> found;
    while (true) {
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || value == 0) return {};
        found.push_back(value);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) return found;
        if (text[0] != separator) return {};
        text.remove_prefix(1);
    }
}

double product(const std::vector<std::uint32_t>& factors) {
    return std::accumulate(factors.begin(), factors.end(), 1.0, [](double a, double b) { return a * b; });
}

Defect shape_defect(const FatTreeShape& shape) {
    if (shape.up.size() + 1 != shape.down.size())
        return "for " + std::to_string(shape.down.size()) + " levels there must be " +
               std::to_string(shape.down.size() - 1) + " numbers after ':', not " + std::to_string(shape.up.size());
    if (shape.down.size() > 4) return std::to_string(shape.down.size()) + " levels are more than 4";
    if (product(shape.down) > kMostHosts) return "more than " + std::to_string(kMostHosts) + " hosts";
    if (product(shape.up) > kMostHosts) return "more than " + std::to_string(kMostHosts) + " switches on a level";
    for (std::size_t i = 0; i < shape.down.size(); ++i) {
        const std::uint64_t ports = std::uint64_t{shape.down[i]} + (i < shape.up.size() ? shape.up[i] : 0);
        if (ports > kMostPorts)
            return std::to_string(ports) + " ports of a switch are more than " + std::to_string(kMostPorts);
    }
    return std::nullopt;
}

std::string node_name(std::uint32_t level, std::size_t levels, std::uint32_t index) {
    if (level == 0) return "h" + std::to_string(index);
    if (level == 1) return "leaf" + std::to_string(index);
    return (level == levels ? "spine" : "mid" + std::to_string(level) + "-") + std::to_string(index);
}

// XGFT: the number of nodes on each level, hosts first.
std::vector<std::uint32_t> nodes_per_level(const FatTreeShape& shape) {
    std::vector<std::uint32_t> counts;
    for (std::size_t level = 0; level <= shape.down.size(); ++level) {
        std::uint32_t count = 1;
        for (std::size_t i = level; i < shape.down.size(); ++i) count *= shape.down[i];
        for (std::size_t i = 0; i + 1 < level; ++i) count *= shape.up[i];
        counts.push_back(count);
    }
    return counts;
}

// Connects each node of `level` to its parents. A node is (subtree, index among the
// equivalent nodes at the top of that subtree); its parents are the tops of the next
// larger subtree with a matching index.
void cable_level(const FatTreeShape& shape, std::size_t level, std::uint32_t first, std::uint32_t count,
                 std::uint32_t first_above, double rate, Topology& t) {
    std::uint32_t equals = 1;  // tops of a subtree of this level
    for (std::size_t i = 0; i + 1 < level; ++i) equals *= shape.up[i];
    const std::uint32_t parents = level == 0 ? 1 : shape.up[level - 1];
    for (std::uint32_t node = 0; node < count; ++node) {
        const std::uint32_t subtree = node / equals / shape.down[level], place = node % equals;
        for (std::uint32_t parent = 0; parent < parents; ++parent)
            t.add_cable(first + node, first_above + subtree * equals * parents + place + parent * equals, rate);
    }
}

std::vector<bool> reached_from(const Topology& t, NodeIndex start) {
    std::vector<bool> reached(t.node_names.size(), false);
    std::vector<NodeIndex> waiting = {start};
    reached[start] = true;
    while (!waiting.empty()) {
        const NodeIndex at = waiting.back();
        waiting.pop_back();
        for (const LinkIndex link : t.ports[at]) {
            const NodeIndex to = t.links[link].to;
            if (!t.links[link].up || reached[to]) continue;
            reached[to] = true;
            waiting.push_back(to);
        }
    }
    return reached;
}

}  // namespace

NodeIndex Topology::find(std::string_view node) const noexcept {
    const auto found = std::find(node_names.begin(), node_names.end(), node);
    return found == node_names.end() ? kNone : static_cast<NodeIndex>(found - node_names.begin());
}

NodeIndex Topology::add_node(std::string node, std::uint32_t level) {
    node_names.push_back(std::move(node));
    levels.push_back(level);
    ports.emplace_back();
    return static_cast<NodeIndex>(node_names.size() - 1);
}

void Topology::add_cable(NodeIndex a, NodeIndex b, double bytes_per_s) {
    ports[a].push_back(static_cast<LinkIndex>(links.size()));
    links.push_back({a, b, bytes_per_s});
    ports[b].push_back(static_cast<LinkIndex>(links.size()));
    links.push_back({b, a, bytes_per_s});
}

void Topology::set_node(NodeIndex node, bool up) noexcept {
    for (const LinkIndex link : ports[node]) set_cable(link, up);
}

std::variant<FatTreeShape, std::string> parse_fat_tree(std::string_view text) {
    const std::string wanted = quoted(text) +
                               " is not a fat tree: nodes below a switch of each level, ':', switches above a node, "
                               "such as 12,12:12 or 16,16,16:16,16";
    const std::size_t colon = text.find(':');
    FatTreeShape shape;
    shape.down = numbers(text.substr(0, colon), ',');
    if (colon != std::string_view::npos) shape.up = numbers(text.substr(colon + 1), ',');
    if (shape.down.empty() || (colon != std::string_view::npos && shape.up.empty())) return wanted;
    if (const Defect bad = shape_defect(shape)) return "fat tree " + quoted(text) + ": " + *bad;
    return shape;
}

std::variant<DragonflyShape, std::string> parse_dragonfly(std::string_view text) {
    const std::vector<std::uint32_t> sizes = numbers(text, 'x');
    if (sizes.size() != 3) return quoted(text) + " is not a dragonfly: GROUPSxSWITCHESxHOSTS, such as 9x8x4";
    if (product(sizes) > kMostHosts)
        return "dragonfly " + quoted(text) + ": more than " + std::to_string(kMostHosts) + " hosts";
    const double most_ports = sizes[1] - 1.0 + sizes[2] + (sizes[0] - 1.0) / sizes[1] + 1;
    if (most_ports > kMostPorts)
        return "dragonfly " + quoted(text) + ": more than " + std::to_string(kMostPorts) + " ports of a switch";
    return DragonflyShape{sizes[0], sizes[1], sizes[2]};
}

Topology make_fat_tree(const FatTreeShape& shape, const Rates& rates) {
    Topology t;
    const std::size_t levels = shape.down.size();
    const std::vector<std::uint32_t> counts = nodes_per_level(shape);
    t.hosts = counts[0];
    for (std::uint32_t level = 0; level <= levels; ++level)
        for (std::uint32_t i = 0; i < counts[level]; ++i) t.add_node(node_name(level, levels, i), level);
    std::uint32_t first = 0;
    for (std::size_t level = 0; level < levels; ++level) {
        const double rate = level == 0 ? rates.host_bytes_per_s : rates.switch_bytes_per_s;
        cable_level(shape, level, first, counts[level], first + counts[level], rate, t);
        first += counts[level];
    }
    return t;
}

Topology make_dragonfly(const DragonflyShape& shape, const Rates& rates) {
    Topology t;
    t.hosts = shape.groups * shape.switches * shape.hosts;
    for (std::uint32_t i = 0; i < t.hosts; ++i) t.add_node("h" + std::to_string(i), 0);
    for (std::uint32_t group = 0; group < shape.groups; ++group)
        for (std::uint32_t i = 0; i < shape.switches; ++i)
            t.add_node("g" + std::to_string(group) + "s" + std::to_string(i), 1);
    const auto switch_of = [&](std::uint32_t group, std::uint32_t i) { return t.hosts + group * shape.switches + i; };
    for (std::uint32_t host = 0; host < t.hosts; ++host)
        t.add_cable(host, t.hosts + host / shape.hosts, rates.host_bytes_per_s);
    for (std::uint32_t group = 0; group < shape.groups; ++group)
        for (std::uint32_t a = 0; a < shape.switches; ++a)
            for (std::uint32_t b = a + 1; b < shape.switches; ++b)
                t.add_cable(switch_of(group, a), switch_of(group, b), rates.switch_bytes_per_s);
    // The cable to the k-th other group leaves from switch k mod switches.
    for (std::uint32_t a = 0; a < shape.groups; ++a)
        for (std::uint32_t b = a + 1; b < shape.groups; ++b)
            t.add_cable(switch_of(a, (b - 1) % shape.switches), switch_of(b, a % shape.switches),
                        rates.switch_bytes_per_s);
    return t;
}

Defect defect(const Topology& t) {
    if (t.hosts < 2) return "a topology needs at least 2 hosts, this one has " + std::to_string(t.hosts);
    for (NodeIndex host = 0; host < t.hosts; ++host)
        if (t.ports[host].size() != 1 || t.is_host(t.links[t.host_link(host)].to))
            return t.node_names[host] + " must have one cable, to a switch; it has " +
                   std::to_string(t.ports[host].size());
    for (NodeIndex node = t.hosts; node < t.node_names.size(); ++node)
        if (t.ports[node].size() > kMostPorts)
            return t.node_names[node] + " has " + std::to_string(t.ports[node].size()) +
                   " ports; a switch has at most " + std::to_string(kMostPorts);
    const std::vector<bool> reached = reached_from(t, 0);
    for (NodeIndex host = 1; host < t.hosts; ++host)
        if (!reached[host])
            return "the topology is not connected: " + t.node_names[host] + " cannot be reached from " +
                   t.node_names[0];
    return std::nullopt;
}

}  // namespace coop::sim
