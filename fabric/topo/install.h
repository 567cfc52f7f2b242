// SPDX-License-Identifier: BSD-3-Clause
//
// From a topology to a subnet in shared memory, and back.
//
// Addresses. The node GUID of HCA i is 0x0002c903'00000000 + (i + 1) * 16, its
// ports' GUIDs are that plus their number. InfiniBand: gid[0] is the port's
// prefix and its GUID. RoCE: gid[0] is link-local, from a MAC address that
// is made of the HCA's and the port's number, gid[1] the IPv4-mapped 10.R.X.Y,
// R the port's place in its host and X.Y the host's from 1 on.
#pragma once

#include <string>

#include "fabric/shm/segment.h"
#include "fabric/topo/topology.h"

namespace coop::fabric {

struct SubnetSettings {
    bool strict_memory = false;
    bool strict_arm = false;
    bool strict_fork = false;
    bool trace_messages = false;
    std::uint64_t seed = 1;
    std::uint64_t loopback_rate = 0;      // bytes/s, of each port; 0: unlimited
    std::uint64_t memory_lock_limit = 0;  // bytes; 0: RLIMIT_MEMLOCK of each process
};

// Creates and publishes the subnet `name`. The topology has passed check(). With `until_i_end` the subnet belongs to the
// calling thread: others see when that has ended (Header::keeper).
Error install(const Topology& topology, const SubnetSettings& settings, const std::string& name, bool until_i_end, Segment& subnet);

// The topology of a subnet, with its rates, latencies, losses and loads of now.
Topology read_topology(const Segment& subnet);

// Made by a 'coop-fabric run' that was killed: nobody will remove it.
bool is_abandoned(const Segment& subnet);

}  // namespace coop::fabric
