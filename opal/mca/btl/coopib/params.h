// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters of btl/coopib, declared once: each row of kParams feeds the
// registration with Open MPI (ompi_info), the check at start and the parameter
// reference of the documentation. Config holds the values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "coop/base/param_table.h"
#include "coop/sched/config.h"

namespace coop::ib {

constexpr std::int64_t kMostReceives = 16384;  // largest value of `receives`

// ring_in_order: whether the arrival of the last byte of a write implies that all of it has arrived.
enum class RingInOrder : std::uint8_t { kAuto, kYes, kNo };
inline constexpr const char* kRingInOrderNames[] = {"auto", "yes", "no"};

// Values in the units of their rows. They are in range after check().
struct Config {
    const char* if_include = nullptr;
    const char* if_exclude = nullptr;
    std::int64_t num_rails = 0;
    std::int64_t qps_per_port = 0;
    std::int64_t max_paths = 0;
    std::int64_t pkey = 0;
    std::int64_t gid_index = 0;
    std::int64_t service_level = 0;
    std::int64_t traffic_class = 0;
    std::int64_t allow_different_subnets = 0;
    const char* pairing = nullptr;
    const char* small_policy_name = nullptr;
    const char* large_policy_name = nullptr;
    std::int64_t small_policy = 0;  // sched::Policy
    std::int64_t large_policy = 0;
    std::int64_t striping_threshold = 0;
    std::int64_t min_stripe = 0;
    std::int64_t window = 0;
    const char* weights = nullptr;
    std::int64_t alpha = 0;
    std::int64_t bss_paths = 0;
    std::int64_t bss_batch = 0;
    std::int64_t interleave = 0;
    std::int64_t receives = 0;
    std::int64_t send_depth = 0;
    std::int64_t max_reads = 0;
    std::int64_t ring_threshold = 0;
    std::int64_t ring_peers = 0;
    std::int64_t ring_slots = 0;
    std::int64_t ring_bytes = 0;
    std::int64_t ring_slot_bytes = 0;
    const char* ring_in_order_name = nullptr;
    std::int64_t ring_in_order = 0;  // RingInOrder
    std::int64_t timeout = 0;        // 0: timeout_for() decides
    std::int64_t retry_count = 0;
    std::int64_t min_rnr_timer = 0;
    const char* apm_name = nullptr;
    std::int64_t apm = 0;  // path::Apm
    std::int64_t apm_balance = 0;
    std::int64_t failover = 0;
    std::int64_t partition_timeout = 0;
    std::int64_t failback_hold = 0;
    std::int64_t connect_timeout = 0;
    std::int64_t probe_timeout = 0;
    const char* fork_name = nullptr;
    std::int64_t fork = 0;  // Fork
    std::int64_t report = 0;
};

enum class Fork : std::uint8_t { kAuto, kOn, kOff };

// The declarations, for registration and for the documentation.
const ParamTable<Config>& param_table() noexcept;
inline std::span<const ParamRow> params() noexcept { return param_table().rows(); }

// Returns the first value that its row does not allow; sets the index of each kChoice parameter.
std::optional<ParamError> check(Config& config);

// The settings of the schedulers. The error names the parameter.
std::optional<ParamError> make_sched_config(const Config& config, sched::SchedConfig& sched);
// Returns the first setting that does not fit a channel of `rails` rails.
std::optional<ParamError> check_rails(const Config& config, const sched::SchedConfig& sched, std::size_t rails);

}  // namespace coop::ib
