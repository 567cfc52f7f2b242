// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fabric/topo/units.h"

namespace coop::fabric {

Option flag(const char* name, bool& value) {
    return {name, false, [&value](const std::string&) { return value = true, Error{}; }};
}

Option text(const char* name, std::string& value) {
    return {name, true, [&value](const std::string& given) { return value = given, Error{}; }};
}

Option number(const char* name, std::uint64_t min, std::uint64_t max, std::uint32_t& value) {
    return {name, true, [=, &value](const std::string& given) {
                std::uint64_t parsed = value;
                const Error error = parse_in_range(name, given, min, max, parsed);
                value = static_cast<std::uint32_t>(parsed);
                return error;
            }};
}

Error take_options(const Command& command, Words& words, std::span<const Option> options, bool ends_at_word) {
    Words rest;
    std::size_t i = 0;
    for (; i < words.size() && words[i] != "--"; ++i) {
        const std::string& word = words[i];
        if (word == "--help" || word == "-h") {
            std::fputs(command.help, stdout);
            std::exit(0);
        }
        if (!word.starts_with("-") || word.size() == 1) {
            if (ends_at_word) break;
            rest.push_back(word);
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const auto option = std::ranges::find_if(options, [&](const Option& one) { return name == one.name; });
        if (option == options.end()) return {"there is no option '" + name + "'"};
        if (!option->has_value && equals != std::string::npos) return {name + " takes no value"};
        std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (option->has_value && equals == std::string::npos) {
            if (i + 1 == words.size() || words[i + 1] == "--") return {name + ": a value is missing"};
            value = words[++i];
        }
        if (Error error = option->set(value)) return error;
    }
    if (i < words.size() && words[i] == "--") ++i;
    rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    words = std::move(rest);
    return {};
}

Error name_subnet(std::string& name) {
    if (!name.empty()) return {};
    const char* environment = std::getenv("COOP_FABRIC");
    if (environment != nullptr && *environment != '\0') {
        name = environment;
        return {};
    }
    std::vector<std::string> names = Segment::list();
    if (names.empty()) return {"there is no subnet (coop-fabric create)"};
    if (names.size() == 1) {
        name = names[0];
        return {};
    }
    std::ranges::sort(names);
    std::string all;
    for (const std::string& one : names) all += " " + one;
    return {"which subnet? Give --subnet NAME or set COOP_FABRIC:" + all};
}

Error open_subnet(std::string name, Segment& subnet) {
    if (Error error = name_subnet(name)) return error;
    return subnet.attach(name);
}

}  // namespace coop::fabric
