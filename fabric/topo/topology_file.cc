// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/topology_file.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <vector>

#include "fabric/topo/profiles.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

struct Statement {
    int line;
    std::string keyword;
    std::vector<std::string> names;
    std::map<std::string, std::string> settings;
};

// The number of names and the settings that a kind of statement accepts.
struct Form {
    const char* keyword;
    std::size_t min_names, max_names;
    std::vector<std::string> settings;
};

const std::vector<Form>& forms() {
    constexpr std::size_t kAny = 100'000;
    static const std::vector<Form> all = {
        {"subnet", 0, 0, {"link-layer", "prefix", "islands"}},
        {"switch", 1, kAny, {}},
        {"host", 1, kAny, {}},
        {"hca", 1, kAny, {"ports", "profile", "lmc", "mtu", "pkeys", "grh", "prefix", "register-cost"}},
        {"port", 1, kAny, {"lid", "lmc", "mtu", "pkeys", "grh", "prefix"}},
        {"link", 2, 2, {"rate", "latency", "loss", "load"}},
        {"route", 3, kAny, {}},
    };
    return all;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

class Parser {
public:
    Parser(std::string name, Topology& topology) : name_(std::move(name)), t_(topology) {}

    Error parse(std::string_view text) {
        if (Error error = split(text)) return error;
        for (const auto& [keyword, handle] :
             std::initializer_list<std::pair<const char*, Handler>>{{"subnet", &Parser::on_subnet},
                                                                    {"switch", &Parser::on_switch},
                                                                    {"host", &Parser::on_host},
                                                                    {"hca", &Parser::on_hca}})
            if (Error error = each(keyword, handle)) return error;
        make_ports();
        if (Error error = each("port", &Parser::on_port)) return error;
        if (Flaw flaw = assign_lids(t_)) return fail(flaw);
        if (Error error = each("link", &Parser::on_link)) return error;
        if (Error error = each("route", &Parser::on_route)) return error;
        if (Flaw flaw = check(t_)) return fail(flaw);
        return {};
    }

private:
    using Handler = Error (Parser::*)(const Statement&);

    // The settings of an hca statement that apply to its ports.
    struct HcaPorts {
        int line = 0;
        std::uint32_t count = 1;
        PortPlan each{};
    };

    Error fail(int line, const std::string& text) const { return {name_ + ":" + std::to_string(line) + ": " + text}; }
    Error fail(int line, const Error& error) const { return fail(line, error.text); }
    Error fail(const Flaw& flaw) const {
        return flaw.port == kNone ? Error{name_ + ": " + flaw.text} : fail(port_lines_[flaw.port], flaw.text);
    }

    Error split(std::string_view text) {
        std::istringstream lines{std::string(text)};
        std::string line;
        for (int number = 1; std::getline(lines, line); ++number) {
            std::istringstream words(line.substr(0, line.find('#')));
            Statement statement{number, {}, {}, {}};
            if (!(words >> statement.keyword)) continue;
            for (std::string word; words >> word;)
                if (Error error = add_word(statement, word)) return error;
            if (Error error = check_form(statement)) return error;
            statements_.push_back(std::move(statement));
        }
        return {};
    }

    Error add_word(Statement& statement, const std::string& word) const {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) {
            statement.names.push_back(word);
            return {};
        }
        const std::string key = word.substr(0, equals);
        if (!statement.settings.emplace(key, word.substr(equals + 1)).second)
            return fail(statement.line, "'" + key + "=' is given twice");
        return {};
    }

    Error check_form(const Statement& s) const {
        const auto form = std::ranges::find_if(forms(), [&](const Form& one) { return s.keyword == one.keyword; });
        if (form == forms().end())
            return fail(s.line,
                        "'" + s.keyword + "' is not a statement (subnet, switch, host, hca, port, link, route)");
        if (s.names.size() < form->min_names)
            return fail(s.line, s.keyword + ": " + std::to_string(s.names.size()) + " names instead of at least " +
                                    std::to_string(form->min_names));
        if (s.names.size() > form->max_names)
            return fail(s.line, s.keyword + ": '" + s.names[form->max_names] + "' is unexpected");
        for (const auto& [key, value] : s.settings)
            if (std::ranges::find(form->settings, key) == form->settings.end())
                return fail(s.line,
                            "'" + key + "' is not a setting of " + s.keyword +
                                (form->settings.empty() ? ", which has none" : " (" + joined(form->settings) + ")"));
        return {};
    }

    Error each(const char* keyword, Handler handle) {
        for (const Statement& statement : statements_)
            if (statement.keyword == keyword)
                if (Error error = (this->*handle)(statement)) return error;
        return {};
    }

    // The value of a setting, or null.
    static const std::string* setting(const Statement& s, const char* key) {
        const auto found = s.settings.find(key);
        return found == s.settings.end() ? nullptr : &found->second;
    }

    Error number(const Statement& s, const char* key, std::uint64_t min, std::uint64_t max,
                 std::uint32_t& value) const {
        const std::string* text = setting(s, key);
        if (text == nullptr) return {};
        std::uint64_t parsed = 0;
        if (Error error = parse_in_range(key, *text, min, max, parsed)) return fail(s.line, error);
        value = static_cast<std::uint32_t>(parsed);
        return {};
    }

    Error on_subnet(const Statement& s) {
        if (has_subnet_) return fail(s.line, "subnet: there is one already");
        has_subnet_ = true;
        if (const std::string* layer = setting(s, "link-layer")) {
            if (*layer != "ib" && *layer != "roce")
                return fail(s.line, bad_value("link-layer", *layer, "'ib' or 'roce'"));
            t_.ethernet = *layer == "roce";
        }
        if (const std::string* islands = setting(s, "islands")) {
            if (*islands != "yes" && *islands != "no")
                return fail(s.line, bad_value("islands", *islands, "'yes' or 'no'"));
            t_.islands = *islands == "yes";
        }
        if (const std::string* prefix = setting(s, "prefix")) return parse_prefix(s, *prefix, t_.prefix);
        return {};
    }

    Error claim_name(const Statement& s, const std::string& name, std::size_t longest) {
        if (!is_good_name(name.substr(name.find('/') + 1), longest))
            return fail(s.line, bad_value(s.keyword, name,
                                          "a name: 1.." + std::to_string(longest) +
                                              " letters, digits, '_', '.', '-', a letter or '_' first"));
        const auto [found, is_new] = lines_.emplace(name, s.line);
        if (!is_new)
            return fail(s.line, "the name '" + name + "' is already used in line " + std::to_string(found->second));
        return {};
    }

    Error on_switch(const Statement& s) {
        for (const std::string& name : s.names) {
            if (name.find('/') != std::string::npos)
                return fail(s.line, bad_value(s.keyword, name, "a name: it has a '/'"));
            if (Error error = claim_name(s, name, kLongestHostName)) return error;
            nodes_[name] = {NodeKind::switch_, static_cast<std::uint32_t>(t_.switches.size())};
            t_.switches.push_back({name});
        }
        return {};
    }

    Error on_host(const Statement& s) {
        for (const std::string& name : s.names) {
            if (name.find('/') != std::string::npos)
                return fail(s.line, bad_value(s.keyword, name, "a name: it has a '/'"));
            if (Error error = claim_name(s, name, kLongestHostName)) return error;
            hosts_[name] = static_cast<std::uint32_t>(t_.hosts.size());
            t_.hosts.push_back({name});
        }
        return {};
    }

    Error on_hca(const Statement& s) {
        HcaPorts ports{.line = s.line};
        if (Error error = number(s, "ports", 1, kMaxPortsPerHca, ports.count)) return error;
        if (Error error = port_settings(s, ports.each)) return error;
        const std::string* profile_name = setting(s, "profile");
        const Profile* profile = profile_name == nullptr ? &profiles().front() : find_profile(*profile_name);
        if (profile == nullptr) return fail(s.line, bad_value("profile", *profile_name, "one of " + profile_names()));
        RegisterCost register_cost;
        if (const std::string* text = setting(s, "register-cost")) {
            const auto cost = parse_register_cost(*text);
            if (!cost) return fail(s.line, bad_value("register-cost", *text, kRegisterCostWords));
            register_cost = *cost;
        }
        for (const std::string& name : s.names) {
            const std::size_t slash = name.find('/');
            if (slash == std::string::npos) return fail(s.line, bad_value("hca", name, "HOST/NAME"));
            const auto host = hosts_.find(name.substr(0, slash));
            if (host == hosts_.end()) return fail(s.line, "hca: there is no host '" + name.substr(0, slash) + "'");
            if (Error error = claim_name(s, name, kLongestHcaName)) return error;
            t_.hcas.push_back({host->second, name.substr(slash + 1), profile, register_cost});
            hca_ports_[name] = ports;
        }
        return {};
    }

    Error port_settings(const Statement& s, PortPlan& plan) const {
        if (Error error = number(s, "lmc", 0, kHighestLmc, plan.lmc)) return error;
        if (t_.ethernet && plan.lmc != 0) return fail(s.line, "lmc: RoCE has no LIDs, and so no LMC");
        if (const std::string* mtu = setting(s, "mtu"))
            if (Error error = parse_mtu("mtu", *mtu, plan.mtu_bytes)) return fail(s.line, error);
        if (const std::string* text = setting(s, "pkeys")) {
            auto keys = parse_pkeys(*text);
            if (!keys) return fail(s.line, bad_value("pkeys", *text, kPkeyWords));
            plan.pkeys = std::move(*keys);
        }
        return gid_settings(s, plan);
    }

    Error gid_settings(const Statement& s, PortPlan& plan) const {
        const std::string *grh = setting(s, "grh"), *prefix = setting(s, "prefix");
        if (t_.ethernet && grh != nullptr) return fail(s.line, "grh: RoCE packets always have a global routing header");
        if (t_.ethernet && prefix != nullptr) return fail(s.line, "prefix: the GIDs of RoCE are made of addresses");
        if (grh != nullptr)
            if (Error error = parse_grh("grh", *grh, plan.grh_required)) return fail(s.line, error);
        return prefix == nullptr ? Error{} : parse_prefix(s, *prefix, plan.prefix);
    }

    Error parse_prefix(const Statement& s, const std::string& text, std::uint64_t& prefix) const {
        const auto value = parse_number(text);
        if (!value || *value == 0) return fail(s.line, bad_value("prefix", text, "64 bits such as 0xfe80000000000000"));
        prefix = *value;
        return {};
    }

    // Sorts the HCAs by host and then makes their ports.
    void make_ports() {
        std::ranges::stable_sort(t_.hcas, {}, &HcaPlan::host);
        for (std::uint32_t hca = 0; hca < t_.hcas.size(); ++hca) {
            const HcaPorts& has = hca_ports_[t_.hca_name(hca)];
            for (std::uint32_t i = 1; i <= has.count; ++i) {
                const auto port = static_cast<std::uint32_t>(t_.ports.size());
                PortPlan& plan = t_.ports.emplace_back(has.each);
                plan.hca = hca;
                plan.number = i;
                port_lines_.push_back(has.line);
                nodes_[t_.port_name(port)] = {NodeKind::port, port};
            }
        }
    }

    Error find_node(const Statement& s, const std::string& name, Node& node) const {
        const auto found = nodes_.find(name);
        if (found == nodes_.end()) return fail(s.line, s.keyword + ": there is no port and no switch '" + name + "'");
        node = found->second;
        return {};
    }

    Error on_port(const Statement& s) {
        for (const std::string& name : s.names) {
            const auto found = nodes_.find(name);
            if (found == nodes_.end() || found->second.kind != NodeKind::port)
                return fail(s.line, "port: there is no port '" + name + "' (HOST/HCA/NUMBER)");
            PortPlan& plan = t_.ports[found->second.index];
            port_lines_[found->second.index] = s.line;
            if (Error error = port_settings(s, plan)) return error;
            if (t_.ethernet && setting(s, "lid") != nullptr) return fail(s.line, "lid: RoCE has no LIDs");
            if (Error error = number(s, "lid", 1, kHighestLid, plan.lid)) return error;
        }
        return {};
    }

    // One value for both directions, or "there,back".
    template <class T, class Parse>
    Error both_ways(const Statement& s, const char* key, const char* wanted, Parse&& parse, T& there, T& back) const {
        const std::string* text = setting(s, key);
        if (text == nullptr) return {};
        const std::size_t comma = text->find(',');
        const auto first = parse(std::string_view(*text).substr(0, comma));
        const auto second = comma == std::string::npos ? first : parse(std::string_view(*text).substr(comma + 1));
        if (!first || !second)
            return fail(s.line, bad_value(key, *text, std::string(wanted) + ", or two of them with a comma"));
        there = *first;
        back = *second;
        return {};
    }

    Error on_link(const Statement& s) {
        CablePlan cable{};
        if (Error error = find_node(s, s.names[0], cable.a)) return error;
        if (Error error = find_node(s, s.names[1], cable.b)) return error;
        DirectionPlan &there = cable.there, &back = cable.back;
        if (Error error = both_ways(s, "rate", kRateWords, parse_rate, there.rate, back.rate)) return error;
        if (Error error = both_ways(s, "latency", kTimeWords, parse_time_ns, there.latency_ns, back.latency_ns))
            return error;
        if (Error error = both_ways(s, "loss", kLossWords, parse_loss, there.loss, back.loss)) return error;
        if (Error error = both_ways(s, "load", kLoadWords, parse_load, there.background, back.background)) return error;
        for (const Node& node : {cable.a, cable.b})
            if (node.kind == NodeKind::port && !cabled_.insert(node.index).second)
                return fail(s.line, "link: " + t_.port_name(node.index) + " has a cable already");
        if (cable.a == cable.b) return fail(s.line, "link: a cable from '" + s.names[0] + "' to itself");
        t_.cables.push_back(cable);
        return {};
    }

    Error find_lid(const Statement& s, const std::string& text, std::uint32_t& lid) const {
        const std::size_t plus = text.find('+');
        const auto found = nodes_.find(text.substr(0, plus));
        if (found != nodes_.end() && found->second.kind == NodeKind::port) {
            const PortPlan& plan = t_.ports[found->second.index];
            std::uint64_t more = 0;
            if (plus != std::string::npos)
                if (Error error = parse_in_range(text, text.substr(plus + 1), 0, (1u << plan.lmc) - 1, more))
                    return fail(s.line, error);
            lid = plan.lid + static_cast<std::uint32_t>(more);
            return {};
        }
        const auto value = parse_number(text);
        if (!value || *value > kHighestLid || port_of_lid(t_, static_cast<std::uint32_t>(*value)) == kNone)
            return fail(
                s.line,
                bad_value("route", text,
                          "the LID of a port: a number that a port has, or HOST/HCA/NUMBER or HOST/HCA/NUMBER+N"));
        lid = static_cast<std::uint32_t>(*value);
        return {};
    }

    // Finds the link from one node to the next that belongs to the nth cable between them.
    Error find_link(const Statement& s, const Node& from, const Node& to, std::uint64_t nth,
                    std::uint32_t& found) const {
        std::uint64_t cables = 0;
        for (std::uint32_t link = 0; link < 2 * t_.cables.size(); ++link) {
            if (!(t_.link_from(link) == from && t_.link_to(link) == to)) continue;
            found = link;
            if (++cables == nth) return {};
        }
        const std::string ends = "'" + t_.node_name(from) + "' and '" + t_.node_name(to) + "'";
        if (cables == 0) return fail(s.line, "route: there is no cable between " + ends);
        return fail(s.line, "route: there is no cable " + std::to_string(nth) + " between " + ends + ", only " +
                                std::to_string(cables));
    }

    Error on_route(const Statement& s) {
        if (t_.ethernet) return fail(s.line, "route: RoCE has no LIDs to route by");
        const bool nowhere = s.names[2] == "nowhere" && s.names.size() == 3;
        if (!nowhere && (s.names[2] != "via" || s.names.size() == 3))
            return fail(s.line, "route: '" + s.names[2] +
                                    "' instead of 'via SWITCH …' or 'nowhere' (route SLID DLID via SWITCH …)");
        RoutePlan route{};
        if (Error error = find_lid(s, s.names[0], route.slid)) return error;
        if (Error error = find_lid(s, s.names[1], route.dlid)) return error;
        if (!nowhere)
            if (Error error = find_way(s, route)) return error;
        t_.routes.push_back(std::move(route));
        return {};
    }

    Error find_way(const Statement& s, RoutePlan& route) const {
        Node at = {NodeKind::port, port_of_lid(t_, route.slid)};
        const Node end = {NodeKind::port, port_of_lid(t_, route.dlid)};
        for (const std::string& hop : std::span(s.names).subspan(3)) {
            const std::size_t colon = hop.find(':');
            Node next;
            std::uint64_t nth = 1;
            if (Error error = find_node(s, hop.substr(0, colon), next)) return error;
            if (next.kind == NodeKind::port) return fail(s.line, "route: '" + hop + "' is a port, not a switch");
            if (colon != std::string::npos)
                if (Error error = parse_in_range(hop, hop.substr(colon + 1), 1, 1'000'000, nth))
                    return fail(s.line, error);
            if (Error error = find_link(s, at, next, nth, route.links.emplace_back())) return error;
            at = next;
        }
        if (Error error = find_link(s, at, end, 1, route.links.emplace_back())) return error;
        if (route.links.size() > kMaxHops)
            return fail(s.line, "route: " + std::to_string(route.links.size()) + " cables; a route can have at most " +
                                    std::to_string(kMaxHops));
        return {};
    }

    const std::string name_;
    Topology& t_;
    std::vector<Statement> statements_;
    std::map<std::string, int> lines_;  // the line in which a name was given
    std::map<std::string, std::uint32_t> hosts_;
    std::map<std::string, HcaPorts> hca_ports_;
    std::map<std::string, Node> nodes_;
    std::vector<int> port_lines_;
    std::set<std::uint32_t> cabled_;
    bool has_subnet_ = false;
};

