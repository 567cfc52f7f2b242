// SPDX-License-Identifier: BSD-3-Clause
//
// The settings of the schedulers and their validation.
//
// Units: bytes, messages, percent. Threading: plain values and pure functions. Errors: an error message names
// the setting, its value and the allowed range.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "coop/base/export.h"
#include "coop/sched/policy.h"
#include "coop/sched/rail_set.h"

namespace coop::sched {

constexpr std::uint32_t kMaxWeight = 1'000'000;

// One weight per rail, in the order of the rails, or none at all.
struct Weights {
    std::array<std::uint32_t, kMaxRails> of{};  // the first `count` are valid: 1..kMaxWeight
    std::size_t count = 0;                      // 0: use the nominal bandwidths of the rails
};

struct SchedConfig {
    Policy small_policy = Policy::kShortestQueue;  // below striping_threshold; must multiplex
    Policy large_policy = Policy::kEpc;            // from striping_threshold on
    std::uint64_t striping_threshold = 16 * 1024;  // 6.2.3
    std::uint64_t min_stripe = 0;      // rounded up to a multiple of the alignment; 0: shortest_stripe() of the rails
    bool compare_whole = true;         // operations that have taken longer in stripes go whole (trials.h)
    std::uint32_t alignment = 0;       // of all stripes but the last; a power of two; 0: the largest MTU of the rails
    std::uint32_t window = 16;         // W of window_round_robin
    Weights weights;                   // for weighted_*; adaptive policies start with them
    std::uint32_t alpha_percent = 50;  // share of the newest measurement in a weight (equations 7.4 and 8.3)
    std::uint32_t probe_every = 8;     // striped messages that may skip a rail before it is measured again; 0: never
                                       // measured again (as in the paper)

    // A round (feedback.h) that took no longer than this measures latency, not bandwidth; 0: every round
    // measures bandwidth (as in the paper).
    std::uint64_t latency_ns = 4'000;
    // Completions are occasionally found this late because the process is not scheduled. So a change must show
    // in more rounds if a round was shorter; 0: two rounds always suffice.
    std::uint64_t pause_ns = 500'000;

    bool count_backlog = true;  // adaptive striping and BSS count the bytes queued on a rail as a part of its stripe

    std::uint32_t bss_paths = 0;  // n_paths; 0: all rails
    std::uint32_t bss_batch = 0;  // n_batch; 0: n_paths, but at most kDefaultBatch

    Policy epc_striping = Policy::kAdaptiveStriping;  // EPC's policy for blocking and collective calls
    Policy epc_multiplexing = Policy::kRoundRobin;    // and for nonblocking calls
    std::uint64_t epc_always_stripe =
        128 * 1024;  // nonblocking calls stripe, too, from this size on; 0: never (as in the paper)
};

// The shortest stripe that is worth its request: what the fastest rail carries in the time that a request and its
// completion take. 0: the rate is unknown.
constexpr std::uint64_t kRequestNs = 1'000;
constexpr std::uint64_t kLeastStripe = 4 * 1024, kUnknownStripe = 8 * 1024, kMostStripe = 64 * 1024;
constexpr std::uint64_t shortest_stripe(std::uint64_t fastest_bytes_per_s) noexcept {
    if (fastest_bytes_per_s == 0) return kUnknownStripe;
    return std::clamp(fastest_bytes_per_s / 1'000 * kRequestNs / 1'000'000, kLeastStripe, kMostStripe);
}

// More than four stripes cost more than they gain (7.2.2).
constexpr std::uint32_t kDefaultBatch = 4;

// Returns an error message if the settings are invalid, in general or for this number of rails.
COOP_EXPORT std::optional<std::string> defect(const SchedConfig& config);
COOP_EXPORT std::optional<std::string> defect(const SchedConfig& config, std::size_t rails);

// n_paths and n_batch of valid settings.
constexpr std::uint32_t bss_paths(const SchedConfig& config, std::size_t rails) noexcept {
    return config.bss_paths != 0 ? config.bss_paths : static_cast<std::uint32_t>(rails);
}
constexpr std::uint32_t bss_batch(const SchedConfig& config, std::size_t rails) noexcept {
    if (config.bss_batch != 0) return config.bss_batch;
    const std::uint32_t paths = bss_paths(config, rails);
    return paths < kDefaultBatch ? paths : kDefaultBatch;
}

// Parses "62,38"; an empty text gives no weights. On failure returns an error message.
COOP_EXPORT std::variant<Weights, std::string> parse_weights(std::string_view text);

}  // namespace coop::sched
