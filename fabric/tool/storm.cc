// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/storm.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "fabric/engine/dice.h"
#include "fabric/engine/outage.h"
#include "fabric/shm/trace.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

constexpr std::int64_t kLeastNs = 1'000'000;  // duration of the shortest outage

// The random numbers of a plan.
class Random {
public:
    explicit Random(std::uint64_t seed) : dice_(seed) {}
    std::uint64_t below(std::uint64_t count) { return throw_dice(dice_) % count; }
    std::int64_t up_to(std::int64_t ns) { return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(ns) + 1)); }
    // With this mean.
    std::int64_t around(std::int64_t ns) { return std::max(up_to(2 * ns), kLeastNs); }

private:
    Dice dice_;
};

// What a fault strikes, in the words of actions.
struct Victim {
    std::uint32_t port;  // index
    std::string name, hca, cable;
};

// The action that begins a fault, and the one that ends it; empty: it ends by itself.
struct Words {
    std::string begin, end;
    bool strikes_later = false;  // a rule that takes something down; on a busy machine it may do that after `end`
    std::string before_end{};    // comes right before `end`, whether the rule has done it or not
};

std::string cable_name(const Segment& subnet, std::uint32_t port) {
    const Link& link = subnet.links()[subnet.ports()[port].link_out];
    const std::string to = link.to.kind == NodeKind::port ? port_name(subnet, link.to.index)
                                                          : std::string(subnet.switches()[link.to.index].name);
    return port_name(subnet, port) + "-" + to + (link.cable == 0 ? "" : ":" + std::to_string(link.cable));
}

std::string few(Random& random, std::uint64_t most) { return std::to_string(1 + random.below(most)); }

// A rule for a few messages that expires when the outage is over.
std::string rule(const Victim& victim, const std::string& kind, const std::string& count, std::int64_t ns) {
    return "fault " + victim.name + " " + kind + " --count " + count + " --for " + time_text(ns);
}

using Make = Words (*)(const Segment&, const Victim&, std::int64_t outage_ns, Random&);

Words down_and_up(const std::string& what) { return {what + " down", what + " up"}; }

Words make_lid(const Segment& subnet, const Victim& v, std::int64_t, Random& random) {
    const Port& port = subnet.ports()[v.port];
    return down_and_up("lid " + hex_text(port.lid + random.below(1u << port.lmc)));
}

Words make_rate(const Segment& subnet, const Victim& v, std::int64_t, Random& random) {
    const std::uint64_t rate = subnet.links()[subnet.ports()[v.port].link_out].rate;
    const std::uint64_t base = rate != 0 ? rate : 1'000'000'000;
    return {"port " + v.name + " rate " + rate_text(base / (2 + random.below(7))),
            "port " + v.name + " rate " + rate_text(rate)};
}

