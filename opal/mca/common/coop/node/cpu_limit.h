// SPDX-License-Identifier: BSD-3-Clause
//
// The CPU time that control groups allow this process and the other members of these groups (Linux cgroups
// version 1 and 2: a container's --cpus, a limit of a batch system), and whether a number of processes has
// enough CPUs and CPU time.
//
// /proc/self/cgroup names the groups, and /proc/self/mountinfo the mount points of their folders. Each group on
// the way up to the mount point may have a limit; the smallest applies.
//
// Units: CPUs; 1.5 means the CPU time of one and a half CPUs. Threading: none. Ownership: plain values. Errors: a limit
// that cannot be read or parsed is ignored.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "coop/base/export.h"
#include "coop/node/numa.h"

namespace coop::node {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// A group that may have a limit.
struct CpuGroup {
    std::string folder;
    bool unified = false;  // version 2: cpu.max; otherwise cpu.cfs_quota_us and cpu.cfs_period_us
    bool operator==(const CpuGroup&) const = default;
};

// Returns the groups of a process and their ancestors, from the texts of its /proc/PID/cgroup and
// /proc/PID/mountinfo.
COOP_EXPORT std::vector<CpuGroup> cpu_groups(std::string_view cgroup, std::string_view mountinfo);

COOP_EXPORT double limit_of(std::string_view cpu_max) noexcept;  // "150000 100000": 1.5; "max 100000": none
COOP_EXPORT double limit_of(std::string_view quota_us,
                            std::string_view period_us) noexcept;  // "150000", "100000"; "-1": none

// The limit of this process. `root` is a prefix of all paths, for tests.
COOP_EXPORT double cpu_limit(const std::string& root = "");

// Returns true if there are more processes than CPUs, or more than the CPU time limit can keep running.
constexpr bool is_crowded(std::size_t processes, std::size_t cpus, double limit) noexcept {
    return processes > cpus || static_cast<double>(processes) > limit;
}

}  // namespace coop::node
