// SPDX-License-Identifier: BSD-3-Clause
//
// Computes the paths between two processes. Each side computes the list on its own from the two port lists.
// Entry i of one list is entry i of the other with local and remote exchanged, so an index suffices to name a
// rail to the peer.
//
//     pairs of ports (port_pairs.h)   rails, in this order
//       0  ------------  0            every pair with path bits 0,
//       1  ------------  1            every pair with path bits 1, …,
//       0  ------------  2            then the second queue pair of each, …
//
// Path k of a pair has path bits k at both ends. The numbering of the rails depends on the ports only. The
// order in which a process prefers its rails is local (order_of_use()): near HCAs come first, and the processes
// of a node begin with different ones.
//
// Two limited members of a partition cannot communicate (partition.h), so a limited member is paired with a
// full member.
//
// Source: rails over {HCA, port, LMC path, queue pair}, as in chapter 4 of the dissertation that sched/README.md
// names (virtual subchannels). Threading: pure functions. Errors: the list is empty if the processes have no
// network in common.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coop/base/export.h"
#include "coop/path/port.h"

namespace coop::path {

constexpr std::size_t kMaxConnectionRails =
    64;  // between two processes, as negotiated: path::RailMask has one bit for each

// Set in PathChoice::qp: this queue pair is the second one of a rail and carries only reads.
constexpr std::uint16_t kForReads = 0x8000;

// One queue pair. Ports are indices into the two lists.
struct PathChoice {
    std::uint8_t local_port = 0;
    std::uint8_t remote_port = 0;
    std::uint8_t local_bits = 0;  // path bits: offset from the port's first LID
    std::uint8_t remote_bits = 0;
    std::uint16_t qp = 0;  // index among the rails on this path

    bool is_for_reads() const noexcept { return (qp & kForReads) != 0; }
    bool operator==(const PathChoice&) const = default;
};

constexpr PathChoice mirrored(PathChoice p) noexcept {
    return {p.remote_port, p.local_port, p.remote_bits, p.local_bits, p.qp};
}

// The stricter of both values of each limit.
COOP_EXPORT Limits agreed(Limits a, Limits b) noexcept;

// Returns the rails: at most kMaxConnectionRails, and no more than fit into one datagram (most_rails() in datagram.h).
// Behind them follow their queue pairs for reads, in the same order, if the limits ask for them and all of them fit.
COOP_EXPORT std::vector<PathChoice> choose_paths(std::span<const PortRecord> local, std::span<const PortRecord> remote,
                                                 Limits limits);
// The same with the agreed() limits of both lists.
COOP_EXPORT std::vector<PathChoice> choose_paths(const PortList& local, const PortList& remote);

// If there is no rail between two processes, but would be one if their P_Keys matched: returns an error message
// that names two P_Keys that do not match. Otherwise returns nothing.
COOP_EXPORT std::optional<std::string> partition_trouble(const PortList& local, const PortList& remote);

// The place of a process on its node.
struct Nearness {
    std::vector<std::uint32_t> distances;  // by HCA, in any unit; an HCA beyond the end counts as the farthest
    std::uint32_t rank = 0;                // among the processes with the same nearest HCAs
};

// Returns the ports in the order in which a process should list them: nearest HCA first; among equally near
// HCAs the first port of each, then the second port of each, …. Processes of a node with different ranks start
// with different ones of these HCAs.
COOP_EXPORT std::vector<PortRecord> by_preference(std::vector<PortRecord> ports, const Nearness& nearness);

// Returns the rails in the order in which the process should prefer them; `ports` as returned by
// by_preference(). Near rails come first. The policy `binding` uses the first rail. Processes with different ranks
// begin on different HCAs. If there are more processes than near HCAs, the next ones begin at the second port of
// each HCA, then at the second path.
COOP_EXPORT std::vector<std::size_t> order_of_use(std::span<const PathChoice> rails, std::span<const PortRecord> ports,
                                                  const Nearness& nearness);

}  // namespace coop::path