Words make_latency(const Segment& subnet, const Victim& v, std::int64_t, Random& random) {
    const std::int64_t latency = subnet.links()[subnet.ports()[v.port].link_out].latency_ns;
    return {"port " + v.name + " latency " + time_text(latency + 100'000 + random.up_to(2'000'000)),
            "port " + v.name + " latency " + time_text(latency)};
}

// Takes the HCA down in any case before it is brought up: otherwise nobody would notice what it has lost.
Words make_ack_and_die(const Segment&, const Victim& v, std::int64_t ns, Random& random) {
    const std::string hca = "hca " + v.hca;
    return {rule(v, "ack-and-die", few(random, 3), ns / 2), hca + " up", true, hca + " down"};
}

struct Kind {
    const char* word;
    bool usual;    // part of an empty list
    bool impairs;  // the rail may fail
    bool needs_lids;
    Make make;
};

constexpr std::array kKinds = {
    Kind{"port", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t, Random&) { return down_and_up("port " + v.name); }},
    Kind{"link", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t, Random&) { return down_and_up("link " + v.cable); }},
    Kind{"lid", true, true, true, make_lid},
    Kind{"one-way", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t, Random&) {
             return Words{"link " + v.cable + " loss 100% --one-way", "link " + v.cable + " loss 0 --one-way"};
         }},
    Kind{"loss", true, false, false,
         [](const Segment&, const Victim& v, std::int64_t, Random& random) {
             return Words{"port " + v.name + " loss " + few(random, 3) + "%", "port " + v.name + " loss 0"};
         }},
    Kind{"rate", true, false, false, make_rate},
    Kind{"latency", true, false, false, make_latency},
    Kind{"drop", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random& random) {
             return Words{rule(v, "drop", few(random, 20), ns), ""};
         }},
    Kind{"lose-ack", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random& random) {
             return Words{rule(v, "lose-ack", few(random, 20), ns), ""};
         }},
    Kind{"rnr", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random& random) {
             return Words{rule(v, "rnr", few(random, 20), ns), ""};
         }},
    Kind{"cut", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random& random) {
             return Words{rule(v, "cut", few(random, 5), ns / 2), "port " + v.name + " up", true};
         }},
    Kind{"late", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random& random) {
             return Words{rule(v, "late " + time_text(kLeastNs + random.up_to(ns)), few(random, 3), ns), ""};
         }},
    Kind{"mute-qp", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random&) {
             return Words{rule(v, "mute-qp", "1", ns), ""};
         }},
    Kind{"kill-qp", true, true, false,
         [](const Segment&, const Victim& v, std::int64_t ns, Random&) {
             return Words{rule(v, "kill-qp", "1", ns), ""};
         }},
    Kind{"new-lid", false, true, true,
         [](const Segment&, const Victim& v, std::int64_t, Random&) {
             return Words{"port " + v.name + " down", "port " + v.name + " up --lid new"};
         }},
    Kind{"new-gid", false, true, false,
         [](const Segment&, const Victim& v, std::int64_t,
            Random&) { return Words{"port " + v.name + " down", "port " + v.name + " up --gid new"}; }},
    Kind{"hca", false, true, false,
         [](const Segment&, const Victim& v, std::int64_t, Random&) { return down_and_up("hca " + v.hca); }},
    Kind{"ack-and-die", false, true, false, make_ack_and_die},
};

bool is_ethernet(const Segment& subnet) { return subnet.ports()[0].link_layer == IBV_LINK_LAYER_ETHERNET; }

// The rails that every host has.
std::uint32_t rails_of(const Segment& subnet) {
    std::uint32_t rails = std::numeric_limits<std::uint32_t>::max();
    for (const Host& host : subnet.hosts())
        if (host.hcas > 0) rails = std::min(rails, host.hcas);
    return rails;
}

Error choose_kinds(const Segment& subnet, const StormPlan& plan, std::vector<const Kind*>& chosen) {
    const bool ethernet = is_ethernet(subnet);
    for (const std::string& word : plan.kinds) {
        const auto kind = std::ranges::find_if(kKinds, [&](const Kind& one) { return word == one.word; });
        if (kind == kKinds.end()) return bad_value("--kinds", word, "one of " + storm_kinds());
        if (kind->needs_lids && ethernet) return {"--kinds: " + word + ": RoCE has no LIDs"};
        chosen.push_back(&*kind);
    }
    if (!chosen.empty()) return {};
    for (const Kind& kind : kKinds)
        if (kind.usual && !(kind.needs_lids && ethernet)) chosen.push_back(&kind);
    return {};
}

class Maker {
public:
    Maker(const Segment& subnet, const StormPlan& plan, std::vector<const Kind*> kinds)
        : subnet_(subnet), plan_(plan), kinds_(std::move(kinds)), random_(plan.seed), whole_from_ns_(rails_of(subnet)),
          moved_(subnet.ports().size()) {}

    std::string make() {
        for (std::uint32_t i = 0; i < plan_.faults; ++i) add_fault();
        std::ranges::stable_sort(lines_, {}, &Line::at_ns);
        std::string text;
        for (const Line& line : lines_) text += "at " + time_text(line.at_ns) + " " + line.action + "\n";
        text += "at " + time_text(end_ns_) + " fault clear\n";
        for (const std::string& repair : repairs_) text += "at " + time_text(end_ns_) + " " + repair + "\n";
        return text;
    }

private:
    struct Line {
        std::int64_t at_ns;
        std::string action;
    };