// --- back to text --------------------------------------------------------------------------------------------------

template <class T, class ToText>
std::string setting_text(const char* key, T there, T back, ToText&& to_text) {
    if (there == T{} && back == T{}) return {};
    std::string text = std::string(" ") + key + "=" + to_text(there);
    if (back != there) text += "," + to_text(back);
    return text;
}

std::string route_text(const Topology& t, const RoutePlan& route) {
    std::string text = "route " + hex_text(route.slid) + " " + hex_text(route.dlid);
    if (route.links.empty()) return text + " nowhere\n";
    text += " via";
    for (std::size_t i = 0; i + 1 < route.links.size(); ++i) {
        text += " " + t.node_name(t.link_to(route.links[i]));
        const std::uint32_t number = number_of_cable(t, route.links[i] / 2);
        if (number > 1) text += ":" + std::to_string(number);
    }
    return text + "\n";
}

std::uint32_t ports_of(const Topology& t, std::uint32_t hca) {
    return static_cast<std::uint32_t>(std::ranges::count(t.ports, hca, &PortPlan::hca));
}

std::string hca_text(const Topology& t, std::uint32_t hca) {
    const HcaPlan& plan = t.hcas[hca];
    std::string text = "hca " + t.hca_name(hca) + " ports=" + std::to_string(ports_of(t, hca)) +
                       " profile=" + plan.profile->name;
    if (plan.register_cost != RegisterCost{}) text += " register-cost=" + register_cost_text(plan.register_cost);
    return text + "\n";
}

