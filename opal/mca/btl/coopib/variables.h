// SPDX-License-Identifier: BSD-3-Clause
//
// What is counted and exported as MPI_T performance variables, declared once:
// each row feeds the registration (pvars.cc) and the documentation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace coop::ib {

enum class Quantity : std::uint8_t {
    kBytes, kSends, kStripes, kWaits, kReadWaits, kEarly, kWeight,  // of a rail
    kWhole, kStriped, kOutOfOrder, kConnectWaits, kRepeats, kRingMessages, kCreditMessages, kConnections,  // of a peer
    kWindowWaits,
    kRegistrations, kEvents,  // of an HCA
    kEarlyCopies, kEarlyBytes, kMostEarlyBytes,  // of the process
};

// Over which rails a quantity is summed up. An array has as many elements as
// there may be HCAs, or rails to a peer; those that are not there are 0.
enum class Scope : std::uint8_t {
    kProcess,  // one number, over all peers
    kHca,      // one element for each HCA in use, in the order of ibv_get_device_list()
    kRail,     // element i: rail i of each peer, as the report numbers them
};

struct Variable {
    Quantity quantity;
    Scope scope;
    const char* name;  // without the prefix of the component
    const char* help;
};

inline constexpr std::array kVariables = {
    Variable{Quantity::kBytes, Scope::kHca, "bytes", "Bytes that this process has put on the rails of an HCA: messages with their headers, and stripes."},
    Variable{Quantity::kSends, Scope::kHca, "sends", "Fragments that this process has sent over the rails of an HCA."},
    Variable{Quantity::kStripes, Scope::kHca, "stripes", "Stripes of RDMA operations (whole operations too) that this process has put on the rails of an HCA."},
    Variable{Quantity::kWaits, Scope::kHca, "waits", "Fragments and stripes that had to wait because their rail was full or had no credit."},
    Variable{Quantity::kRegistrations, Scope::kHca, "registrations", "Times that memory was registered on an HCA for RDMA operations; what Open MPI's cache still has is not registered again."},
    Variable{Quantity::kEvents, Scope::kHca, "events", "Asynchronous events that an HCA has reported: ports that go down or come back, queue pairs in error."},
    Variable{Quantity::kBytes, Scope::kRail, "rail_bytes", "The bytes of each rail."},
    Variable{Quantity::kSends, Scope::kRail, "rail_sends", "The fragments of each rail."},
    Variable{Quantity::kStripes, Scope::kRail, "rail_stripes", "The stripes of each rail."},
    Variable{Quantity::kWaits, Scope::kRail, "rail_waits", "What had to wait on each rail because its send queue was full or it had no credit."},
    Variable{Quantity::kReadWaits, Scope::kRail, "rail_read_waits", "RDMA reads and atomic operations that had to wait on each rail for the limit on outstanding ones."},
    Variable{Quantity::kEarly, Scope::kRail, "rail_out_of_order", "Fragments that arrived over each rail ahead of an earlier one of the same peer."},
    Variable{Quantity::kWeight, Scope::kRail, "rail_weight", "Weight of each rail now, in millionths of the weight of the channel; over all peers: the mean."},
    Variable{Quantity::kWhole, Scope::kProcess, "operations_whole", "RDMA operations that went over one rail."},
    Variable{Quantity::kStriped, Scope::kProcess, "operations_striped", "RDMA operations that were cut into stripes."},
    Variable{Quantity::kOutOfOrder, Scope::kProcess, "out_of_order", "Fragments that arrived ahead of an earlier one of the same peer."},
    Variable{Quantity::kEarlyCopies, Scope::kProcess, "early_copies", "Fragments that arrived ahead of an earlier one and were copied, because such fragments held a quarter of the receive buffers."},
    Variable{Quantity::kEarlyBytes, Scope::kProcess, "early_bytes", "Bytes of such copies that wait now."},
    Variable{Quantity::kMostEarlyBytes, Scope::kProcess, "early_bytes_most", "Most bytes of such copies that have waited at a time."},
    Variable{Quantity::kWindowWaits, Scope::kProcess, "window_waits", "Fragments that had to wait because an earlier one to the same peer, many places before, had not landed."},
    Variable{Quantity::kConnectWaits, Scope::kProcess, "connect_waits", "Fragments and operations that had to wait for the connection to their peer."},
    Variable{Quantity::kRepeats, Scope::kProcess, "connect_repeats", "Datagrams that were sent again to connect to a peer, because no answer came."},
    Variable{Quantity::kRingMessages, Scope::kProcess, "ring_messages", "Fragments that this process has written into rings of its peers; they count as sends, too."},
    Variable{Quantity::kCreditMessages, Scope::kProcess, "credit_messages", "Messages that this process has sent only to tell a peer which slots of its ring are free."},
    Variable{Quantity::kConnections, Scope::kProcess, "connections", "Peers that this process is connected to."},
};

constexpr bool is_of_hca(Quantity quantity) noexcept { return quantity == Quantity::kRegistrations || quantity == Quantity::kEvents; }
// Counted by the process for itself, not for each peer.
constexpr bool is_own(Quantity quantity) noexcept { return quantity >= Quantity::kRegistrations; }
constexpr bool is_of_rail(Quantity quantity) noexcept { return quantity <= Quantity::kWeight; }
// The others only grow.
constexpr bool is_level(Quantity quantity) noexcept { return quantity == Quantity::kWeight || quantity == Quantity::kEarlyBytes; }
constexpr bool is_high_water(Quantity quantity) noexcept { return quantity == Quantity::kMostEarlyBytes; }

namespace detail {
constexpr bool variables_have_a_scope_that_fits() {
    for (const Variable& v : kVariables)
        if (is_of_hca(v.quantity) ? v.scope != Scope::kHca : is_of_rail(v.quantity) != (v.scope != Scope::kProcess)) return false;
    return true;
}
}  // namespace detail
static_assert(detail::variables_have_a_scope_that_fits());

}  // namespace coop::ib
