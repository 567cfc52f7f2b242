// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

namespace coop::fabric {
namespace {

struct Unit {
    const char* name;
    double size;
};

// The first four are used for output, the largest first.
constexpr Unit kRateUnits[] = {{"GB/s", 1e9},       {"MB/s", 1e6},      {"kB/s", 1e3},      {"B/s", 1},
                               {"GiB/s", 0x1p30},   {"MiB/s", 0x1p20},  {"KiB/s", 0x1p10},  {"KB/s", 1e3},
                               {"Tbit/s", 1.25e11}, {"Gbit/s", 1.25e8}, {"Mbit/s", 1.25e5}, {"kbit/s", 125}};
constexpr Unit kTimeUnits[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"µs", 1e3}};
constexpr std::size_t kShownUnits = 4;
constexpr Unit kSizeUnits[] = {{"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20},
                               {"GiB", 0x1p30}, {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9}};
constexpr Unit kLossUnits[] = {{"", 1}, {"%", 0.01}};

// Accepts digits and at most one point; neither signs nor exponents.
std::optional<double> take_decimal(std::string_view& text) {
    std::size_t end = 0;
    while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value, std::chars_format::fixed);
    if (end == 0 || error != std::errc{} || stop != text.data() + end) return std::nullopt;
    text.remove_prefix(end);
    return value;
}

std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
    const auto number = take_decimal(text);
    if (!number) return std::nullopt;
    for (const Unit& unit : units)
        if (text == unit.name) return *number * unit.size;
    return std::nullopt;
}

std::optional<std::uint64_t> whole(std::optional<double> value) {
    if (!value || !(*value < 9e18)) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(*value));
}

// Uses the largest unit that needs at most three decimals.
std::string quantity_text(std::uint64_t value, std::span<const Unit> units) {
    for (const Unit& unit : units) {
        const auto size = static_cast<std::uint64_t>(unit.size);
        if (value < size || (size >= 1000 && value % (size / 1000) != 0)) continue;
        std::string text = std::to_string(value / size);
        if (value % size != 0) {
            const std::string thousandths = std::to_string(1000 + value % size / (size / 1000));
            text += "." + thousandths.substr(1);
            while (text.back() == '0') text.pop_back();
        }
        return text + unit.name;
    }
    return std::to_string(value) + units.back().name;
}

}  // namespace

std::optional<std::uint64_t> parse_rate(std::string_view text) {
    if (text == "unlimited") return 0;
    const auto rate = whole(parse_quantity(text, kRateUnits));
    return rate && *rate > 0 ? rate : std::nullopt;
}

std::optional<std::uint64_t> parse_load(std::string_view text) {
    if (text == "none" || text == "0") return 0;
    return whole(parse_quantity(text, kRateUnits));
}

std::optional<std::int64_t> parse_time_ns(std::string_view text) {
    if (text == "0") return 0;
    const auto ns = whole(parse_quantity(text, kTimeUnits));
    return ns ? std::optional(static_cast<std::int64_t>(*ns)) : std::nullopt;
}

std::optional<RegisterCost> parse_register_cost(std::string_view text) {
    constexpr std::int64_t kLongestNs = 1'000'000'000;
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    const auto base_ns = parse_time_ns(text.substr(0, comma)), page_ns = parse_time_ns(text.substr(comma + 1));
    if (!base_ns || !page_ns || *base_ns > kLongestNs || *page_ns > kLongestNs) return std::nullopt;
    return RegisterCost{.base_ns = *base_ns, .page_ns = *page_ns};
}

std::optional<std::uint32_t> parse_loss(std::string_view text) {
    const auto value = parse_quantity(text, kLossUnits);
    if (!value || *value > 1) return std::nullopt;
    return static_cast<std::uint32_t>(std::min(std::llround(*value * 0x1p32), 0xffffffffll));
}

std::optional<std::uint64_t> parse_size_bytes(std::string_view text) { return whole(parse_quantity(text, kSizeUnits)); }

std::optional<std::uint64_t> parse_number(std::string_view text) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::vector<std::uint16_t>> parse_pkeys(std::string_view text) {
    std::vector<std::uint16_t> keys;
    for (bool more = true; more;) {
        const std::size_t comma = text.find(',');
        const auto key = parse_number(text.substr(0, comma));
        if (!key || *key > 0xffff || *key == 0x8000) return std::nullopt;
        keys.push_back(static_cast<std::uint16_t>(*key));
        more = comma != std::string_view::npos;
        if (more) text.remove_prefix(comma + 1);
    }
    return keys;
}

std::string rate_text(std::uint64_t bytes_per_s) {
    return bytes_per_s == 0 ? "unlimited" : quantity_text(bytes_per_s, std::span(kRateUnits).first(kShownUnits));
}

std::string load_text(std::uint64_t bytes_per_s) { return bytes_per_s == 0 ? "none" : rate_text(bytes_per_s); }

std::string time_text(std::int64_t ns) {
    return quantity_text(static_cast<std::uint64_t>(ns), std::span(kTimeUnits).first(kShownUnits));
}

std::string register_cost_text(const RegisterCost& cost) {
    return time_text(cost.base_ns) + "," + time_text(cost.page_ns);
}

std::string loss_text(std::uint32_t loss) {
    if (loss == 0xffffffff) return "1";
    char text[32];
    std::snprintf(text, sizeof text, "%.11f", static_cast<double>(loss) * 0x1p-32);
    std::string shown = text;
    while (shown.back() == '0') shown.pop_back();
    if (shown.back() == '.') shown.pop_back();
    return shown;
}

std::string hex_text(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string pkeys_text(const std::vector<std::uint16_t>& keys) {
    std::string text;
    for (const std::uint16_t key : keys) text += (text.empty() ? "" : ",") + hex_text(key);
    return text;
}

Error bad_value(std::string_view name, std::string_view value, std::string_view wanted) {
    std::string text(name);
    text += ": '";
    text += value;
    text += "' is not ";
    text += wanted;
    return {text};
}

Error parse_in_range(std::string_view name, std::string_view text, std::uint64_t min, std::uint64_t max,
                     std::uint64_t& value) {
    const auto number = parse_number(text);
    if (!number || *number < min || *number > max)
        return bad_value(name, text, "a whole number in " + std::to_string(min) + ".." + std::to_string(max));
    value = *number;
    return {};
}

Error parse_grh(std::string_view name, std::string_view text, bool& required) {
    if (text != "required" && text != "optional") return bad_value(name, text, "'required' or 'optional'");
    required = text == "required";
    return {};
}

Error parse_mtu(std::string_view name, std::string_view text, std::uint32_t& mtu_bytes) {
    for (const std::uint32_t mtu : {256u, 512u, 1024u, 2048u, 4096u})
        if (text == std::to_string(mtu)) {
            mtu_bytes = mtu;
            return {};
        }
    return bad_value(name, text, "one of 256, 512, 1024, 2048, 4096");
}

}  // namespace coop::fabric