std::string port_text(const Topology& t, std::uint32_t port) {
    const PortPlan& plan = t.ports[port];
    std::string text = "port " + t.port_name(port);
    if (!t.ethernet) text += " lid=" + hex_text(plan.lid) + " lmc=" + std::to_string(plan.lmc);
    text += " mtu=" + std::to_string(plan.mtu_bytes);
    if (plan.pkeys != PortPlan{}.pkeys) text += " pkeys=" + pkeys_text(plan.pkeys);
    if (plan.grh_required) text += " grh=required";
    if (plan.prefix != 0) text += " prefix=" + hex_text(plan.prefix);
    return text + "\n";
}

std::string cable_text(const Topology& t, const CablePlan& cable) {
    return "link " + t.node_name(cable.a) + " " + t.node_name(cable.b) +
           setting_text("rate", cable.there.rate, cable.back.rate, rate_text) +
           setting_text("latency", cable.there.latency_ns, cable.back.latency_ns, time_text) +
           setting_text("loss", cable.there.loss, cable.back.loss, loss_text) +
           setting_text("load", cable.there.background, cable.back.background, load_text) + "\n";
}

}  // namespace

Error parse_topology(const std::string& name, std::string_view text, Topology& topology) {
    topology = {};
    return Parser(name, topology).parse(text);
}

Error read_topology_file(const std::string& path, Topology& topology) {
    std::ifstream file(path);
    std::stringstream text;
    if (!file || !(text << file.rdbuf())) return {"cannot read the topology '" + path + "', or it is empty"};
    return parse_topology(path, text.str(), topology);
}

std::string to_text(const Topology& t) {
    std::string text = std::string("subnet link-layer=") + (t.ethernet ? "roce" : "ib") +
                       " prefix=" + hex_text(t.prefix) + (t.islands ? " islands=yes\n" : "\n");
    for (const SwitchPlan& plan : t.switches) text += "switch " + plan.name + "\n";
    for (const HostPlan& host : t.hosts) text += "host " + host.name + "\n";
    for (std::uint32_t hca = 0; hca < t.hcas.size(); ++hca) text += hca_text(t, hca);
    for (std::uint32_t port = 0; port < t.ports.size(); ++port) text += port_text(t, port);
    for (const CablePlan& cable : t.cables) text += cable_text(t, cable);
    for (const RoutePlan& route : t.routes) text += route_text(t, route);
    return text;
}

}  // namespace coop::fabric
