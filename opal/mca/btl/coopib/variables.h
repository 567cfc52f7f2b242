// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T performance variables, declared once: each row feeds the registration
// (pvars.cc) and the documentation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace coop::ib {

enum class Quantity : std::uint8_t {
    kBytes,
    kSends,
    kStripes,
    kWaits,
    kReadWaits,
    kEarly,
    kFailures,
    kRecoveries,
    kRepeated,
    kRepeatedBytes,
    kMoves,
    kWeight,  // the last quantity of a rail
    kWhole,
    kStriped,
    kOutOfOrder,
    kConnectWaits,
    kRepeats,
    kRingMessages,
    kCreditMessages,
    kConnections,
    kRailsUp,
    kRailsArmed,
    kDuplicates,
    kPartitions,
    kWindowWaits,  // the last quantity of a peer
    kRegistrations,
    kEvents,  // the last quantity of an HCA
    kEarlyCopies,
    kEarlyBytes,
    kMostEarlyBytes,  // the last quantity of the process
};

// The elements of a variable. An array has the maximum number of HCAs, or of
// rails to a peer, as elements; unused elements are 0.
enum class Scope : std::uint8_t {
    kProcess,  // one number, over all peers
    kHca,      // one element for each HCA in use, by name: mlx5_2 before mlx5_10 (hca_names() in rail/verbs/hcas.h)
    kRail,     // element i: rail i of each peer, as the report numbers them
};

struct Variable {
    Quantity quantity;
    Scope scope;
    const char* name;  // without the prefix of the component
    const char* help;
};

