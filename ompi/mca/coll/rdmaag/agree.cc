// SPDX-License-Identifier: BSD-3-Clause
//
// How the processes of a communicator agree to use coll/rdmaag, once per communicator.
#include <algorithm>
#include <array>
#include <limits>

#include "coop/base/architecture.h"
#include "module.h"
#include "node_setup.h"
#include "peers.h"
#include "transports.h"

namespace coop::ag {
namespace {

constexpr std::int64_t kVersion = coll::kPacketVersion;

// What one process can do. All processes take the minimum of each word; a value and its negative show whether all have
// the same one.
enum Word {
    kCan,
    kShortBytes,
    kVersionLow,
    kVersionHigh,
    kArchLow,
    kArchHigh,
    kAlgorithmLow,
    kAlgorithmHigh,
    kRingLow,
    kRingHigh,
    kBuffers,
    kNeighbours,
    kNodeLow,
    kNodeHigh,
    kWords
};
using Words = std::array<std::int64_t, kWords>;

std::int64_t architecture() noexcept { return static_cast<std::int64_t>(opal_local_arch); }

// The shortest eager limit to any partner of any algorithm; 0: one of them cannot be reached.
std::size_t longest_to_partners(ompi_communicator_t& comm) noexcept {
    const auto processes = static_cast<std::uint32_t>(ompi_comm_size(&comm));
    const auto rank = static_cast<std::uint32_t>(ompi_comm_rank(&comm));
    std::size_t shortest = std::numeric_limits<std::size_t>::max();
    const auto look_at = [&](std::uint32_t partner) { shortest = std::min(shortest, longest_packet(comm, partner)); };
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i) {
        const auto algorithm = static_cast<coll::Algorithm>(i);
        if (!coll::fits(algorithm, processes)) continue;
        // The steps after these have the same partners.
        for (std::uint32_t step = 0; step < coll::count_announcements(algorithm, processes); ++step) {
            const coll::Step s = coll::step_of(algorithm, processes, rank, step);
            look_at(s.to);
            look_at(s.from);
        }
    }
    return shortest;
}

// The longest short step that packets of `longest` bytes allow.
std::size_t short_limit(std::size_t longest) noexcept {
    return std::min(static_cast<std::size_t>(process.config.short_max), longest - sizeof(coll::Packet));
}

// All processes exchange buffers, or none.
enum Wishes : std::int64_t { kNotAsked, kNoTransport, kCanUse };
std::int64_t wish_for_buffers() noexcept {
    if (process.config.row == static_cast<std::int64_t>(Row::kAm)) return kNotAsked;
    return any_writes_buffers() ? kCanUse : kNoTransport;
}

bool is_same(const Words& least, Word low, Word high) noexcept { return least[low] == -least[high]; }

// The parameters of the node row in one word: node_memory and node_slot are less than 2^30.
std::int64_t node_parameters(const Config& c) noexcept { return (c.node << 30 | c.node_memory) << 30 | c.node_slot; }

// Agreed by all: `neighbours` is the smallest number of processes on one node.
bool wants_node_row(ompi_communicator_t& comm, std::int64_t neighbours) noexcept {
    const auto wish = static_cast<coll::Wish>(process.config.algorithm);
    return process.config.node > 0 && (wish == coll::Wish::kAuto || wish == coll::Wish::kNode) &&
           neighbours == ompi_comm_size(&comm);
}

void share_node(State& state, Group& group) noexcept {
    if (auto setup = set_up_nodes(state)) group.set_node(std::move(setup->row));
    else process.count(Count::kNodeRefused);
}

}  // namespace

Group* prepared_group(State& state, std::uint64_t bytes) noexcept {
    if (state.group && bytes > 0) return state.group.get();
    process.count(bytes == 0 ? WhyNot::kNoBytes : state.decided ? state.why_not : WhyNot::kNotPrepared);
    return nullptr;
}

Group* group_for(State& state, std::uint64_t bytes) noexcept {
    const auto left = [](WhyNot why) -> Group* {
        process.count(why);
        return nullptr;
    };
    if (bytes == 0) return left(WhyNot::kNoBytes);
    if (state.group) return state.group.get();
    if (state.decided) return left(state.why_not);
    if (++state.calls < 2) return left(WhyNot::kTooFewCalls);

    state.decided = true;
    ompi_communicator_t& comm = *state.comm;
    if (!all_use_it(comm, process.config.priority)) return left(state.why_not = WhyNot::kPeerWithout);
    std::unique_ptr<Group> group;  // not the communicator's before all agree
    std::size_t longest = 0;
    WhyNot mine = WhyNot::kPeerRefuses;
    if (!receive_packets()) mine = WhyNot::kNoBml;
    else if (longest = longest_to_partners(comm); longest <= sizeof(coll::Packet) + coll::kMaxHandleBytes)
        mine = WhyNot::kUnreachable;
    else if (group = Group::create(comm, short_limit(longest)); !group) mine = WhyNot::kNoMemory;

    const Config& c = process.config;
    const Words words{group != nullptr,   static_cast<std::int64_t>(group ? short_limit(longest) : 0),
                      kVersion,           -kVersion,
                      architecture(),     -architecture(),
                      c.algorithm,        -c.algorithm,
                      c.ring_min,         -c.ring_min,
                      wish_for_buffers(), count_neighbours(comm),
                      node_parameters(c), -node_parameters(c)};
    Words least{};
    const int rc = comm.c_coll->coll_allreduce(words.data(), least.data(), static_cast<int>(words.size()), MPI_INT64_T,
                                               MPI_MIN, &comm, comm.c_coll->coll_allreduce_module);
    const bool same = is_same(least, kVersionLow, kVersionHigh) && is_same(least, kArchLow, kArchHigh) &&
                      is_same(least, kAlgorithmLow, kAlgorithmHigh) && is_same(least, kRingLow, kRingHigh) &&
                      is_same(least, kNodeLow, kNodeHigh);
    if (rc == OMPI_SUCCESS && same && least[kCan] == 1) {
        group->agree(static_cast<std::uint64_t>(least[kShortBytes]));
        if (least[kBuffers] == kCanUse) group->exchange_buffers();
        else if (least[kBuffers] == kNoTransport && c.row == static_cast<std::int64_t>(Row::kBuffer))
            process.count(Count::kNotInOrder);
        if (wants_node_row(comm, least[kNeighbours])) share_node(state, *group);
        state.group = std::move(group);
        return state.group.get();
    }
    state.why_not = same ? mine : WhyNot::kParametersDiffer;
    return left(state.why_not);
}

}  // namespace coop::ag
