// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/action.h"

#include <algorithm>

#include "fabric/tool/control.h"
#include "fabric/tool/names.h"
#include "fabric/tool/options.h"
#include "fabric/tool/readdress.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

// An action that does the same to each of several ports, links, …
template <class Done>
Action for_each(Indices indices, Done&& done) {
    return [indices = std::move(indices), done](const Segment& subnet) {
        for (const std::uint32_t index : indices) done(subnet, index);
        return Error{};
    };
}

Error expect_words(const Words& words, std::size_t count, const char* form) {
    if (words.size() < count) return {words[0] + ": too few words (" + form + ")"};
    if (words.size() > count) return {words[0] + ": '" + words[count] + "' is unexpected (" + form + ")"};
    return {};
}

Error parse_up_or_down(const std::string& what, const std::string& word, bool& up) {
    if (word != "up" && word != "down") return bad_value(what, word, "'up' or 'down'");
    up = word == "up";
    return {};
}

// Parses 'rate R', 'latency T', 'loss P' or 'load R' into an action on these links.
Error parse_setting(const std::string& what, const std::string& value, Indices links, Action& action) {
    if (what == "rate") {
        const auto rate = parse_rate(value);
        if (!rate) return bad_value(what, value, kRateWords);
        action = for_each(std::move(links),
                          [=](const Segment& subnet, std::uint32_t link) { set_rate(subnet, link, *rate); });
    } else if (what == "latency") {
        const auto ns = parse_time_ns(value);
        if (!ns) return bad_value(what, value, kTimeWords);
        action = for_each(std::move(links),
                          [=](const Segment& subnet, std::uint32_t link) { set_latency(subnet, link, *ns); });
    } else if (what == "loss") {
        const auto loss = parse_loss(value);
        if (!loss) return bad_value(what, value, kLossWords);
        action = for_each(std::move(links),
                          [=](const Segment& subnet, std::uint32_t link) { set_loss(subnet, link, *loss); });
    } else {
        const auto load = parse_load(value);
        if (!load) return bad_value(what, value, kLoadWords);
        action = for_each(std::move(links),
                          [=](const Segment& subnet, std::uint32_t link) { set_background(subnet, link, *load); });
    }
    return {};
}

bool is_setting(const std::string& word, bool of_link) {
    return word == "rate" || word == "latency" || word == "loss" || (of_link && word == "load");
}

// The addresses that a port gets when it comes up; empty: it keeps them.
struct NewAddresses {
    std::string lid, gid;
    bool any() const { return !lid.empty() || !gid.empty(); }
};

Error take_addresses(Words& words, NewAddresses& addresses) {
    const Option options[] = {text("--lid", addresses.lid), text("--gid", addresses.gid)};
    if (Error error = take_options(kPortCommand, words, options)) return {"port: " + error.text};
    if (!addresses.any()) return {};
    if (words.size() < 3 || words[2] != "up") return {"port: --lid and --gid go with 'up'"};
    if (!addresses.lid.empty())
        if (Error error = check_lid_text(addresses.lid)) return error;
    return addresses.gid.empty() ? Error{} : check_gid_text(addresses.gid);
}

Error change_addresses(const Segment& subnet, std::uint32_t port, const NewAddresses& addresses) {
    if (!addresses.lid.empty())
        if (Error error = change_lid(subnet, port, addresses.lid)) return {"port: " + error.text};
    if (!addresses.gid.empty())
        if (Error error = change_gid(subnet, port, addresses.gid)) return {"port: " + error.text};
    return {};
}

// The programs learn of the new addresses before the port is active.
Action bring_up(Indices ports, NewAddresses addresses) {
    return [=](const Segment& subnet) {
        for (const std::uint32_t port : ports) {
            if (Error error = change_addresses(subnet, port, addresses)) return error;
            set_port(subnet, port, true);
        }
        return Error{};
    };
}

Error parse_port(const Segment& subnet, const Words& given, Action& action) {
    constexpr const char* kForm = "port HOST/HCA[/PORT] up|down|rate R|latency T|loss P";
    Words words = given;
    NewAddresses addresses;
    if (Error error = take_addresses(words, addresses)) return error;
    if (words.size() < 3) return expect_words(words, 3, kForm);
    Indices ports;
    if (Error error = find_ports(subnet, words[1], ports)) return error;
    if (is_setting(words[2], false)) {
        if (Error error = expect_words(words, 4, kForm)) return error;
        Indices links;
        for (const std::uint32_t port : ports)
            links.insert(links.end(), {subnet.ports()[port].link_out, subnet.ports()[port].link_in});
        return parse_setting(words[2], words[3], std::move(links), action);
    }
    if (Error error = expect_words(words, 3, kForm)) return error;
    bool up = false;
    if (parse_up_or_down("port", words[2], up)) return bad_value("port", words[2], "up, down, rate, latency or loss");
    if (addresses.any()) action = bring_up(std::move(ports), std::move(addresses));
    else action = for_each(std::move(ports), [=](const Segment& on, std::uint32_t port) { set_port(on, port, up); });
    return {};
}

