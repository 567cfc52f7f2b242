// SPDX-License-Identifier: BSD-3-Clause
//
// Which paths there are between two processes. Each side computes the list by
// itself, from the two port lists; entry i of one is entry i of the other with
// local and remote exchanged, so a number is enough to name a rail to the peer.
//
//     local ports    remote ports     pairs (one network)        rails, in this order
//       0  ------------  0            0-0, 1-1, then              every pair with path bits 0,
//       1  ------------  1            leftovers round robin:      every pair with path bits 1, …,
//                        2            0-2                         then the second queue pair of each, …
//
// Ports of one network are paired by their position in it. The order of a list
// is therefore its owner's wish (by_preference()): what num_rails leaves is the
// front of both lists. Path k of a pair has path bits k at both ends. Two
// processes of a node have the same ports: each is paired with itself, unless
// num_rails leaves some out.
//
// Source: rails over {HCA, port, LMC path, queue pair}, as in the dissertation's
// chapter 4 (virtual subchannels). Threading: pure functions. Errors: no network
// in common is an empty list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/port.h"

namespace coop::path {

constexpr std::size_t kMaxRails = 64;  // between two processes: a mask has a bit for each

// One rail. Ports are indices of the two lists.
struct PathChoice {
    std::uint8_t local_port = 0;
    std::uint8_t remote_port = 0;
    std::uint8_t local_bits = 0;   // path bits: which LID of the port
    std::uint8_t remote_bits = 0;
    std::uint16_t qp = 0;          // counts the queue pairs on this path

    bool operator==(const PathChoice&) const = default;
};

constexpr PathChoice mirrored(PathChoice p) noexcept { return {p.remote_port, p.local_port, p.remote_bits, p.local_bits, p.qp}; }

// The stricter of both, limit by limit.
COOP_EXPORT Limits agreed(Limits a, Limits b) noexcept;

// The rails, at most kMaxRails and no more than their datagram has room for (most_rails() in datagram.h).
COOP_EXPORT std::vector<PathChoice> choose_paths(std::span<const PortRecord> local, std::span<const PortRecord> remote, Limits limits);
// The same, with limits agreed.
COOP_EXPORT std::vector<PathChoice> choose_paths(const PortList& local, const PortList& remote);

// The order in which a process should list its ports: nearest HCA first; of
// equally near HCAs the first port of each, then the second of each, …. The
// processes of a node start with different ones: `local_rank` rotates them.
// distances[hca]: any measure, the smaller the nearer; an HCA without: the same
// as the farthest.
COOP_EXPORT std::vector<PortRecord> by_preference(std::vector<PortRecord> ports, std::span<const std::uint32_t> distances, std::uint32_t local_rank);

// The rail that this process uses before any other. by_preference() has given the processes of a node different HCAs; when
// there are more processes than near HCAs, the next ones begin at the second port of each, then at the second path. Of `ports`
// as by_preference() returns them, all in one network.
COOP_EXPORT std::size_t first_rail(std::span<const PortRecord> ports, std::span<const std::uint32_t> distances, std::uint32_t local_rank);

}  // namespace coop::path
