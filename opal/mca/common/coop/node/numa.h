// SPDX-License-Identifier: BSD-3-Clause
//
// How far devices are from this process: the distance between its NUMA nodes,
// those of the CPUs that it may run on, and the node of each device, as Linux
// shows them in sysfs. (ACPI, System Locality Information Table: 10 is the same
// node, 21 twice as far and a little more, 255 unknown.)
//
// A process that is bound to no CPU is on all nodes, and equally near to all.
//
// Threading: none. Ownership: plain values. Errors: what sysfs does not say is
// kUnknownDistance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coop/base/export.h"

namespace coop::node {

constexpr std::uint32_t kUnknownDistance = 255;

using CpuSet = std::vector<bool>;  // by number; what lies behind the end is not in it

// The CPUs that a process may run on (its affinity, within its cpuset); empty if the system does not say.
COOP_EXPORT CpuSet cpus_of(std::int32_t pid);
inline CpuSet own_cpus() { return cpus_of(0); }

COOP_EXPORT std::size_t count(const CpuSet& cpus) noexcept;
COOP_EXPORT void add(CpuSet& cpus, const CpuSet& more);

// Of each device, given by its folder ("/sys/class/infiniband/mlx5_0"): the least
// distance from a node of `cpus`. `nodes`: the folder of the machine's nodes.
COOP_EXPORT std::vector<std::uint32_t> distances(std::span<const std::string> devices, const CpuSet& cpus,
                                                 const std::string& nodes = "/sys/devices/system/node");

// The `most` nearest of several devices, as indices in rising order; of equally near ones those that come first.
COOP_EXPORT std::vector<std::size_t> nearest(std::span<const std::uint32_t> distances, std::size_t most);

}  // namespace coop::node
