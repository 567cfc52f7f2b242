// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/names.h"

#include <optional>

#include "fabric/shm/trace.h"
#include "fabric/topo/topology.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

// The first few names, as examples for a message: "h0, h1, h2, …".
template <class NameOf>
std::string some_names(std::size_t count, NameOf&& name_of) {
    constexpr std::size_t kShown = 6;
    std::string names;
    for (std::size_t i = 0; i < count && i < kShown; ++i)
        names += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<std::uint32_t>(i)));
    return names + (count > kShown ? ", …" : "");
}

std::optional<Node> find_node(const Segment& subnet, const std::string& name) {
    for (std::uint32_t i = 0; i < subnet.switches().size(); ++i)
        if (name == subnet.switches()[i].name) return Node{NodeKind::switch_, i};
    for (std::uint32_t i = 0; i < subnet.ports().size(); ++i)
        if (name == port_name(subnet, i)) return Node{NodeKind::port, i};
    return std::nullopt;
}

std::size_t highest_lid(const Segment& subnet) {
    std::size_t highest = subnet.lids().size() - 1;
    while (highest > 0 && subnet.lids()[highest].port == kNone) --highest;
    return highest;
}

Indices links_between(const Segment& subnet, const Node& from, const Node& to) {
    Indices links;
    for (std::uint32_t i = 0; i < subnet.links().size(); ++i)
        if (subnet.links()[i].from == from && subnet.links()[i].to == to) links.push_back(i);
    return links;
}

// Names may contain '-', so each '-' is tried as the separator of the ends.
Indices links_of_ends(const Segment& subnet, const std::string& ends) {
    for (std::size_t at = ends.find('-'); at != std::string::npos; at = ends.find('-', at + 1)) {
        const auto from = find_node(subnet, ends.substr(0, at)), to = find_node(subnet, ends.substr(at + 1));
        if (!from || !to) continue;
        Indices links = links_between(subnet, *from, *to);
        if (!links.empty()) return links;
    }
    return {};
}

}  // namespace

Error find_host(const Segment& subnet, const std::string& name, std::uint32_t& host) {
    const auto hosts = subnet.hosts();
    for (host = 0; host < hosts.size(); ++host)
        if (name == hosts[host].name) return {};
    return {"there is no host '" + name + "' (" +
            some_names(hosts.size(), [&](std::uint32_t i) { return hosts[i].name; }) + ")"};
}

Error find_hca(const Segment& subnet, const std::string& name, std::uint32_t& hca) {
    const std::size_t count = subnet.hcas().size();
    for (hca = 0; hca < count; ++hca)
        if (name == hca_name(subnet, hca)) return {};
    return {"there is no HCA '" + name + "' (" +
            some_names(count, [&](std::uint32_t i) { return hca_name(subnet, i); }) + ")"};
}

Error find_ports(const Segment& subnet, const std::string& name, Indices& ports) {
    ports.clear();
    const std::size_t count = subnet.ports().size();
    for (std::uint32_t i = 0; i < count; ++i)
        if (name == port_name(subnet, i) || name == hca_name(subnet, subnet.ports()[i].hca)) ports.push_back(i);
    if (!ports.empty()) return {};
    return {"there is no port '" + name + "' (" +
            some_names(count, [&](std::uint32_t i) { return port_name(subnet, i); }) + ")"};
}

Error find_lid(const Segment& subnet, const std::string& name, std::uint32_t& lid) {
    const auto number = parse_number(name);
    if (!number) return bad_value("LID", name, "a number such as 0x10 or 16");
    const auto lids = subnet.lids();
    if (*number >= lids.size() || lids[*number].port == kNone)
        return {"no port has LID " + name + " (LIDs go up to " + hex_text(highest_lid(subnet)) + ")"};
    if (subnet.ports()[lids[*number].port].lid == 0) return {"LID " + name + ": RoCE has no LIDs"};
    lid = static_cast<std::uint32_t>(*number);
    return {};
}

Error find_links(const Segment& subnet, const std::string& name, Indices& links) {
    const std::size_t colon = name.rfind(':');
    links = links_of_ends(subnet, name.substr(0, colon));
    if (links.empty())
        return {"there is no cable '" + name + "' (give A-B or A-B:K" +
                (subnet.links().empty() ? "" : "; the first cable: " + link_name(subnet, 0)) + ")"};
    if (colon == std::string::npos) return {};
    std::uint64_t nth = 0;
    if (Error error = parse_in_range(name + ", cable", name.substr(colon + 1), 1, links.size(), nth)) return error;
    links = {links[nth - 1]};
    return {};
}

}  // namespace coop::fabric
