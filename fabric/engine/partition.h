// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions (InfiniBand 10.9). The lower 15 bits of a P_Key name a partition; the
// upper bit marks a full member. A packet carries the P_Key of the sending queue
// pair. The receiving queue pair accepts it if its own key has the same partition
// and at least one of the two keys is a full member's.
#pragma once

#include <cstdint>

#include "fabric/shm/segment.h"

namespace coop::fabric {

inline constexpr std::uint16_t kFullMember = 0x8000, kPartitionBits = 0x7fff;

// Partition 0 is invalid: such a key matches nothing.
constexpr bool keys_match(std::uint16_t a, std::uint16_t b) noexcept {
    return (a & kPartitionBits) != 0 && (a & kPartitionBits) == (b & kPartitionBits) && ((a | b) & kFullMember) != 0;
}

// The P_Key of a path of the queue pair; 0: no such path. For a UD queue pair `path` holds only the index; the port is
// the QP's.
inline std::uint16_t pkey_of(const Segment& subnet, const QueuePair& qp, const Path& path) noexcept {
    const std::uint32_t number = qp.type == IBV_QPT_UD ? qp.port : path.port;
    if (number == 0) return 0;
    const Port& port = subnet.ports()[subnet.hcas()[qp.hca].first_port + number - 1];
    return path.pkey_index < port.pkey_count ? port.pkeys[path.pkey_index] : std::uint16_t{0};
}

}  // namespace coop::fabric