    // True if another rail is whole at that time.
    bool may_impair(std::uint32_t rail, std::int64_t at_ns) const {
        if (plan_.all_rails) return true;
        for (std::uint32_t other = 0; other < whole_from_ns_.size(); ++other)
            if (other != rail && whole_from_ns_[other] <= at_ns) return true;
        return false;
    }

    // Chooses a rail that may be impaired, and if there is none yet, waits until there is one.
    std::uint32_t choose_rail() {
        std::vector<std::uint32_t> possible;
        for (std::uint32_t rail = 0; rail < whole_from_ns_.size(); ++rail)
            if (may_impair(rail, now_ns_)) possible.push_back(rail);
        if (!possible.empty()) return possible[random_.below(possible.size())];
        now_ns_ = *std::ranges::min_element(whole_from_ns_);
        return choose_rail();
    }

    Victim choose_victim(std::uint32_t rail) {
        std::vector<std::uint32_t> hosts;
        for (std::uint32_t i = 0; i < subnet_.hosts().size(); ++i)
            if (subnet_.hosts()[i].hcas > 0) hosts.push_back(i);
        const std::uint32_t hca = subnet_.hosts()[hosts[random_.below(hosts.size())]].first_hca + rail;
        const Hca& device = subnet_.hcas()[hca];
        const auto port = static_cast<std::uint32_t>(device.first_port + random_.below(device.ports));
        return {port, port_name(subnet_, port), hca_name(subnet_, hca), cable_name(subnet_, port)};
    }

    void add_fault() {
        now_ns_ += random_.around(plan_.every_ns);
        const Kind& kind = *kinds_[random_.below(kinds_.size())];
        const std::uint32_t rail = kind.impairs ? choose_rail()
                                                : static_cast<std::uint32_t>(random_.below(whole_from_ns_.size()));
        const Victim victim = choose_victim(rail);
        const std::int64_t outage_ns = random_.around(plan_.outage_ns), over_ns = now_ns_ + outage_ns;
        // The LIDs of a port that has moved are not known now.
        const bool unknown = kind.needs_lids && moved_[victim.port] && kind.word == std::string("lid");
        const Words words = unknown ? down_and_up("port " + victim.name)
                                    : kind.make(subnet_, victim, outage_ns, random_);
        if (kind.word == std::string("new-lid")) moved_[victim.port] = true;
        lines_.push_back({now_ns_, words.begin});
        for (const std::string& action : {words.before_end, words.end})
            if (!action.empty()) lines_.push_back({over_ns, action});
        if (words.strikes_later) repairs_.insert(words.end);
        if (kind.impairs) whole_from_ns_[rail] = std::max(whole_from_ns_[rail], over_ns + plan_.settle_ns);
        end_ns_ = std::max(end_ns_, over_ns);
    }

    const Segment& subnet_;
    const StormPlan& plan_;
    const std::vector<const Kind*> kinds_;
    Random random_;
    std::vector<std::int64_t> whole_from_ns_;  // of each rail
    std::vector<bool> moved_;                  // ports that get other LIDs
    std::vector<Line> lines_;
    std::set<std::string> repairs_;  // actions that follow when all rules are removed
    std::int64_t now_ns_ = 0, end_ns_ = 0;
};

std::string words_of(bool usual_only) {
    std::string words;
    for (const Kind& kind : kKinds)
        if (kind.usual || !usual_only) words += (words.empty() ? "" : ", ") + std::string(kind.word);
    return words;
}

}  // namespace

Error make_storm(const Segment& subnet, const StormPlan& plan, std::string& scenario) {
    if (subnet.ports().empty()) return {"the subnet has no ports"};
    std::vector<const Kind*> kinds;
    if (Error error = choose_kinds(subnet, plan, kinds)) return error;
    const bool impairs = std::ranges::any_of(kinds, &Kind::impairs);
    if (impairs && !plan.all_rails && rails_of(subnet) < 2)
        return {"a host has one HCA, so that each fault would leave no rail: give --all-rails"};
    scenario = Maker(subnet, plan, std::move(kinds)).make();
    return {};
}

std::string storm_kinds() { return words_of(false); }
std::string usual_storm_kinds() { return words_of(true); }

}  // namespace coop::fabric
