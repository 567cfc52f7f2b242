// SPDX-License-Identifier: BSD-3-Clause
#include "sim/topology_file.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

namespace coop::sim {
namespace {

constexpr std::string_view kPassedOver[] = {"subnet", "hca", "port", "route"};

class Reader {
public:
    Reader(std::string name, const Rates& rates) : name_(std::move(name)), rates_(rates) {}

    std::variant<Topology, std::string> read(std::string_view text) {
        std::istringstream lines{std::string(text)};
        for (std::string line; std::getline(lines, line);) {
            ++line_;
            if (auto bad = statement(line.substr(0, line.find('#'))))
                return name_ + ":" + std::to_string(line_) + ": " + *bad;
        }
        return build();
    }

private:
    struct Cable {
        std::string a, b;
        std::optional<double> rate;
        std::size_t line;
    };

    Defect statement(const std::string& line) {
        std::istringstream words(line);
        std::string verb;
        if (!(words >> verb)) return std::nullopt;
        if (verb == "switch") return names(words, switches_);
        if (verb == "host") return names(words, hosts_);
        if (verb == "link") return cable(words);
        for (const std::string_view known : kPassedOver)
            if (verb == known) return std::nullopt;
        return "there is no statement '" + verb + "' (switch, host, link)";
    }

    Defect names(std::istringstream& words, std::vector<std::string>& list) {
        for (std::string word; words >> word;) {
            if (!known_.emplace(word, line_).second) return "'" + word + "' is defined twice";
            list.push_back(word);
        }
        return std::nullopt;
    }

    Defect cable(std::istringstream& words) {
        Cable found{"", "", std::nullopt, line_};
        if (!(words >> found.a >> found.b)) return "a link needs two ends";
        for (std::string word; words >> word;) {
            if (!word.starts_with("rate=")) continue;
            found.rate = parse_rate(word.substr(5, word.find(',') - 5));
            if (!found.rate) return "'" + word + "' is not a rate such as 1.4GB/s or 20Gbit/s";
        }
        cables_.push_back(found);
        return std::nullopt;
    }

    std::variant<Topology, std::string> build() {
        Topology t;
        t.hosts = static_cast<std::uint32_t>(hosts_.size());
        for (const std::string& host : hosts_) t.add_node(host, 0);
        for (const std::string& name : switches_) t.add_node(name, 1);
        std::map<std::string, NodeIndex, std::less<>> index;
        for (NodeIndex node = 0; node < t.node_names.size(); ++node) index[t.node_names[node]] = node;
        for (const Cable& cable : cables_) {
            NodeIndex ends[2];
            for (int i = 0; i < 2; ++i) {
                const std::string& end = i == 0 ? cable.a : cable.b;
                const auto found = index.find(end.substr(0, end.find('/')));
                if (found == index.end())
                    return name_ + ":" + std::to_string(cable.line) + ": there is no host or switch '" + end + "'";
                ends[i] = found->second;
            }
            const bool to_host = t.is_host(ends[0]) || t.is_host(ends[1]);
            t.add_cable(ends[0], ends[1],
                        cable.rate.value_or(to_host ? rates_.host_bytes_per_s : rates_.switch_bytes_per_s));
        }
        return t;
    }

    std::string name_;
    Rates rates_;
    std::size_t line_ = 0;
    std::vector<std::string> hosts_, switches_;
    std::vector<Cable> cables_;
    std::map<std::string, std::size_t> known_;
};

}  // namespace

std::variant<Topology, std::string> parse_topology(const std::string& name, std::string_view text, const Rates& rates) {
    return Reader(name, rates).read(text);
}

std::optional<double> parse_rate(std::string_view text) {
    static constexpr struct {
        std::string_view unit;
        double bytes_per_s;
    } kUnits[] = {{"MB/s", 1e6}, {"GB/s", 1e9}, {"Mbit/s", 1.25e5}, {"Gbit/s", 1.25e8}};
    const std::string whole(text);
    char* end = nullptr;
    const double value = std::strtod(whole.c_str(), &end);
    if (end == whole.c_str() || !std::isfinite(value) || value <= 0) return std::nullopt;
    for (const auto& [unit, bytes_per_s] : kUnits)
        if (unit == end) return value * bytes_per_s;
    return std::nullopt;
}

}  // namespace coop::sim
