// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

#include <iterator>

#include "coop/path/alternates.h"
#include "coop/path/planes.h"
#include "coop/path/port.h"
#include "coop/sched/ring.h"

namespace coop::ib {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

constexpr const char* kForks[] = {"auto", "on", "off"};

constexpr ParamRow kParams[] = {
    {.name = "if_include",
     .type = ParamType::kString,
     .help = "HCAs and ports to use: names such as mlx4_0 or mlx4_0:1, separated by commas. Empty: all with an active "
             "port.",
     .level = 2},
    {.name = "if_exclude",
     .type = ParamType::kString,
     .help = "HCAs and ports not to use, in the same form. Cannot be combined with if_include.",
     .level = 2},
    {.name = "num_rails",
     .type = ParamType::kInt,
     .unit = "rails",
     .default_value = 0,
     .min = 0,
     .max = sched::kMaxRails,
     .help = "Largest number of rails between two processes; 0: all, up to 32.",
     .level = 2},
    {.name = "qps_per_port",
     .type = ParamType::kInt,
     .unit = "rails",
     .default_value = 1,
     .min = 1,
     .max = 8,
     .help = "Rails on each path between two ports.",
     .level = 4},
    {.name = "max_paths",
     .type = ParamType::kInt,
     .unit = "paths",
     .default_value = 0,
     .min = 0,
     .max = 128,
     .help = "Largest number of LMC paths between two ports; 0: as many as both ports have LIDs for.",
     .level = 4},
    {.name = "pkey",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = UINT16_MAX,
     .help = "P_Key of the InfiniBand partition to use, such as 0x8001. The lower 15 bits name the partition; each "
             "port uses its own key of that partition, preferably a full member's. Ports without such a key are not "
             "used. 0: the first full-member key of the port (usually 0xffff), else its first key.",
     .level = 4},
    {.name = "gid_index",
     .type = ParamType::kInt,
     .default_value = -1,
     .min = -1,
     .max = UINT8_MAX,
     .help = "Index of the GID to use in the GID table of each port; ports without a GID there are not used. -1: on "
             "InfiniBand 0; on Ethernet the first RoCE v2 GID with an IPv4 address; if there is none, another RoCE v2 "
             "GID, or else a RoCE v1 GID.",
     .level = 4},
    {.name = "service_level",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 15,
     .help = "Service level (SL) of all packets; on Ethernet their priority (PCP).",
     .level = 4},
    {.name = "traffic_class",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = UINT8_MAX,
     .help = "Traffic class of packets with a global routing header: all RoCE packets (v2: DSCP of the IP header times "
             "4, and ECN), and InfiniBand packets if a port or router requires that header.",
     .level = 4},
    {.name = "allow_different_subnets",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 1,
     .help = "1: connect ports of InfiniBand subnets with different prefixes if two processes have no subnet in "
             "common. The routers between them must forward by the LID of the destination port (floating LIDs). Both "
             "processes must set this.",
     .level = 5},
    {.name = "pairing",
     .type = ParamType::kString,
     .default_text = "rate",
     .help = "How ports of two processes that reach each other are paired. rate: ports of the same rate, and among "
             "these the ports at the same position on their nodes. position: ports at the same position, whatever "
             "their rates. A list such as mlx5_0=1,mlx5_1:2=2 assigns HCAs and ports to planes: ports of one plane are "
             "paired first, the others by rate.",
     .level = 4},
    {.name = "small_policy",
     .type = ParamType::kChoice,
     .default_value = static_cast<std::int64_t>(sched::Policy::kShortestQueue),
     .choices = sched::kPolicyNames,
     .help = "Policy that selects the rails of messages below striping_threshold: binding, round_robin, "
             "window_round_robin, weighted_round_robin or shortest_queue.",
     .level = 3},
    {.name = "large_policy",
     .type = ParamType::kChoice,
     .default_value = static_cast<std::int64_t>(sched::Policy::kEpc),
     .choices = sched::kPolicyNames,
     .help = "Policy that selects the rails of RDMA operations from striping_threshold on. binding: one rail; "
             "round_robin, window_round_robin, weighted_round_robin: whole messages in turn; shortest_queue: whole "
             "messages on the rail with the fewest bytes in flight; even_striping, weighted_striping: stripes on all "
             "rails; adaptive_striping: stripes in proportion to the measured rates; bss: adaptive, on the best rails "
             "only; epc: by the kind of MPI call.",
     .level = 3},
    {.name = "striping_threshold",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 0,
     .min = 0,
     .max = kGiB,
     .help =
         "Smallest message that uses large_policy. 0: 16 KiB, and with epc, messages of a length that has taken longer "
         "in stripes go whole.",
     .level = 4},
    {.name = "min_stripe",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 0,
     .min = 0,
     .max = kGiB,
     .help =
         "Smallest stripe into which a message is divided. 0: what the fastest rail carries in a microsecond, 4 to 64 "
         "KiB.",
     .level = 4},
    {.name = "window",
     .type = ParamType::kInt,
     .unit = "messages",
     .default_value = 16,
     .min = 1,
     .max = 1 << 20,
     .help = "W of window_round_robin: consecutive messages on one rail.",
     .level = 5},
    {.name = "weights",
     .type = ParamType::kString,
     .help = "Weights of the rails for weighted_round_robin and weighted_striping, and initial weights of the adaptive "
             "policies: one number for each rail, separated by commas. Empty: the nominal bandwidths; bss then begins "
             "with equal weights.",
     .level = 4},
    {.name = "alpha",
     .type = ParamType::kInt,
     .unit = "percent",
     .default_value = 50,
     .min = 1,
     .max = 100,
     .help = "Share of the newest measurement in the weight of a rail after two consecutive measurements have shown a "
             "change (four, if they are short); without a change, a sixteenth of it.",
     .level = 5},
    {.name = "bss_paths",
     .type = ParamType::kInt,
     .unit = "paths",
     .default_value = 0,
     .min = 0,
     .max = sched::kMaxRails,
     .help = "n_paths of bss: number of rails among which it chooses; 0: all.",
     .level = 5},
    {.name = "bss_batch",
     .type = ParamType::kInt,
     .unit = "rails",
     .default_value = 0,
     .min = 0,
     .max = sched::kMaxRails,
     .help = "n_batch of bss: number of rails that share one message; 0: four, or all if there are fewer.",
     .level = 5},
    {.name = "interleave",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 1,
     .help = "1: each rail has a second queue pair, for RDMA reads, so that reads and everything else do not queue "
             "behind one another. Both processes must want it. 0: one queue pair on each rail.",
     .level = 5},
    {.name = "receives",
     .type = ParamType::kInt,
     .unit = "buffers",
     .default_value = 256,
     .min = 16,
     .max = kMostReceives,
     .help = "Receive buffers of each HCA, shared by all peers. If the HCA has no shared receive queue: of each queue "
             "pair (at most 64).",
     .level = 5},
    {.name = "send_depth",
     .type = ParamType::kInt,
     .unit = "requests",
     .default_value = 128,
     .min = 4,
     .max = 16384,
     .help = "Work requests that may be in flight on a rail at a time; further ones wait.",
     .level = 5},
    {.name = "max_reads",
     .type = ParamType::kInt,
     .unit = "reads",
     .default_value = 0,
     .min = 0,
     .max = path::kMaxReads,
     .help = "Largest number of RDMA reads and atomic operations in flight on a queue pair in one direction; further "
             "ones wait. 0: as many as the HCAs allow.",
     .level = 5},
    {.name = "ring_threshold",
     .type = ParamType::kInt,
     .unit = "messages",
     .default_value = 16,
     .min = 0,
     .max = 1 << 20,
     .help = "Number of messages after which a peer is offered a ring: memory into which it writes short messages by "
             "RDMA, and which this process polls. 0: no rings.",
     .level = 4},
    {.name = "ring_peers",
     .type = ParamType::kInt,
     .unit = "peers",
     .default_value = 16,
     .min = 0,
     .max = sched::kMaxRings,
     .help = "Largest number of rings of a process, each for one peer; all are polled continuously. 0: no rings.",
     .level = 4},
    {.name = "ring_slots",
     .type = ParamType::kInt,
     .unit = "slots",
     .default_value = 64,
     .min = sched::kMinRingSlots,
     .max = sched::kMaxRingSlots,
     .help = "Slots of a ring: messages that a peer can write before it must use ordinary sends. A message that is "
             "longer than a slot (ring_slot_bytes) takes several.",
     .level = 5},
    {.name = "ring_bytes",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 64 * kKiB + 192,
     .min = sched::kMinSlotBytes,
     .max = sched::kMaxSlotBytes,
     .help = "Longest message that uses a ring, with 24 bytes of header and tail, and up to 7 bytes of padding. No "
             "longer than max_send_size if both processes have failover on, or than the MTU if writes may land out of "
             "order (ring_in_order).",
     .level = 5},
    {.name = "ring_slot_bytes",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 8 * kKiB + 192,
     .min = sched::kMinSlotBytes,
     .max = sched::kMaxSlotBytes,
     .help =
         "Size of a slot. It is raised if the longest message would need more than half of the slots and one more, and "
         "is never above ring_bytes. With failover a slot holds the longest message, and the ring has fewer of them.",
     .level = 5},
    {.name = "ring_in_order",
     .type = ParamType::kChoice,
     .default_value = static_cast<std::int64_t>(RingInOrder::kAuto),
     .choices = kRingInOrderNames,
     .help =
         "Whether the HCAs of this process write the bytes of an RDMA write to memory in ascending order. Only "
         "then can a ring carry messages of several packets, and another component poll the end of a write. auto: ask "
         "the driver (ibv_query_qp_data_in_order); if it does not know, no. yes: they do; if this is wrong, "
         "messages arrive damaged. no: a ring takes messages of one packet.",
     .level = 5},
    {.name = "timeout",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 31,
     .help = "Acknowledgement timer of a queue pair: 4.096 microseconds times 2 to the power of this value. With 20 "
             "and 7 retries, a rail that does not answer counts as broken after about 34 seconds, as with btl_openib; "
             "with 14, after half a second. 0: 14 with failover, for a peer to which several rails or alternate paths "
             "(apm) lead; 17 with alternate paths only; otherwise 20.",
     .level = 5},
    {.name = "retry_count",
     .type = ParamType::kInt,
     .unit = "retries",
     .default_value = 7,
     .min = 0,
     .max = 7,
     .help = "Retries of a queue pair after its acknowledgement timer (timeout) has expired, before its rail counts as "
             "broken. On Soft-RoCE use at most 6, because 7 means no limit there.",
     .level = 5},
    {.name = "min_rnr_timer",
     .type = ParamType::kInt,
     .default_value = 6,
     .min = 1,
     .max = 31,
     .help = "Code of the time after which a peer that found no receive buffer tries again (6: 80 microseconds).",
     .level = 6},
    {.name = "apm",
     .type = ParamType::kChoice,
     .default_value = static_cast<std::int64_t>(path::Apm::kOff),
     .choices = path::kApmNames,
     .help =
         "Automatic path migration: if the path of a rail fails, the HCAs move its queue pair to an alternate path, "
         "and nothing has to be sent again by software. lmc: to other LIDs of the same ports; port: to other ports of "
         "the same HCAs; auto: to another port if both HCAs have one, otherwise to another LID. off: rails do not "
         "move. InfiniBand only; both processes of a pair must want it.",
     .level = 3},
    {.name = "apm_balance",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 1,
     .help =
         "1: a queue pair also moves to its alternate path (apm) if the present one is congested: if the port carries "
         "less than half of the rate of the link. If that does not help, it tries again after one second, then after "
         "twice that time, up to a minute. 0: only if the path fails. Needs apm, and failover, because the "
         "alternate path may not work.",
     .level = 5},
    {.name = "failover",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 1,
     .help = "1: if a rail fails, the job goes on over the others, and takes the rail back when it works again. Both "
             "processes of a pair must have the value 1. 0: a rail that fails ends the job.",
     .level = 3},
    {.name = "partition_timeout",
     .type = ParamType::kInt,
     .unit = "seconds",
     .default_value = 60,
     .min = 0,
     .max = 86400,
     .help = "Time for which requests to a process wait for a working rail. Then the job ends. Only time in MPI "
             "counts, and none while the other process computes. 0: for ever. Only with failover.",
     .level = 4},
    {.name = "failback_hold",
     .type = ParamType::kInt,
     .unit = "milliseconds",
     .default_value = 100,
     .min = 0,
     .max = 60'000,
     .help = "Time for which a rail that works again is used only if there is no other one. Doubles each time the rail "
             "fails within ten seconds after its return. Only with failover.",
     .level = 5},
    {.name = "connect_timeout",
     .type = ParamType::kInt,
     .unit = "seconds",
     .default_value = 30,
     .min = 1,
     .max = 3600,
     .help = "Time after which a peer that has not answered a connection request is reported, once. The process "
             "continues to wait.",
     .level = 5},
    {.name = "probe_timeout",
     .type = ParamType::kInt,
     .unit = "milliseconds",
     .default_value = 500,
     .min = 1,
     .max = 60'000,
     .help = "A rail is used only after a test read over it has completed. After the first rail to a peer has "
             "answered, the others have this much time; a rail that stays silent is not used.",
     .level = 5},
    {.name = "fork",
     .type = ParamType::kChoice,
     .default_value = static_cast<std::int64_t>(Fork::kAuto),
     .choices = kForks,
     .help = "Whether the application may call fork() although memory is registered. auto: if the kernel does not copy "
             "registered memory for child processes, ask libibverbs to protect it (ibv_fork_init); if that fails, Open "
             "MPI warns at the first fork(). on: the same, but if it fails, coopib is not used. off: do not ask "
             "libibverbs, and do not warn.",
     .level = 5},
    {.name = "report",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 1,
     .help = "1: at its end, each process prints what its rails carried to each peer.",
     .level = 3},
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
    {&Config::interleave, nullptr},
    {&Config::receives, nullptr},
    {&Config::send_depth, nullptr},
    {&Config::max_reads, nullptr},
    {&Config::ring_threshold, nullptr},
    {&Config::ring_peers, nullptr},
    {&Config::ring_slots, nullptr},
    {&Config::ring_bytes, nullptr},
    {&Config::ring_slot_bytes, nullptr},
    {&Config::ring_in_order, &Config::ring_in_order_name},
    {&Config::timeout, nullptr},
    {&Config::retry_count, nullptr},
    {&Config::min_rnr_timer, nullptr},
    {&Config::apm, &Config::apm_name},
    {&Config::apm_balance, nullptr},
    {&Config::failover, nullptr},
    {&Config::partition_timeout, nullptr},
    {&Config::failback_hold, nullptr},
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
        return ParamError{"if_exclude", config.if_exclude, "empty if if_include is set"};
    if (const auto pkey = static_cast<std::uint16_t>(config.pkey); pkey != 0 && path::partition_of(pkey) == 0)
        return ParamError{"pkey", path::pkey_text(pkey), "0, or 16 bits of which the lower 15 are not 0"};
    if (config.apm_balance != 0 && (config.apm == static_cast<std::int64_t>(path::Apm::kOff) || config.failover == 0))
        return ParamError{"apm_balance", std::to_string(config.apm_balance),
                          "0 if btl_coopib_apm is off or btl_coopib_failover is 0"};
    const auto planes = path::parse_planes(or_empty(config.pairing));
    if (const auto* allowed = std::get_if<std::string>(&planes))
        return ParamError{"pairing", or_empty(config.pairing), *allowed};
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

// The number of rails is known only when two processes connect, but never exceeds num_rails.
std::optional<ParamError> more_than_num_rails(const Config& config, const sched::SchedConfig& sched) {
    if (config.num_rails == 0) return std::nullopt;
    const auto most = static_cast<std::size_t>(config.num_rails);
    const std::string allowed = range_up_to(most, "btl_coopib_num_rails");
    if (sched.weights.count > most)
        return ParamError{"weights", or_empty(config.weights),
                          "at most " + std::to_string(most) + " weights (btl_coopib_num_rails)"};
    if (sched.bss_paths > most) return ParamError{"bss_paths", std::to_string(sched.bss_paths), allowed};
    if (sched.bss_batch > most) return ParamError{"bss_batch", std::to_string(sched.bss_batch), allowed};
    return std::nullopt;
}

constexpr const char* kAllowedWeights = "whole numbers 1..1000000, one for each rail, separated by commas";
static_assert(sched::kMaxWeight == 1'000'000);

}  // namespace

std::optional<ParamError> make_sched_config(const Config& config, sched::SchedConfig& sched) {
    sched.small_policy = static_cast<sched::Policy>(config.small_policy);
    sched.large_policy = static_cast<sched::Policy>(config.large_policy);
    // The values of sched::SchedConfig are those for 0.
    sched.compare_whole = config.striping_threshold == 0;
    if (!sched.compare_whole) sched.striping_threshold = static_cast<std::uint64_t>(config.striping_threshold);
    sched.min_stripe = static_cast<std::uint64_t>(config.min_stripe);
    sched.window = static_cast<std::uint32_t>(config.window);
    sched.alpha_percent = static_cast<std::uint32_t>(config.alpha);
    sched.bss_paths = static_cast<std::uint32_t>(config.bss_paths);
    sched.bss_batch = static_cast<std::uint32_t>(config.bss_batch);
    auto weights = sched::parse_weights(or_empty(config.weights));
    if (std::holds_alternative<std::string>(weights))
        return ParamError{"weights", or_empty(config.weights), kAllowedWeights};
    sched.weights = std::get<sched::Weights>(weights);
    if (auto wrong = small_policy_error(config, sched)) return wrong;
    if (auto wrong = more_than_num_rails(config, sched)) return wrong;
    if (config.bss_paths != 0 && config.bss_batch > config.bss_paths)
        return ParamError{"bss_batch", std::to_string(config.bss_batch),
                          range_up_to(static_cast<std::size_t>(config.bss_paths), "btl_coopib_bss_paths")};
    if (auto wrong = sched::defect(sched))
        return ParamError{"large_policy", or_empty(config.large_policy_name), *wrong};
    return std::nullopt;
}

std::optional<ParamError> check_rails(const Config& config, const sched::SchedConfig& sched, std::size_t rails) {
    const std::string count = std::to_string(rails);
    if (sched.weights.count != 0 && sched.weights.count != rails)
        return ParamError{"weights", or_empty(config.weights),
                          count + (rails == 1 ? " weight" : " weights") + ", one for each rail"};
    if (sched.bss_paths > rails)
        return ParamError{"bss_paths", std::to_string(sched.bss_paths), range_up_to(rails, "rails to this peer")};
    if (sched.bss_batch > rails)
        return ParamError{"bss_batch", std::to_string(sched.bss_batch), range_up_to(rails, "rails to this peer")};
    if (auto wrong = sched::defect(sched, rails))
        return ParamError{"large_policy", or_empty(config.large_policy_name), *wrong};
    return std::nullopt;
}

}  // namespace coop::ib
