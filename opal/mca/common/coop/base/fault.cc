// SPDX-License-Identifier: BSD-3-Clause
#include "coop/base/fault.h"

#include <charconv>
#include <optional>

namespace coop {

namespace {

std::optional<Fault> fault_named(std::string_view name) {
    for (std::size_t i = 0; i < kFaultCount; ++i)
        if (name == kFaultLabels[i]) return static_cast<Fault>(i);
    return std::nullopt;
}

std::string known_names() {
    std::string names;
    for (const char* label : kFaultLabels) {
        if (!names.empty()) names += ", ";
        names += label;
    }
    return names;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, status] = std::from_chars(text.data(), end, value);
    if (text.empty() || status != std::errc{} || rest != end) return std::nullopt;
    return value;
}

std::string quoted(std::string_view word) { return '"' + std::string(word) + '"'; }

}  // namespace

std::variant<Faults, std::string> Faults::parse(std::string_view spec) {
    Faults faults;
    while (!spec.empty()) {
        const std::size_t comma = spec.find(',');
        std::string wrong = faults.add_rule(spec.substr(0, comma));
        if (!wrong.empty()) return wrong;
        if (comma == std::string_view::npos) break;
        spec.remove_prefix(comma + 1);
        if (spec.empty()) return std::string("a rule is missing after the last comma");
    }
    return faults;
}

std::string Faults::add_rule(std::string_view rule) {
    const std::size_t mark = rule.find_first_of(":@");
    const std::string_view name = rule.substr(0, mark);
    const auto fault = fault_named(name);
    if (!fault) return "unknown fault " + quoted(name) + "; known faults: " + known_names();
    if (mark == std::string_view::npos)
        return quoted(rule) + " does not say when: append :n (every n-th) or @k (the k-th)";

    std::string_view when = rule.substr(mark + 1);
    const std::size_t equals = when.find('=');
    std::int64_t byte = -1;
    int bit = -1;
    if (equals != std::string_view::npos) {
        const std::string_view place = when.substr(equals + 1);
        const std::size_t dot = place.find('.');
        const auto number = number_of(place.substr(0, dot));
        if (!is_corruption(*fault)) return quoted(rule) + " names a byte, which only corrupt_ faults accept";
        if (!number || *number > INT64_MAX) return quoted(rule) + " does not name a byte after =";
        byte = static_cast<std::int64_t>(*number);
        if (dot != std::string_view::npos) {
            const auto bit_number = number_of(place.substr(dot + 1));
            if (!bit_number || *bit_number > 7) return quoted(rule) + " does not name a bit, 0 to 7, after the dot";
            bit = static_cast<int>(*bit_number);
        }
        when = when.substr(0, equals);
    }
    const auto count = number_of(when);
    if (!count || *count == 0) return quoted(rule) + " needs a number of calls, 1 or more, after : or @";

    Site& armed = site(*fault);
    if (armed.every || armed.only) return quoted(name) + " has two rules";
    (rule[mark] == ':' ? armed.every : armed.only) = *count;
    armed.byte = byte;
    armed.bit = bit;
    armed_ = true;
    return {};
}

bool Faults::count_call(Fault fault) noexcept {
    Site& here = site(fault);
    if (!here.every && !here.only) return false;
    const std::uint64_t call = here.calls.add(1, true);
    const bool fails = here.every ? call % here.every == 0 : call == here.only;
    if (fails) here.injected.add(1, true);
    return fails;
}

bool Faults::flip_bit(Fault fault, void* header, std::size_t header_bytes) noexcept {
    if (header_bytes == 0) return false;
    Site& here = site(fault);
    const std::uint64_t flip = here.flips.add(1, true) - 1;
    const std::uint64_t size = header_bytes;
    std::uint64_t byte = flip % size;
    std::uint64_t bit = flip / size % 8;
    if (here.byte >= 0) {
        byte = static_cast<std::uint64_t>(here.byte) < size ? static_cast<std::uint64_t>(here.byte) : size - 1;
        bit = here.bit >= 0 ? static_cast<std::uint64_t>(here.bit) : flip % 8;
    }
    static_cast<unsigned char*>(header)[byte] ^= static_cast<unsigned char>(1u << bit);
    return true;
}

std::uint64_t Faults::injected(Fault fault) const noexcept { return site(fault).injected.read(); }

}  // namespace coop
