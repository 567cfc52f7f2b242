// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include "fabric/shm/trace.h"
#include "fabric/tool/action.h"
#include "fabric/tool/control.h"
#include "fabric/tool/names.h"
#include "fabric/tool/options.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

constexpr const char* kForm =
    "fault TARGET KIND [--after N] [--count M] [--for T], fault TARGET late T …, or 'fault clear'";
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

Error parse_kind(const std::string& word, FaultKind& kind) {
    std::string all;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(FaultKind::kill_process); ++i) {
        kind = static_cast<FaultKind>(i);
        if (word == name_of(kind)) return {};
        all += (i == 0 ? "" : ", ") + std::string(name_of(kind));
    }
    return bad_value("fault, kind", word, "one of " + all);
}

Error parse_link_target(const Segment& subnet, const std::string& word, FaultRule& rule) {
    Indices links;
    if (Error error = find_links(subnet, word, links)) return error;
    if (links.size() > 1)
        return {"fault: there are " + std::to_string(links.size()) + " cables '" + word + "': say which, " + word +
                ":1 to :" + std::to_string(links.size())};
    rule.scope = FaultScope::link;
    rule.target = links[0];
    return {};
}

// Parses 'all', qp:N, a LID, HOST/HCA or HOST/HCA/PORT.
Error parse_target(const Segment& subnet, const std::string& word, FaultRule& rule) {
    if (word == "all") {
        rule.scope = FaultScope::all;
        return {};
    }
    if (word.starts_with("qp:")) {
        std::uint64_t number = 0;
        if (Error error = parse_in_range("fault, QP number", word.substr(3), 2, 0xffffff, number)) return error;
        rule.scope = FaultScope::qp;
        rule.target = static_cast<std::uint32_t>(number);
        return {};
    }
    if (parse_number(word)) {
        rule.scope = FaultScope::lid;
        return find_lid(subnet, word, rule.target);
    }
    if (!find_hca(subnet, word, rule.target)) {
        rule.scope = FaultScope::hca;
        return {};
    }
    Indices ports;
    if (find_ports(subnet, word, ports))
        return bad_value("fault, target", word,
                         "'all', HOST/HCA, HOST/HCA/PORT, a LID, qp:NUMBER, or 'link A-B' of this subnet");
    rule.scope = FaultScope::port;
    rule.target = ports[0];
    return {};
}

Error take_fault_options(Words& words, FaultRule& rule) {
    std::uint64_t after = 0, count = 0;
    const Option options[] = {
        {"--after", true, [&](const std::string& value) { return parse_in_range("--after", value, 0, kNoEnd, after); }},
        {"--count", true, [&](const std::string& value) { return parse_in_range("--count", value, 1, kNoEnd, count); }},
        {"--for", true,
         [&](const std::string& value) {
             const auto ns = parse_time_ns(value);
             if (!ns || *ns == 0) return bad_value("--for", value, kTimeWords);
             rule.for_ns = *ns;
             return Error{};
         }},
    };
    if (Error error = take_options(kFaultCommand, words, options)) return error;
    rule.after = static_cast<std::int64_t>(after);
    rule.count = count != 0 ? static_cast<std::int64_t>(count) : rule.for_ns != 0 ? kNoEnd : 1;
    return {};
}

// Takes the word after 'late'.
Error take_delay(Words& words, FaultRule& rule) {
    const auto ns = words.size() > 3 ? parse_time_ns(words[3]) : std::nullopt;
    if (!ns || *ns == 0) return bad_value("fault, late", words.size() > 3 ? words[3] : "", kTimeWords);
    rule.delay_ns = *ns;
    words.erase(words.begin() + 3);
    return {};
}

// A rule that ends with its last message must have a last message.
Error check_count(const std::string& word, const FaultRule& rule) {
    const bool ends = rule.kind == FaultKind::cut || rule.kind == FaultKind::ack_and_die;
    if (!ends || rule.count != kNoEnd) return {};
    return {"fault: " + word + " takes effect with the last of --count messages: give --count, too"};
}

}  // namespace

Error parse_fault(const Segment& subnet, const Words& given, Action& action) {
    Words words = given;
    FaultRule rule{};
    if (Error error = take_fault_options(words, rule)) return {"fault: " + error.text};
    if (words.size() == 2 && words[1] == "clear") {
        action = [](const Segment& on) {
            clear_faults(on);
            return Error{};
        };
        return {};
    }
    const bool is_link = words.size() > 1 && words[1] == "link";
    if (is_link) words.erase(words.begin() + 1);
    if (words.size() < 3) return {std::string("fault: too few words (") + kForm + ")"};
    if (Error error = is_link ? parse_link_target(subnet, words[1], rule) : parse_target(subnet, words[1], rule))
        return error;
    if (Error error = parse_kind(words[2], rule.kind)) return error;
    if (rule.kind == FaultKind::late) {
        if (Error error = take_delay(words, rule)) return error;
    }
    if (words.size() > 3) return {"fault: '" + words[3] + "' is unexpected (" + kForm + ")"};
    if (Error error = check_count(words[2], rule)) return error;
    action = [rule](const Segment& on) {
        return set_fault(on, rule)
                   ? Error{}
                   : Error{"fault: there are too many rules in force already (coop-fabric fault clear)"};
    };
    return {};
}

}  // namespace coop::fabric
