// SPDX-License-Identifier: BSD-3-Clause
#include "sim/policies.h"

#include <charconv>

namespace coop::sim {
namespace {

using sched::Policy;

// Parses a whole number; 0 if the text is anything else.
std::uint32_t number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

std::string all_names() {
    std::string names = "original, hsam:N, even:N, bss:N,BATCH";
    for (const sched::PolicyRow& row : sched::kPolicyRows) names.append(", ").append(row.name).append(":N");
    return names;
}

// "hsam" for adaptive_striping, and so on.
std::optional<Policy> policy_of(std::string_view name) {
    if (name == "original") return Policy::kBinding;
    if (name == "hsam") return Policy::kAdaptiveStriping;
    if (name == "even") return Policy::kEvenStriping;
    return sched::policy_named(name);
}

}  // namespace

std::variant<Scheduling, std::string> parse_scheduling(std::string_view word) {
    const std::string whole(word);
    const std::size_t colon = word.find(':');
    const std::optional<Policy> policy = policy_of(word.substr(0, colon));
    if (!policy) return "there is no policy '" + whole + "' (" + all_names() + ")";
    Scheduling setup;
    setup.name = whole;
    setup.config.large_policy = *policy;
    if (colon != std::string_view::npos) {
        std::string_view sizes = word.substr(colon + 1);
        const std::size_t comma = sizes.find(',');
        setup.paths = number(sizes.substr(0, comma));
        if (comma != std::string_view::npos) {
            setup.config.bss_batch = number(sizes.substr(comma + 1));
            if (*policy != Policy::kBss || setup.config.bss_batch == 0)
                return "policy '" + whole + "': only bss has a second number, from 1 on";
        }
    }
    if (setup.paths == 0 || setup.paths > sched::kMaxRails)
        return "policy '" + whole + "': the number of paths must be in 1.." + std::to_string(sched::kMaxRails);
    if (const auto bad = sched::defect(setup.config, setup.paths)) return "policy '" + whole + "': " + *bad;
    return setup;
}

}  // namespace coop::sim