Error parse_link(const Segment& subnet, const Words& given, Action& action) {
    constexpr const char* kForm = "link A-B[:K] up|down|rate R|latency T|loss P|load R [--one-way]";
    Words words = given;
    const bool one_way = std::erase(words, "--one-way") != 0;
    if (words.size() < 3) return expect_words(words, 3, kForm);
    Indices links;
    if (Error error = find_links(subnet, words[1], links)) return error;
    if (!one_way)
        for (std::size_t i = 0, count = links.size(); i < count; ++i) links.push_back(opposite(links[i]));
    if (is_setting(words[2], true)) {
        if (Error error = expect_words(words, 4, kForm)) return error;
        return parse_setting(words[2], words[3], std::move(links), action);
    }
    if (Error error = expect_words(words, 3, kForm)) return error;
    bool up = false;
    if (parse_up_or_down("link", words[2], up))
        return bad_value("link", words[2], "up, down, rate, latency, loss or load");
    action = [=](const Segment& on) {
        set_links(on, links, up);
        return Error{};
    };
    return {};
}

Error parse_lid(const Segment& subnet, const Words& words, Action& action) {
    if (Error error = expect_words(words, 3, "lid LID up|down")) return error;
    std::uint32_t lid = 0;
    bool up = false;
    if (Error error = find_lid(subnet, words[1], lid)) return error;
    if (Error error = parse_up_or_down("lid", words[2], up)) return error;
    action = for_each({lid}, [=](const Segment& on, std::uint32_t which) { set_lid(on, which, up); });
    return {};
}

Error parse_hca(const Segment& subnet, const Words& words, Action& action) {
    if (Error error = expect_words(words, 3, "hca HOST/HCA up|down")) return error;
    std::uint32_t hca = 0;
    bool up = false;
    if (Error error = find_hca(subnet, words[1], hca)) return error;
    if (Error error = parse_up_or_down("hca", words[2], up)) return error;
    action = for_each({hca}, [=](const Segment& on, std::uint32_t which) { set_hca(on, which, up); });
    return {};
}

Error parse_sm(const Segment&, const Words& words, Action& action) {
    if (Error error = expect_words(words, 2, "sm change")) return error;
    if (words[1] != "change") return bad_value("sm", words[1], "'change'");
    action = [](const Segment& on) {
        change_manager(on);
        return Error{};
    };
    return {};
}

Error parse_kill(const Segment& subnet, const Words& words, Action& action) {
    if (Error error = expect_words(words, 2, "kill HOST|PID")) return error;
    const std::string target = words[1];
    if (const auto pid = parse_number(target)) {
        action = [=](const Segment& on) {
            return kill_process(on, static_cast<std::int32_t>(*pid)) > 0
                       ? Error{}
                       : Error{"kill: no process " + target + " is on the subnet"};
        };
        return {};
    }
    std::uint32_t host = 0;
    if (Error error = find_host(subnet, target, host)) return error;
    action = [=](const Segment& on) {
        return kill_on_host(on, host) > 0 ? Error{} : Error{"kill: no process of host " + target + " is on the subnet"};
    };
    return {};
}

struct Row {
    const char* word;
    Error (*parse)(const Segment& subnet, const Words& words, Action& action);
};
constexpr Row kRows[] = {{"port", parse_port}, {"link", parse_link},   {"lid", parse_lid},  {"hca", parse_hca},
                         {"sm", parse_sm},     {"fault", parse_fault}, {"kill", parse_kill}};

}  // namespace

bool is_action(const std::string& word) {
    return std::ranges::any_of(kRows, [&](const Row& row) { return word == row.word; });
}

std::string action_words() {
    std::string words;
    for (const Row& row : kRows) words += (words.empty() ? "" : ", ") + std::string(row.word);
    return words;
}

Error parse_action(const Segment& subnet, const Words& words, Action& action) {
    if (words.empty()) return {"an action is missing (" + action_words() + ")"};
    for (const Row& row : kRows)
        if (words[0] == row.word) return row.parse(subnet, words, action);
    return {"'" + words[0] + "' is not an action (" + action_words() + ")"};
}

}  // namespace coop::fabric
