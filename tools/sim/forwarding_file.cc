// SPDX-License-Identifier: BSD-3-Clause
#include "sim/forwarding_file.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

namespace coop::sim {
namespace {

class Reader {
public:
    Reader(const Topology& topology, std::uint32_t lmc) : topology_(topology) {
        routes_.lmc = lmc;
        routes_.base_lids.assign(topology.hosts, 0);
        for (NodeIndex node = 0; node < topology.node_names.size(); ++node) nodes_[topology.node_names[node]] = node;
    }

    Defect line(const std::string& text) {
        std::istringstream words(text);
        std::string name;
        std::uint32_t lid = 0, port = 0;
        if (!(words >> name)) return std::nullopt;
        if (name == "host") return words >> name >> lid ? host(name, lid) : Defect("'" + text + "': host NAME LID");
        if (!(words >> lid >> port)) return "'" + text + "': SWITCH LID PORT";
        return entry(name, lid, port);
    }

    std::variant<Routes, std::string> result() {
        for (NodeIndex node = 0; node < topology_.hosts; ++node)
            if (routes_.base_lids[node] == 0) return topology_.node_names[node] + " has no LID";
        routes_.lids = *std::max_element(routes_.base_lids.begin(), routes_.base_lids.end()) + (1u << routes_.lmc);
        routes_.tables.assign(std::size_t{topology_.switches()} * routes_.lids, kNoPort);
        for (const auto& [switch_, lid, port] : entries_)
            if (lid < routes_.lids) routes_.port(switch_, lid) = port;
        return std::move(routes_);
    }

private:
    struct Entry {
        std::uint32_t switch_, lid;
        std::uint8_t port;
    };

    Defect host(const std::string& name, std::uint32_t lid) {
        const auto found = nodes_.find(name);
        if (found == nodes_.end() || !topology_.is_host(found->second)) return "there is no host '" + name + "'";
        if (lid == 0 || lid + (1u << routes_.lmc) - 1 > kHighestLid || lid % (1u << routes_.lmc) != 0)
            return "base LID " + std::to_string(lid) + " of " + name + " does not fit LMC " +
                   std::to_string(routes_.lmc);
        routes_.base_lids[found->second] = lid;
        return std::nullopt;
    }

    Defect entry(const std::string& name, std::uint32_t lid, std::uint32_t port) {
        const auto found = nodes_.find(name);
        if (found == nodes_.end() || topology_.is_host(found->second)) return "there is no switch '" + name + "'";
        if (lid > kHighestLid) return "LID " + std::to_string(lid) + " is not in 1.." + std::to_string(kHighestLid);
        if (port > topology_.ports[found->second].size()) return name + " has no port " + std::to_string(port);
        if (port != 0) entries_.push_back({found->second - topology_.hosts, lid, static_cast<std::uint8_t>(port - 1)});
        return std::nullopt;
    }

    const Topology& topology_;
    std::unordered_map<std::string, NodeIndex> nodes_;
    std::vector<Entry> entries_;
    Routes routes_;
};

}  // namespace

std::variant<Routes, std::string> parse_forwarding(const std::string& name, std::string_view text,
                                                   const Topology& topology, std::uint32_t lmc) {
    Reader reader(topology, lmc);
    std::istringstream lines{std::string(text)};
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (const Defect bad = reader.line(line.substr(0, line.find('#'))))
            return name + ":" + std::to_string(number) + ": " + *bad;
    }
    auto result = reader.result();
    if (auto* bad = std::get_if<std::string>(&result)) return name + ": " + *bad;
    return result;
}

}  // namespace coop::sim