inline constexpr std::array kVariables = {
    Variable{Quantity::kBytes, Scope::kHca, "bytes",
             "Bytes that this process sent over the rails of an HCA: messages with their headers, and stripes."},
    Variable{Quantity::kSends, Scope::kHca, "sends", "Fragments that this process sent over the rails of an HCA."},
    Variable{Quantity::kStripes, Scope::kHca, "stripes",
             "Stripes of RDMA operations, or whole operations, that this process posted on the rails of an HCA."},
    Variable{Quantity::kWaits, Scope::kHca, "waits",
             "Fragments and stripes that waited because the send queue of their rail was full or they had no credit."},
    Variable{Quantity::kRegistrations, Scope::kHca, "registrations",
             "Registrations of memory on an HCA for RDMA operations. Memory in Open MPI's registration cache is not "
             "registered again."},
    Variable{Quantity::kEvents, Scope::kHca, "events",
             "Asynchronous events reported by an HCA: ports that go down or come back, queue pairs in error."},
    Variable{Quantity::kBytes, Scope::kRail, "rail_bytes", "Bytes sent over each rail."},
    Variable{Quantity::kSends, Scope::kRail, "rail_sends", "Fragments sent over each rail."},
    Variable{Quantity::kStripes, Scope::kRail, "rail_stripes", "Stripes posted on each rail."},
    Variable{Quantity::kWaits, Scope::kRail, "rail_waits",
             "Fragments and stripes that waited on each rail because its send queue was full or they had no credit."},
    Variable{Quantity::kReadWaits, Scope::kRail, "rail_read_waits",
             "RDMA reads and atomic operations that waited on each rail because of the limit on outstanding ones."},
    Variable{Quantity::kEarly, Scope::kRail, "rail_out_of_order",
             "Fragments that arrived over each rail ahead of an earlier one of the same peer."},
    Variable{Quantity::kFailures, Scope::kRail, "rail_failures", "Failures of each rail, with failover."},
    Variable{Quantity::kRecoveries, Scope::kRail, "rail_recoveries", "Returns of each rail after a failure."},
    Variable{Quantity::kRepeated, Scope::kRail, "rail_repeated",
             "Fragments and stripes that were sent again over another rail because each rail failed."},
    Variable{Quantity::kRepeatedBytes, Scope::kRail, "rail_repeated_bytes", "Bytes in these."},
    Variable{Quantity::kMoves, Scope::kRail, "rail_migrations",
             "Migrations of each rail, and of its queue pair for reads, to an alternate path."},
    Variable{Quantity::kWeight, Scope::kRail, "rail_weight",
             "Current weight of each rail in millionths of the weight of its channel; mean over all peers."},
    Variable{Quantity::kWhole, Scope::kProcess, "operations_whole", "RDMA operations that went over one rail."},
    Variable{Quantity::kStriped, Scope::kProcess, "operations_striped",
             "RDMA operations that were divided into stripes."},
    Variable{Quantity::kOutOfOrder, Scope::kProcess, "out_of_order",
             "Fragments that arrived ahead of an earlier one of the same peer."},
    Variable{Quantity::kEarlyCopies, Scope::kProcess, "early_copies",
             "Fragments that arrived ahead of an earlier one and were copied, because such fragments occupied a "
             "quarter of the receive buffers."},
    Variable{Quantity::kEarlyBytes, Scope::kProcess, "early_bytes", "Bytes in such copies at present."},
    Variable{Quantity::kMostEarlyBytes, Scope::kProcess, "early_bytes_most",
             "Largest number of bytes in such copies at a time."},
    Variable{Quantity::kWindowWaits, Scope::kProcess, "window_waits",
             "Fragments that waited because one sent 1024 earlier to the same peer was not acknowledged yet."},
    Variable{Quantity::kConnectWaits, Scope::kProcess, "connect_waits",
             "Fragments and operations that waited for the connection to their peer."},
    Variable{Quantity::kRepeats, Scope::kProcess, "connect_repeats",
             "Connection datagrams that were sent again because no answer came."},
    Variable{Quantity::kRingMessages, Scope::kProcess, "ring_messages",
             "Fragments that this process wrote into the rings of its peers; they also count as sends."},
    Variable{Quantity::kCreditMessages, Scope::kProcess, "credit_messages",
             "Messages that this process sent only to return credits to a peer."},
    Variable{Quantity::kConnections, Scope::kProcess, "connections", "Peers that this process is connected to."},
    Variable{Quantity::kRailsUp, Scope::kProcess, "rails_up", "Rails to a peer that work; mean over all peers."},
    Variable{
        Quantity::kRailsArmed, Scope::kProcess, "rails_armed",
        "Rails to a peer that would move to an alternate path now; mean over all peers. Reading it asks the HCAs."},
    Variable{Quantity::kDuplicates, Scope::kProcess, "duplicates",
             "Fragments that arrived a second time, after the failure of a rail, and were dropped."},
    Variable{Quantity::kPartitions, Scope::kProcess, "partitions", "Times at which no rail to a peer worked."},
};

constexpr bool is_of_hca(Quantity quantity) noexcept {
    return quantity == Quantity::kRegistrations || quantity == Quantity::kEvents;
}
// Counted once for the process, not for each peer.
constexpr bool is_own(Quantity quantity) noexcept { return quantity >= Quantity::kRegistrations; }
constexpr bool is_of_rail(Quantity quantity) noexcept { return quantity <= Quantity::kWeight; }
// A level may fall. The other quantities only grow.
constexpr bool is_level(Quantity quantity) noexcept {
    return quantity == Quantity::kWeight || quantity == Quantity::kRailsUp || quantity == Quantity::kRailsArmed ||
           quantity == Quantity::kEarlyBytes;
}
constexpr bool is_high_water(Quantity quantity) noexcept { return quantity == Quantity::kMostEarlyBytes; }

namespace detail {
constexpr bool variables_have_a_scope_that_fits() {
    for (const Variable& v : kVariables)
        if (is_of_hca(v.quantity) ? v.scope != Scope::kHca : is_of_rail(v.quantity) != (v.scope != Scope::kProcess))
            return false;
    return true;
}
}  // namespace detail
static_assert(detail::variables_have_a_scope_that_fits());

}  // namespace coop::ib
