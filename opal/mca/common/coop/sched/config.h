// SPDX-License-Identifier: BSD-3-Clause
//
// The settings of the schedulers, and what may be wrong with them.
//
// Units: bytes, messages, percent. Threading: plain values and pure functions.
// Errors: a sentence that names the setting, its value and what is allowed.
#pragma once

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

// One weight for each rail, in the order of the rails; or none at all.
struct Weights {
    std::array<std::uint32_t, kMaxRails> of{};  // the first `count` are valid: 1..kMaxWeight
    std::size_t count = 0;                      // 0: the nominal bandwidths of the rails
};

struct SchedConfig {
    Policy small_policy = Policy::kShortestQueue;  // below striping_threshold: one that multiplexes
    Policy large_policy = Policy::kEpc;         // from there on
    std::uint64_t striping_threshold = 16 * 1024;  // 6.2.3
    std::uint64_t min_stripe = 8 * 1024;  // rounded up to whole alignments
    std::uint32_t alignment = 0;  // of all stripes but the last; a power of two; 0: the largest MTU of the rails
    std::uint32_t window = 16;    // W of window_round_robin
    Weights weights;              // of weighted_*; adaptive ones start with them
    std::uint32_t alpha_percent = 50;  // of the newest measurement in a weight (equations 7.4 and 8.3)
    std::uint32_t probe_every = 8;  // striped messages that may pass a rail by before it is measured again; 0: never (as in the paper)

    // A round (feedback.h) that took no longer than that shows latency and no bandwidth; 0: every round counts (as in the paper).
    std::uint64_t latency_ns = 4'000;
    // Completions may be found that late now and then, because the process does not run. In rounds that took less a change has to show
    // more often; 0: never more than twice.
    std::uint64_t pause_ns = 500'000;

    bool count_backlog = true;  // adaptive striping and BSS take what is queued on a rail as a part of its stripe

    std::uint32_t bss_paths = 0;  // n_paths; 0: all rails
    std::uint32_t bss_batch = 0;  // n_batch; 0: n_paths, but at most kDefaultBatch

    Policy epc_striping = Policy::kAdaptiveStriping;  // what EPC does with blocking and collective calls
    Policy epc_multiplexing = Policy::kRoundRobin;    // and with nonblocking ones
    std::uint64_t epc_always_stripe = 128 * 1024;     // nonblocking too, from this size on; 0: never (as in the paper)
};

// More than four stripes cost more than they bring (7.2.2).
constexpr std::uint32_t kDefaultBatch = 4;

// What is wrong, by itself or with this number of rails.
COOP_EXPORT std::optional<std::string> defect(const SchedConfig& config);
COOP_EXPORT std::optional<std::string> defect(const SchedConfig& config, std::size_t rails);

// n_paths and n_batch, once they are known to fit.
constexpr std::uint32_t bss_paths(const SchedConfig& config, std::size_t rails) noexcept {
    return config.bss_paths != 0 ? config.bss_paths : static_cast<std::uint32_t>(rails);
}
constexpr std::uint32_t bss_batch(const SchedConfig& config, std::size_t rails) noexcept {
    if (config.bss_batch != 0) return config.bss_batch;
    const std::uint32_t paths = bss_paths(config, rails);
    return paths < kDefaultBatch ? paths : kDefaultBatch;
}

// "62,38"; nothing stands for no weights. The string says what is wrong.
COOP_EXPORT std::variant<Weights, std::string> parse_weights(std::string_view text);

}  // namespace coop::sched
