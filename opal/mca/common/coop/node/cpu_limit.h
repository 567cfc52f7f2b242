// SPDX-License-Identifier: BSD-3-Clause
//
// How much time on CPUs the control groups of this process leave to it and to the
// others in them (Linux, cgroups of version 1 and 2: a container's --cpus, a limit of
// a batch system), and whether a number of processes has enough of CPUs and of that.
//
// /proc/self/cgroup names the groups, /proc/self/mountinfo where their folders are:
// each group from there up to the mount point may have a limit, and the least holds.
//
// Units: CPUs; 1.5 is the time of one and a half. Threading: none. Ownership: plain
// values. Errors: what cannot be read or understood is no limit.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "coop/base/export.h"
#include "coop/node/numa.h"

namespace coop::node {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// A group that may have a limit: its folder, and which files say so.
struct CpuGroup {
    std::string folder;
    bool unified = false;  // version 2: cpu.max; otherwise cpu.cfs_quota_us and cpu.cfs_period_us
    bool operator==(const CpuGroup&) const = default;
};

// The groups of a process and those above them, from the texts of its /proc/PID/cgroup and /proc/PID/mountinfo.
COOP_EXPORT std::vector<CpuGroup> cpu_groups(std::string_view cgroup, std::string_view mountinfo);

COOP_EXPORT double limit_of(std::string_view cpu_max) noexcept;                             // "150000 100000": 1.5; "max 100000": none
COOP_EXPORT double limit_of(std::string_view quota_us, std::string_view period_us) noexcept;  // "150000", "100000"; "-1": none

// Of this process; `root` is in front of all paths, for tests.
COOP_EXPORT double cpu_limit(const std::string& root = "");

// More processes than CPUs, or than time on them.
constexpr bool is_crowded(std::size_t processes, std::size_t cpus, double limit) noexcept {
    return processes > cpus || static_cast<double>(processes) > limit;
}

}  // namespace coop::node
