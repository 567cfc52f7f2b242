// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

#include <iterator>

#include "coop/path/port.h"
#include "coop/sched/ring.h"

namespace coop::ib {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

constexpr ParamRow kParams[] = {
    {.name = "if_include", .type = ParamType::kString,
     .help = "HCAs and ports to use: a list of names such as mlx4_0 or mlx4_0:1, separated by commas. Empty: all with an active port.",
     .level = 2},
    {.name = "if_exclude", .type = ParamType::kString,
     .help = "HCAs and ports not to use, likewise. Not together with if_include.", .level = 2},
    {.name = "num_rails", .type = ParamType::kInt, .unit = "rails", .default_value = 0, .min = 0, .max = sched::kMaxRails,
     .help = "Most rails of the channel between two processes; 0: all that there are.", .level = 2},
    {.name = "qps_per_port", .type = ParamType::kInt, .unit = "queue pairs", .default_value = 1, .min = 1, .max = 8,
     .help = "Queue pairs on each path between two ports; each is a rail.", .level = 4},
    {.name = "max_paths", .type = ParamType::kInt, .unit = "paths", .default_value = 0, .min = 0, .max = 128,
     .help = "Most LMC paths between two ports; 0: all that both have LIDs for.", .level = 4},
    {.name = "small_policy", .type = ParamType::kChoice,
     .default_value = static_cast<std::int64_t>(sched::Policy::kShortestQueue), .choices = sched::kPolicyNames,
     .help = "How messages below striping_threshold are spread over the rails: binding, round_robin, window_round_robin, "
             "weighted_round_robin or shortest_queue.",
     .level = 3},
    {.name = "large_policy", .type = ParamType::kChoice, .default_value = static_cast<std::int64_t>(sched::Policy::kEpc),
     .choices = sched::kPolicyNames,
     .help = "How RDMA operations from striping_threshold on are spread over the rails. binding: one rail; round_robin, "
             "window_round_robin, weighted_round_robin: whole messages in turn; shortest_queue: whole messages, where least is "
             "under way; even_striping, weighted_striping: pieces on all rails; "
             "adaptive_striping: pieces as the rails have lately delivered; bss: adaptive, over the few best; epc: by the kind of call.",
     .level = 3},
    {.name = "striping_threshold", .type = ParamType::kSize, .unit = "bytes", .default_value = 16 * kKiB, .min = 1, .max = kGiB,
     .help = "Messages of that size and larger go by large_policy.", .level = 4},
    {.name = "min_stripe", .type = ParamType::kSize, .unit = "bytes", .default_value = 8 * kKiB, .min = 1, .max = kGiB,
     .help = "Smallest piece into which a message is cut.", .level = 4},
    {.name = "window", .type = ParamType::kInt, .unit = "messages", .default_value = 16, .min = 1, .max = 1 << 20,
     .help = "W of window_round_robin: messages on one rail before the next one has its turn.", .level = 5},
    {.name = "weights", .type = ParamType::kString,
     .help = "Weights of the rails for weighted_round_robin and weighted_striping, and those that adaptive policies begin with: "
             "one number for each rail, separated by commas. Empty: their nominal bandwidths.",
     .level = 4},
    {.name = "alpha", .type = ParamType::kInt, .unit = "percent", .default_value = 50, .min = 1, .max = 100,
     .help = "Share of the newest measurement in the weight of a rail, if two of them show a change; else a sixteenth of it.", .level = 5},
    {.name = "bss_paths", .type = ParamType::kInt, .unit = "paths", .default_value = 0, .min = 0, .max = sched::kMaxRails,
     .help = "n_paths of bss: rails among which it chooses; 0: all.", .level = 5},
    {.name = "bss_batch", .type = ParamType::kInt, .unit = "rails", .default_value = 0, .min = 0, .max = sched::kMaxRails,
     .help = "n_batch of bss: rails that share one message; 0: four, or all of fewer.", .level = 5},
    {.name = "receives", .type = ParamType::kInt, .unit = "buffers", .default_value = 256, .min = 16, .max = 16384,
     .help = "Receive buffers of each HCA, shared by all peers; where the HCA has no shared receive queue, of each queue pair (at most 64).",
     .level = 5},
    {.name = "send_depth", .type = ParamType::kInt, .unit = "requests", .default_value = 128, .min = 4, .max = 16384,
     .help = "Work requests that may be under way on a rail at a time; more wait.", .level = 5},
    {.name = "max_reads", .type = ParamType::kInt, .unit = "reads", .default_value = 0, .min = 0, .max = path::kMostReads,
     .help = "Most RDMA reads and atomic operations that may be under way on a queue pair at a time, from this process or from its peer; "
             "more wait. 0: as many as the HCAs allow.",
     .level = 5},
    {.name = "ring_threshold", .type = ParamType::kInt, .unit = "messages", .default_value = 16, .min = 0, .max = 1 << 20,
     .help = "A peer that has sent so many messages is offered a ring: memory that it writes short messages into, and that is polled. "
             "0: no rings.",
     .level = 4},
    {.name = "ring_peers", .type = ParamType::kInt, .unit = "peers", .default_value = 16, .min = 0, .max = sched::kMostRings,
     .help = "Most rings of a process, each for one peer: all are polled all the time. 0: no rings.", .level = 4},
    {.name = "ring_slots", .type = ParamType::kInt, .unit = "slots", .default_value = 32, .min = sched::kLeastRingSlots,
     .max = sched::kMostRingSlots,
     .help = "Slots of a ring: messages that a peer may have there before it has to send them otherwise.", .level = 5},
    {.name = "ring_bytes", .type = ParamType::kSize, .unit = "bytes", .default_value = 12 * kKiB + 64, .min = sched::kLeastSlotBytes,
     .max = sched::kMostSlotBytes,
     .help = "Size of a slot: the longest message that goes by a ring, with up to 64 bytes of headers.", .level = 5},
    {.name = "timeout", .type = ParamType::kInt, .default_value = 16, .min = 1, .max = 31,
     .help = "Acknowledgement timer of a queue pair: 4.096 microseconds times 2 to the power of it.", .level = 5},
    {.name = "retry_count", .type = ParamType::kInt, .unit = "retries", .default_value = 6, .min = 0, .max = 7,
     .help = "Retries of a queue pair when that timer runs out, before its rail counts as broken. Soft-RoCE takes 7 for ever.", .level = 5},
    {.name = "min_rnr_timer", .type = ParamType::kInt, .default_value = 6, .min = 1, .max = 31,
     .help = "Code of the time after which a peer that found no receive buffer tries again (6: 80 microseconds).", .level = 6},
    {.name = "connect_timeout", .type = ParamType::kInt, .unit = "seconds", .default_value = 30, .min = 1, .max = 3600,
     .help = "After that long without an answer a peer cannot be connected.", .level = 5},
    {.name = "report", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = 1,
     .help = "1: each process prints at its end what its rails to each peer carried.", .level = 3},
};

constexpr ParamPlace<Config> kPlaces[] = {
    {nullptr, &Config::if_include},
    {nullptr, &Config::if_exclude},
    {&Config::num_rails, nullptr},
    {&Config::qps_per_port, nullptr},
    {&Config::max_paths, nullptr},
    {&Config::small_policy, &Config::small_policy_name},
    {&Config::large_policy, &Config::large_policy_name},
    {&Config::striping_threshold, nullptr},
    {&Config::min_stripe, nullptr},
    {&Config::window, nullptr},
    {nullptr, &Config::weights},
    {&Config::alpha, nullptr},
    {&Config::bss_paths, nullptr},
    {&Config::bss_batch, nullptr},
    {&Config::receives, nullptr},
    {&Config::send_depth, nullptr},
    {&Config::max_reads, nullptr},
    {&Config::ring_threshold, nullptr},
    {&Config::ring_peers, nullptr},
    {&Config::ring_slots, nullptr},
    {&Config::ring_bytes, nullptr},
    {&Config::timeout, nullptr},
    {&Config::retry_count, nullptr},
    {&Config::min_rnr_timer, nullptr},
    {&Config::connect_timeout, nullptr},
    {&Config::report, nullptr},
};
constexpr ParamTable<Config> kTable(kParams, kPlaces);
static_assert(kTable.is_valid());

const char* or_empty(const char* text) { return text ? text : ""; }

}  // namespace

