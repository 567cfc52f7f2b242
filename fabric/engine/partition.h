// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions (InfiniBand 10.9). A partition key has 15 bits that name a
// partition, and an upper bit: full member. A packet carries the key of the
// queue pair that sends it, and is taken if the receiving queue pair's key is of
// the same partition and one of the two is a full member's.
#pragma once

#include <cstdint>

#include "fabric/shm/segment.h"

namespace coop::fabric {

inline constexpr std::uint16_t kFullMember = 0x8000, kPartitionBits = 0x7fff;

// Partition 0 is none: such a key matches nothing.
constexpr bool keys_match(std::uint16_t a, std::uint16_t b) noexcept {
    return (a & kPartitionBits) != 0 && (a & kPartitionBits) == (b & kPartitionBits) && ((a | b) & kFullMember) != 0;
}

// The key of a path of the queue pair; 0: there is no such path. A UD queue pair has a port, and no path but an index.
inline std::uint16_t pkey_of(const Segment& subnet, const QueuePair& qp, const Path& path) noexcept {
    const std::uint32_t number = qp.type == IBV_QPT_UD ? qp.port : path.port;
    if (number == 0) return 0;
    const Port& port = subnet.ports()[subnet.hcas()[qp.hca].first_port + number - 1];
    return path.pkey_index < port.pkey_count ? port.pkeys[path.pkey_index] : std::uint16_t{0};
}

}  // namespace coop::fabric
