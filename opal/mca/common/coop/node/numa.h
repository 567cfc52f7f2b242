// SPDX-License-Identifier: BSD-3-Clause
//
// Distances from this process to devices: between the NUMA nodes of the CPUs on which the process may run and
// the node of each device, as Linux reports them in sysfs. (ACPI, System Locality Information Table: 10 is the
// same node, 21 about twice as far, 255 unknown.)
//
// A process that is not bound runs on all nodes, so it is equally near to all devices.
//
// Threading: none. Ownership: plain values. Errors: a distance that sysfs does not report is kUnknownDistance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coop/base/export.h"

namespace coop::node {

constexpr std::uint32_t kUnknownDistance = 255;

using CpuSet = std::vector<bool>;  // by CPU number; CPUs beyond its end are not in the set

// The CPUs on which a process may run (its affinity within its cpuset); empty if the system does not report
// them.
COOP_EXPORT CpuSet cpus_of(std::int32_t pid);
inline CpuSet own_cpus() { return cpus_of(0); }

COOP_EXPORT std::size_t count(const CpuSet& cpus) noexcept;
COOP_EXPORT void add(CpuSet& cpus, const CpuSet& more);

// Returns, for each device folder ("/sys/class/infiniband/mlx5_0"), the smallest distance from a node that has
// one of `cpus`. `nodes`: the folder with the machine's nodes.
COOP_EXPORT std::vector<std::uint32_t> distances(std::span<const std::string> devices, const CpuSet& cpus,
                                                 const std::string& nodes = "/sys/devices/system/node");

// Returns the indices of the `most` nearest devices in ascending order; of equally near devices the first ones.
COOP_EXPORT std::vector<std::size_t> nearest(std::span<const std::uint32_t> distances, std::size_t most);

}  // namespace coop::node