const ParamTable<Config>& param_table() noexcept { return kTable; }

std::optional<ParamError> check(Config& config) {
    if (auto error = kTable.check(config)) return error;
    if (*or_empty(config.if_include) && *or_empty(config.if_exclude))
        return ParamError{"if_exclude", config.if_exclude, "empty where if_include is given"};
    return std::nullopt;
}

namespace {

std::string range_up_to(std::size_t most, const char* what) { return "0.." + std::to_string(most) + " (" + what + ")"; }

std::optional<ParamError> small_policy_error(const Config& config, const sched::SchedConfig& sched) {
    if (sched::row_of(sched.small_policy).kind == sched::PolicyKind::kMultiplexes) return std::nullopt;
    std::string allowed;
    for (const sched::PolicyRow& row : sched::kPolicyRows)
        if (row.kind == sched::PolicyKind::kMultiplexes) allowed.append(allowed.empty() ? "" : ", ").append(row.name);
    return ParamError{"small_policy", or_empty(config.small_policy_name), allowed};
}

// How many rails there are is known with a peer only, but no more than were asked for.
std::optional<ParamError> more_than_num_rails(const Config& config, const sched::SchedConfig& sched) {
    if (config.num_rails == 0) return std::nullopt;
    const auto most = static_cast<std::size_t>(config.num_rails);
    const std::string allowed = range_up_to(most, "btl_coopib_num_rails");
    if (sched.weights.count > most) return ParamError{"weights", or_empty(config.weights), "at most " + std::to_string(most) + " weights (btl_coopib_num_rails)"};
    if (sched.bss_paths > most) return ParamError{"bss_paths", std::to_string(sched.bss_paths), allowed};
    if (sched.bss_batch > most) return ParamError{"bss_batch", std::to_string(sched.bss_batch), allowed};
    return std::nullopt;
}

constexpr const char* kAllowedWeights = "whole numbers 1..1000000, one for each rail, with commas between";
static_assert(sched::kMaxWeight == 1'000'000);

}  // namespace

