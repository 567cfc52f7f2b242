// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/config.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace coop::sched {
namespace {

using Defect = std::optional<std::string>;

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string names_of(PolicyKind kind) {
    std::string names;
    for (const PolicyRow& row : kPolicyRows)
        if (row.kind == kind) names.append(names.empty() ? "" : ", ").append(row.name);
    return names;
}

Defect wrong_kind(const char* setting, Policy policy, PolicyKind kind) {
    if (row_of(policy).kind == kind) return std::nullopt;
    return std::string(setting) + ": " + name(policy) + " is not allowed (allowed: " + names_of(kind) + ")";
}

Defect policies_defect(const SchedConfig& c) {
    if (auto bad = wrong_kind("small_policy", c.small_policy, PolicyKind::kMultiplexes)) return bad;
    if (auto bad = wrong_kind("epc_striping", c.epc_striping, PolicyKind::kStripes)) return bad;
    return wrong_kind("epc_multiplexing", c.epc_multiplexing, PolicyKind::kMultiplexes);
}

Defect sizes_defect(const SchedConfig& c) {
    if (c.alignment != 0 && !std::has_single_bit(c.alignment))
        return "alignment: " + number(c.alignment) + " is not a power of two";
    if (c.window == 0) return "window: 0 is not allowed (at least 1 message)";
    if (c.alpha_percent == 0) return "alpha: 0 % would never adapt (1..100; use weighted_striping for fixed weights)";
    if (c.alpha_percent > 100) return "alpha: " + number(c.alpha_percent) + " % is not allowed (1..100)";
    return std::nullopt;
}

Defect weights_defect(const Weights& weights) {
    if (weights.count > kMaxRails)
        return "weights: " + number(weights.count) + " given, but a channel has at most " + number(kMaxRails) +
               " rails";
    for (std::size_t i = 0; i < weights.count; ++i)
        if (weights.of[i] == 0 || weights.of[i] > kMaxWeight)
            return "weights: " + number(weights.of[i]) + " is not allowed (1.." + number(kMaxWeight) + ")";
    return std::nullopt;
}

Defect batch_defect(std::uint64_t batch, std::uint64_t paths) {
    if (batch <= paths) return std::nullopt;
    return "n_batch: " + number(batch) + " is more than n_paths, which is " + number(paths);
}

// Removes the first weight from the list and returns it.
std::optional<std::uint32_t> take_weight(std::string_view& text) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    std::uint32_t value = 0;
    const auto [rest, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc{} || rest != word.data() + word.size()) return std::nullopt;
    return value;
}

}  // namespace

Defect defect(const SchedConfig& config) {
    if (auto bad = policies_defect(config)) return bad;
    if (auto bad = sizes_defect(config)) return bad;
    if (auto bad = weights_defect(config.weights)) return bad;
    if (config.bss_paths > kMaxRails)
        return "n_paths: " + number(config.bss_paths) + " is not allowed (at most " + number(kMaxRails) + ")";
    return batch_defect(config.bss_batch, config.bss_paths != 0 ? config.bss_paths : kMaxRails);
}

Defect defect(const SchedConfig& config, std::size_t rails) {
    if (auto bad = defect(config)) return bad;
    if (rails == 0) return "there is no rail";
    if (rails > kMaxRails) return number(rails) + " rails exceed the limit of " + number(kMaxRails) + " per channel";
    if (config.weights.count != 0 && config.weights.count != rails)
        return "weights: " + number(config.weights.count) + " given for " + number(rails) + " rails";
    if (config.bss_paths > rails)
        return "n_paths: " + number(config.bss_paths) + " wanted, but there are " + number(rails) + " rails";
    return batch_defect(config.bss_batch, bss_paths(config, rails));
}

std::variant<Weights, std::string> parse_weights(std::string_view text) {
    Weights weights;
    if (text.find_first_not_of(' ') == std::string_view::npos) return weights;
    const std::string_view whole = text;
    bool more = true;
    while (more) {
        more = text.find(',') != std::string_view::npos;
        const auto weight = take_weight(text);
        if (!weight)
            return "weights: \"" + std::string(whole) + "\" is not a list of whole numbers with commas between";
        if (weights.count == kMaxRails) return "weights: more than " + number(kMaxRails) + " given";
        weights.of[weights.count++] = *weight;
    }
    if (auto bad = weights_defect(weights)) return *bad;
    return weights;
}

}  // namespace coop::sched
