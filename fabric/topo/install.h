// SPDX-License-Identifier: BSD-3-Clause
//
// Puts a topology into shared memory as a subnet, and reads it back.
//
// The node GUID of HCA i is 0x0002c903'00000000 + (i + 1) * 16; a port's GUID is
// the node GUID plus the port's number. With InfiniBand, gid[0] is the port's
// prefix and GUID. With RoCE, gid[0] is link-local, from a MAC address that
// contains the numbers of HCA and port; gid[1] is the IPv4-mapped 10.R.X.Y, where
// R is the port's index within its host and X.Y the host's number, from 1.
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
    std::uint64_t loopback_rate = 0;      // bytes/s per port; 0: unlimited
    std::uint64_t memory_lock_limit = 0;  // bytes; 0: RLIMIT_MEMLOCK of each process
};

// Creates and publishes the subnet `name`. The topology must have passed check(). With `until_i_end` the calling thread
// keeps the subnet: when the thread ends, other processes see that the subnet is abandoned (Header::keeper).
Error install(const Topology& topology, const SubnetSettings& settings, const std::string& name, bool until_i_end,
              Segment& subnet);

// The topology of a subnet, with its current rates, latencies, losses and loads.
Topology read_topology(const Segment& subnet);

// True if the subnet belongs to a 'coop-fabric run' that was killed, so that nobody will remove it.
bool is_abandoned(const Segment& subnet);

}  // namespace coop::fabric
