// SPDX-License-Identifier: BSD-3-Clause
//
// What is counted and exported as MPI_T performance variables, declared once:
// each row feeds the registration (pvars.cc) and the documentation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace coop::ib {

// Totals over all peers. Those of an HCA are arrays: one element for each HCA in
// use, in the order of ibv_get_device_list().
enum class Counter : std::uint8_t { kBytes, kSends, kStripes, kWaits, kOutOfOrder, kRingMessages, kCreditMessages, kConnections, kCount };

struct Variable {
    Counter counter;
    const char* name;  // without the prefix of the component
    bool per_hca;
    const char* help;
};

inline constexpr std::array<Variable, static_cast<std::size_t>(Counter::kCount)> kVariables = {{
    {Counter::kBytes, "bytes", true, "Bytes that this process has put on the rails of an HCA: messages with their headers, and stripes."},
    {Counter::kSends, "sends", true, "Fragments that this process has sent over the rails of an HCA."},
    {Counter::kStripes, "stripes", true, "Stripes of RDMA operations (whole operations too) that this process has put on the rails of an HCA."},
    {Counter::kWaits, "waits", true, "Fragments and stripes that had to wait because their rail was full or had no credit."},
    {Counter::kOutOfOrder, "out_of_order", false, "Fragments that arrived ahead of an earlier one of the same peer."},
    {Counter::kRingMessages, "ring_messages", false, "Fragments that this process has written into rings of its peers; they count as sends, too."},
    {Counter::kCreditMessages, "credit_messages", false, "Messages that this process has sent only to tell a peer which slots of its ring are free."},
    {Counter::kConnections, "connections", false, "Peers that this process is connected to."},
}};

namespace detail {
constexpr bool variables_match_their_enum() {
    for (std::size_t i = 0; i < kVariables.size(); ++i)
        if (kVariables[i].counter != static_cast<Counter>(i)) return false;
    return true;
}
}  // namespace detail
static_assert(detail::variables_match_their_enum());

}  // namespace coop::ib
