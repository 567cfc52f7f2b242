// SPDX-License-Identifier: BSD-3-Clause
#include "node_setup.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

#include "diagnose.h"
#include "ompi/mca/shim/peers.h"
#include "partners.h"

namespace coop::ag {
namespace {

constexpr std::size_t kMostOfNode = 1024;  // the memory grows with the square, by 16 bytes

// What each process tells all others.
struct Introduction {
    std::uint32_t leader;  // the first rank of its node
    std::int32_t pid;      // the ticket of the node's memory, from the leader
    std::int32_t fd;
    std::uint32_t unused;
    std::uint64_t nonce;
};

std::uint32_t size_of(ompi_communicator_t& comm) noexcept { return static_cast<std::uint32_t>(ompi_comm_size(&comm)); }
std::uint32_t rank_in(ompi_communicator_t& comm) noexcept { return static_cast<std::uint32_t>(ompi_comm_rank(&comm)); }

std::vector<std::uint32_t> neighbours(ompi_communicator_t& comm) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < size_of(comm); ++rank)
        if (is_on_this_node(comm, rank)) ranks.push_back(rank);
    return ranks;
}

constexpr std::int64_t kLeastSlot = 1024;
// Several processes take the same copy from the slot. A single one reads longer blocks faster from their owner.
constexpr std::int64_t kMostOfTwo = 16 * 1024;
std::size_t slot_bytes(std::size_t members) noexcept {
    const std::int64_t share = process.config.node_memory / coll::NodeArea::kLaps / static_cast<std::int64_t>(members);
    const std::int64_t most = members > 2 ? process.config.node_slot : std::min(kMostOfTwo, process.config.node_slot);
    return static_cast<std::size_t>(std::clamp(share, kLeastSlot, most));
}

std::optional<std::vector<Introduction>> introduce(State& state, const Introduction& own) {
    std::vector<Introduction> all(size_of(*state.comm));
    const int bytes = sizeof own;
    if (state.allgather(&own, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, state.comm, state.allgather_module) !=
        OMPI_SUCCESS)
        return std::nullopt;
    return all;
}

// The least of what all say; 0 if they cannot be asked.
std::int64_t least_of_all(ompi_communicator_t& comm, std::int64_t mine) noexcept {
    std::int64_t least = 0;
    return comm.c_coll->coll_allreduce(&mine, &least, 1, MPI_INT64_T, MPI_MIN, &comm,
                                       comm.c_coll->coll_allreduce_module) == OMPI_SUCCESS
               ? least
               : 0;
}

// Whether packets reach the neighbours in a ring that goes node by node. short_limit() has seen only those by rank.
bool reaches_neighbours(ompi_communicator_t& comm, const coll::RingOrder& order) noexcept {
    const coll::Step step = coll::ring_step_of(order, 0);
    return is_long_enough(std::min(longest_packet(comm, step.to), longest_packet(comm, step.from)));
}

// The leaders of all nodes, or null: one of them cannot be reached, or no memory.
std::unique_ptr<Group> make_leaders(ompi_communicator_t& comm, const coll::Nodes& nodes, std::uint32_t own) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t node = 0; node < nodes.count(); ++node) ranks.push_back(nodes.leader(node));
    Members members(comm, std::move(ranks), own);
    const std::size_t short_bytes = short_limit(members);
    return short_bytes > 0 ? Group::create(std::move(members), short_bytes) : nullptr;
}

// Null: no memory, or the processes of the node have different views of it.
std::unique_ptr<NodeRow> make_row(const coll::Nodes& nodes, std::uint32_t rank, std::span<const std::uint32_t> mine,
                                  const Introduction& leader, node::Segment segment) {
    if (!nodes.is_valid() || !std::ranges::equal(nodes.members(nodes.node_of(rank)), mine)) return nullptr;
    if (!segment && !process.faults.hit(Fault::kRegister))
        segment = node::Segment::attach({leader.pid, leader.fd, leader.nonce},
                                        NodeRow::bytes_for(mine.size(), slot_bytes(mine.size())));
    if (!segment) return nullptr;
    return std::make_unique<NodeRow>(mine, rank, std::move(segment), slot_bytes(mine.size()));
}

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
struct Offer {
    std::unique_ptr<Hierarchy> hierarchy;
    std::int64_t short_bytes = 0;  // the longest short step of this process to other leaders; 0: it cannot take part
};

// May fail in this process alone, so that all agree afterwards. The others wait for the introduction, though.
Offer try_to_set_up(State& state) {
    bool introduced = false;
    try {
        const std::uint32_t rank = rank_in(*state.comm);
        const std::vector<std::uint32_t> mine = neighbours(*state.comm);
        node::Segment segment;
        if (mine.front() == rank && mine.size() <= kMostOfNode && !process.faults.hit(Fault::kAlloc))
            segment = node::Segment::create(NodeRow::bytes_for(mine.size(), slot_bytes(mine.size())));
        const node::SegmentTicket ticket = segment.ticket();
        const auto all = introduce(state, {mine.front(), ticket.pid, ticket.fd, 0, ticket.nonce});
        introduced = true;
        if (!all) return {};

        std::vector<std::uint32_t> leaders;
        for (const Introduction& each : *all) leaders.push_back(each.leader);
        coll::Nodes nodes(leaders);
        auto row = make_row(nodes, rank, mine, (*all)[mine.front()], std::move(segment));
        if (!row) return {};
        if (!reaches_neighbours(*state.comm, nodes.ring_order(rank))) return {};
        const bool leads = nodes.count() > 1 && mine.front() == rank;
        auto group = leads ? make_leaders(*state.comm, nodes, nodes.node_of(rank)) : nullptr;
        if (leads && !group) return {};
        const std::int64_t short_bytes = leads ? static_cast<std::int64_t>(group->short_bytes()) : kAny;
        return {std::make_unique<Hierarchy>(std::move(nodes), rank, std::move(row), std::move(group)), short_bytes};
    } catch (const std::bad_alloc&) {
        if (!introduced) out_of_memory(size_of(*state.comm) * sizeof(Introduction));
        return {};
    }
}

}  // namespace

std::uint32_t count_neighbours(ompi_communicator_t& comm) noexcept {
    std::uint32_t count = 0;
    for (std::uint32_t rank = 0; rank < size_of(comm); ++rank) count += is_on_this_node(comm, rank);
    return count;
}

SharedNodes set_up_nodes(State& state) noexcept {
    Offer offer = try_to_set_up(state);
    const std::int64_t least = least_of_all(*state.comm, offer.short_bytes);
    if (least == 0) return {};
    return {std::move(offer.hierarchy), static_cast<std::uint64_t>(least)};
}

}  // namespace coop::ag
