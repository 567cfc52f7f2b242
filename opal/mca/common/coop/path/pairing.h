// SPDX-License-Identifier: BSD-3-Clause
//
// Which paths there are between two processes. Each side computes the list by
// itself, from the two port lists; entry i of one is entry i of the other with
// local and remote exchanged, so a number is enough to name a rail to the peer.
//
//     pairs of ports (port_pairs.h)   rails, in this order
//       0  ------------  0            every pair with path bits 0,
//       1  ------------  1            every pair with path bits 1, …,
//       0  ------------  2            then the second queue pair of each, …
//
// Path k of a pair has path bits k at both ends. The numbers of the rails depend
// on the ports alone. In which order a process uses them is its own affair
// (order_of_use()): HCAs that are near come first, and the processes of a node
// begin with different ones.
//
// Two limited members of a partition do not hear each other (partition.h), so a
// limited member is paired with a full one.
//
// Source: rails over {HCA, port, LMC path, queue pair}, as in the dissertation's
// chapter 4 (virtual subchannels). Threading: pure functions. Errors: no network
// in common is an empty list.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

// Where there is no rail between two processes, and there would be some if their P_Keys matched: a sentence that names two that do
// not. Nothing: their P_Keys are not the reason.
COOP_EXPORT std::optional<std::string> partition_trouble(const PortList& local, const PortList& remote);

// Where a process is on its node.
struct Nearness {
    std::vector<std::uint32_t> distances;  // by HCA, any measure, the smaller the nearer; an HCA without: the same as the farthest
    std::uint32_t rank = 0;                // among the processes that have the same HCAs near
};

// The order in which a process should list its ports: nearest HCA first; of
// equally near HCAs the first port of each, then the second of each, …. Processes
// of the node with another rank start with another one of these HCAs.
COOP_EXPORT std::vector<PortRecord> by_preference(std::vector<PortRecord> ports, const Nearness& nearness);

// The rails of a process, by the order in which it should use them; `ports` as by_preference() returns them. Near ones come first, and
// of these the one that the policy binding uses: processes with other ranks begin on other HCAs; when there are more of them than near
// HCAs, the next ones begin at the second port of each, then at the second path.
COOP_EXPORT std::vector<std::size_t> order_of_use(std::span<const PathChoice> rails, std::span<const PortRecord> ports, const Nearness& nearness);

}  // namespace coop::path