std::optional<ParamError> make_sched_config(const Config& config, sched::SchedConfig& sched) {
    sched.small_policy = static_cast<sched::Policy>(config.small_policy);
    sched.large_policy = static_cast<sched::Policy>(config.large_policy);
    sched.striping_threshold = static_cast<std::uint64_t>(config.striping_threshold);
    sched.min_stripe = static_cast<std::uint64_t>(config.min_stripe);
    sched.window = static_cast<std::uint32_t>(config.window);
    sched.alpha_percent = static_cast<std::uint32_t>(config.alpha);
    sched.bss_paths = static_cast<std::uint32_t>(config.bss_paths);
    sched.bss_batch = static_cast<std::uint32_t>(config.bss_batch);
    auto weights = sched::parse_weights(or_empty(config.weights));
    if (std::holds_alternative<std::string>(weights)) return ParamError{"weights", or_empty(config.weights), kAllowedWeights};
    sched.weights = std::get<sched::Weights>(weights);
    if (auto wrong = small_policy_error(config, sched)) return wrong;
    if (auto wrong = more_than_num_rails(config, sched)) return wrong;
    if (config.bss_paths != 0 && config.bss_batch > config.bss_paths)
        return ParamError{"bss_batch", std::to_string(config.bss_batch), range_up_to(static_cast<std::size_t>(config.bss_paths), "btl_coopib_bss_paths")};
    if (auto wrong = sched::defect(sched)) return ParamError{"large_policy", or_empty(config.large_policy_name), *wrong};
    return std::nullopt;
}

std::optional<ParamError> check_rails(const Config& config, const sched::SchedConfig& sched, std::size_t rails) {
    const std::string count = std::to_string(rails);
    if (sched.weights.count != 0 && sched.weights.count != rails)
        return ParamError{"weights", or_empty(config.weights), count + (rails == 1 ? " weight" : " weights") + ", one for each rail"};
    if (sched.bss_paths > rails) return ParamError{"bss_paths", std::to_string(sched.bss_paths), range_up_to(rails, "the rails that there are")};
    if (sched.bss_batch > rails) return ParamError{"bss_batch", std::to_string(sched.bss_batch), range_up_to(rails, "the rails that there are")};
    if (auto wrong = sched::defect(sched, rails)) return ParamError{"large_policy", or_empty(config.large_policy_name), *wrong};
    return std::nullopt;
}

}  // namespace coop::ib
