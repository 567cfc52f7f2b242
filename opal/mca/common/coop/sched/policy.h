// SPDX-License-Identifier: BSD-3-Clause
//
// The table of scheduling policies. (Dissertation: 4.1.2 for binding, round robin, windows and striping; 6.2
// for EPC; 7.1.2 for adaptive striping; 8.2.1 for BSS.)
//
// Threading: constants and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coop::sched {

enum class Policy : std::uint8_t {
    kBinding,
    kRoundRobin,
    kWindowRoundRobin,
    kWeightedRoundRobin,
    kShortestQueue,
    kEvenStriping,
    kWeightedStriping,
    kAdaptiveStriping,
    kBss,
    kEpc,
};
constexpr std::size_t kPolicies = 10;

enum class PolicyKind : std::uint8_t {
    kMultiplexes,  // sends each message whole over one rail
    kStripes,
    kDelegates,  // chooses another policy for each message
};

struct PolicyRow {
    Policy policy;
    const char* name;  // value of a parameter; must not change
    PolicyKind kind;
    bool measures;  // uses measured weights (feedback.h)
    const char* help;
};

constexpr std::array<PolicyRow, kPolicies> kPolicyRows = {{
    {Policy::kBinding, "binding", PolicyKind::kMultiplexes, false, "Everything goes over one rail."},
    {Policy::kRoundRobin, "round_robin", PolicyKind::kMultiplexes, false,
     "One message after the other on each rail in turn."},
    {Policy::kWindowRoundRobin, "window_round_robin", PolicyKind::kMultiplexes, false,
     "W messages on a rail, then the next rail."},
    {Policy::kWeightedRoundRobin, "weighted_round_robin", PolicyKind::kMultiplexes, false,
     "In turn, heavier rails more often."},
    {Policy::kShortestQueue, "shortest_queue", PolicyKind::kMultiplexes, false,
     "The rail with the fewest bytes under way; in turn among equal ones."},
    {Policy::kEvenStriping, "even_striping", PolicyKind::kStripes, false, "Stripes of the same size on all rails."},
    {Policy::kWeightedStriping, "weighted_striping", PolicyKind::kStripes, false,
     "Stripes in proportion to fixed weights."},
    {Policy::kAdaptiveStriping, "adaptive_striping", PolicyKind::kStripes, true,
     "Stripes in proportion to what the rails have lately delivered."},
    {Policy::kBss, "bss", PolicyKind::kStripes, true, "Adaptive, over the few rails of the most weight."},
    {Policy::kEpc, "epc", PolicyKind::kDelegates, false,
     "Blocking and collective calls stripe, nonblocking ones take turns."},
}};

constexpr const PolicyRow& row_of(Policy policy) noexcept { return kPolicyRows[static_cast<std::size_t>(policy)]; }
constexpr const char* name(Policy policy) noexcept { return row_of(policy).name; }
constexpr bool multiplexes(Policy policy) noexcept { return row_of(policy).kind == PolicyKind::kMultiplexes; }
constexpr bool stripes(Policy policy) noexcept { return row_of(policy).kind == PolicyKind::kStripes; }

constexpr bool rows_are_in_order() noexcept {
    for (std::size_t i = 0; i < kPolicies; ++i)
        if (static_cast<std::size_t>(kPolicyRows[i].policy) != i) return false;
    return true;
}
static_assert(rows_are_in_order(), "kPolicyRows lists the policies in the order of the enumeration");

// The names, as choices of a parameter (base/param.h).
constexpr std::array<const char*, kPolicies> kPolicyNames = [] {
    std::array<const char*, kPolicies> names{};
    for (std::size_t i = 0; i < kPolicies; ++i) names[i] = kPolicyRows[i].name;
    return names;
}();

constexpr std::optional<Policy> policy_named(std::string_view word) noexcept {
    for (const PolicyRow& row : kPolicyRows)
        if (word == row.name) return row.policy;
    return std::nullopt;
}

}  // namespace coop::sched
