// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

#include <iterator>

#include "coop/path/planes.h"
#include "coop/path/port.h"
#include "coop/sched/ring.h"

namespace coop::ib {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

constexpr const char* kForks[] = {"auto", "on", "off"};

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
    {.name = "pkey", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = UINT16_MAX,
     .help = "P_Key of the partition of InfiniBand to use, such as 0x8001. Its lower 15 bits name the partition; each port takes its key of "
             "it, a full member's before a limited one's. Ports without one are not used. 0: the port's first key of a full member (usually "
             "0xffff), else its first key.",
     .level = 4},
    {.name = "gid_index", .type = ParamType::kInt, .default_value = -1, .min = -1, .max = UINT8_MAX,
     .help = "Place in the GID table of each port of the GID to use; ports without a GID there are not used. -1: on InfiniBand 0; on "
             "Ethernet the first of RoCE v2 with an IPv4 address, else of RoCE v2, else of RoCE v1.",
     .level = 4},
    {.name = "service_level", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = 15,
     .help = "Service level (SL) of all packets; on Ethernet their priority (PCP).", .level = 4},
    {.name = "traffic_class", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = UINT8_MAX,
     .help = "Traffic class of packets with a global routing header: all of RoCE (v2: the IP header's DSCP times 4, and ECN), and those of "
             "InfiniBand where a port or a router needs that header.",
     .level = 4},
    {.name = "allow_different_subnets", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = 1,
     .help = "1: connects ports of InfiniBand subnets with different prefixes, if two processes have no subnet in common. The routers "
             "between them have to forward by the LID of the destination port (floating LIDs); both processes need this set.",
     .level = 5},
    {.name = "pairing", .type = ParamType::kString, .default_text = "rate",
     .help = "Which ports of two processes are paired, of those that reach each other. rate: those of the same rate, and of these the ones "
             "with the same place on their nodes. position: those with the same place, whatever their rates. A list such as "
             "mlx5_0=1,mlx5_1:2=2 gives HCAs and ports the number of their plane: those of one plane are paired first, the others by rate.",
     .level = 4},
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
     .help = "Share of the newest measurement in the weight of a rail, if two of them show a change (four, if they are short); "
             "a sixteenth of it, if they show none.",
     .level = 5},
    {.name = "bss_paths", .type = ParamType::kInt, .unit = "paths", .default_value = 0, .min = 0, .max = sched::kMaxRails,
     .help = "n_paths of bss: rails among which it chooses; 0: all.", .level = 5},
    {.name = "bss_batch", .type = ParamType::kInt, .unit = "rails", .default_value = 0, .min = 0, .max = sched::kMaxRails,
     .help = "n_batch of bss: rails that share one message; 0: four, or all of fewer.", .level = 5},
    {.name = "receives", .type = ParamType::kInt, .unit = "buffers", .default_value = 256, .min = 16, .max = kMostReceives,
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
     .help = "Size of a slot: the longest message that goes by a ring, with up to 64 bytes of headers. Where writes may land out of "
             "order (ring_in_order), a slot is no longer than the MTU.",
     .level = 5},
    {.name = "ring_in_order", .type = ParamType::kChoice, .default_value = static_cast<std::int64_t>(RingInOrder::kAuto),
     .choices = kRingInOrderNames,
     .help = "Whether the HCAs of this process put the bytes of an RDMA write into memory in ascending order. A ring takes messages of "
             "several packets only if they do. auto: as the driver says (ibv_query_qp_data_in_order); one that says nothing counts as no. "
             "yes: they do; if that is wrong, messages arrive damaged. no: a slot holds one packet.",
     .level = 5},
    {.name = "timeout", .type = ParamType::kInt, .default_value = 20, .min = 1, .max = 31,
     .help = "Acknowledgement timer of a queue pair: 4.096 microseconds times 2 to the power of it. With 20 and 7 retries a rail that does "
             "not answer counts as broken after about 34 seconds, as with btl_openib.", .level = 5},
    {.name = "retry_count", .type = ParamType::kInt, .unit = "retries", .default_value = 7, .min = 0, .max = 7,
     .help = "Retries of a queue pair when that timer runs out, before its rail counts as broken. On Soft-RoCE at most 6, because it "
             "takes 7 for ever.", .level = 5},
    {.name = "min_rnr_timer", .type = ParamType::kInt, .default_value = 6, .min = 1, .max = 31,
     .help = "Code of the time after which a peer that found no receive buffer tries again (6: 80 microseconds).", .level = 6},
    {.name = "connect_timeout", .type = ParamType::kInt, .unit = "seconds", .default_value = 30, .min = 1, .max = 3600,
     .help = "A peer that has not answered for that long is reported, once. The process goes on waiting for it.", .level = 5},
    {.name = "probe_timeout", .type = ParamType::kInt, .unit = "milliseconds", .default_value = 500, .min = 1, .max = 60'000,
     .help = "Before a rail is used, a read over it has to come back. Once one rail to a peer has answered, the others have that much "
             "time left; a rail that stays silent is left out.",
     .level = 5},
    {.name = "fork", .type = ParamType::kChoice, .default_value = static_cast<std::int64_t>(Fork::kAuto), .choices = kForks,
     .help = "Whether the application may call fork() although memory is registered. auto: libibverbs is asked to keep that memory from "
             "children (ibv_fork_init), where the kernel does not copy it for them; if it cannot, Open MPI warns of the first fork(). on: "
             "likewise, and if it cannot, coopib is not used. off: it is not asked, and nothing is said.",
     .level = 5},
    {.name = "report", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = 1,
     .help = "1: each process prints at its end what its rails to each peer carried.", .level = 3},
};

constexpr ParamPlace<Config> kPlaces[] = {
    {nullptr, &Config::if_include},
    {nullptr, &Config::if_exclude},
    {&Config::num_rails, nullptr},
    {&Config::qps_per_port, nullptr},
    {&Config::max_paths, nullptr},
    {&Config::pkey, nullptr},
    {&Config::gid_index, nullptr},
    {&Config::service_level, nullptr},
    {&Config::traffic_class, nullptr},
    {&Config::allow_different_subnets, nullptr},
    {nullptr, &Config::pairing},
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
    {&Config::ring_in_order, &Config::ring_in_order_name},
    {&Config::timeout, nullptr},
    {&Config::retry_count, nullptr},
    {&Config::min_rnr_timer, nullptr},
    {&Config::connect_timeout, nullptr},
    {&Config::probe_timeout, nullptr},
    {&Config::fork, &Config::fork_name},
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
    if (const auto pkey = static_cast<std::uint16_t>(config.pkey); pkey != 0 && path::partition_of(pkey) == 0)
        return ParamError{"pkey", path::pkey_text(pkey), "0, or 16 bits of which the lower 15 are not 0"};
    const auto planes = path::parse_planes(or_empty(config.pairing));
    if (const auto* allowed = std::get_if<std::string>(&planes)) return ParamError{"pairing", or_empty(config.pairing), *allowed};
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
