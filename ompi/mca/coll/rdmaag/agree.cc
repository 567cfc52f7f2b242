// SPDX-License-Identifier: BSD-3-Clause
//
// How the processes of a communicator agree to use coll/rdmaag, once per communicator.
#include <algorithm>
#include <array>
#include <new>

#include "coop/base/architecture.h"
#include "module.h"
#include "node_setup.h"
#include "partners.h"
#include "peers.h"
#include "transports.h"

namespace coop::ag {
namespace {

// What one process can do. All processes take the minimum of each word; a value and its negative show whether all have
// the same one.
enum Word {
    kCan,
    kShortBytes,
    kArchLow,
    kArchHigh,
    kAlgorithmLow,
    kAlgorithmHigh,
    kRingLow,
    kRingHigh,
    kBuffers,
    kStepBytes,  // longest step through a collective buffer
    kFewestNeighbours,
    kMostNeighbours,  // negative
    kNodeLow,
    kNodeHigh,
    kTuneLow,
    kTuneHigh,
    kWords
};
using Words = std::array<std::int64_t, kWords>;

std::int64_t architecture() noexcept { return static_cast<std::int64_t>(opal_local_arch); }

// All processes exchange buffers, or none.
enum Wishes : std::int64_t { kNotAsked, kNoTransport, kSomePartners, kAllPartners };
std::int64_t wish_for_buffers(const Group* group) noexcept {
    if (process.config.row == static_cast<std::int64_t>(Row::kAm)) return kNotAsked;
    if (!any_writes_buffers()) return kNoTransport;
    return group && group->may_write_all_steps() ? kAllPartners : kSomePartners;
}

bool is_same(const Words& least, Word low, Word high) noexcept { return least[low] == -least[high]; }

// The parameters of the node row in one word: node_memory and node_slot are less than 2^30.
std::int64_t node_parameters(const Config& c) noexcept { return (c.node << 30 | c.node_memory) << 30 | c.node_slot; }

// Whether the processes have to find out which of them share nodes: to use shared memory, or to order a ring by node.
bool needs_nodes(ompi_communicator_t& comm, const Words& least) noexcept {
    const auto wish = static_cast<coll::Wish>(process.config.algorithm);
    const bool one_node = least[kFewestNeighbours] == ompi_comm_size(&comm), some = least[kMostNeighbours] < -1;
    if (wish == coll::Wish::kRing) return process.config.node > 1 && !one_node && some;
    if (wish != coll::Wish::kAuto && wish != coll::Wish::kNode) return false;
    return process.config.node > (one_node ? 0 : 1) && some;
}

// Returns false if this process leads a node, and cannot write all of its steps into collective buffers of leaders.
bool share_nodes(State& state, Group& group, std::uint64_t step_bytes) noexcept {
    SharedNodes nodes = set_up_nodes(state);
    if (!nodes.hierarchy) {
        process.count(Count::kNodeRefused);
        return false;
    }
    state.hierarchy = std::move(nodes.hierarchy);
    const coll::Nodes& order = state.hierarchy->nodes();
    if (!order.is_in_order())
        group.order_rings(order.ring_order(static_cast<std::uint32_t>(ompi_comm_rank(state.comm))));
    return state.hierarchy->begin(nodes.packet_bytes, step_bytes);
}

// Prepares the nodes, if wanted, and collective buffers for steps up to `step_bytes`; no buffers if that is 0.
// Where all processes can write all of their steps, steps too long for a packet are short, too. `all_partners`: that is
// possible; if not, no step in a buffer is longer than a packet.
void prepare_nodes_and_buffers(State& state, Group& group, bool wants_nodes, bool all_partners,
                               std::uint64_t step_bytes) noexcept {
    std::array<std::int32_t, 2> works{};  // whether buffers work: for the group, for the leaders
    if (wants_nodes) works[1] = share_nodes(state, group, step_bytes);
    if (step_bytes == 0 || (state.hierarchy && state.hierarchy->lane() == Lane::kNode)) return;
    works[0] = group.exchange_buffers(all_partners ? step_bytes : std::min(group.packet_bytes(), step_bytes)) &&
               all_partners;
    ompi_communicator_t& comm = *state.comm;
    if (comm.c_coll->coll_allreduce(MPI_IN_PLACE, works.data(), 2, MPI_INT32_T, MPI_MIN, &comm,
                                    comm.c_coll->coll_allreduce_module) != OMPI_SUCCESS)
        return;
    if (works[0]) group.agree_on_buffers(step_bytes);
    if (works[1]) state.hierarchy->agree_on_buffers(step_bytes);
}

}  // namespace

Group* prepared_group(State& state, std::uint64_t bytes) noexcept {
    if (state.group && bytes > 0) return state.group.get();
    process.count(bytes == 0      ? WhyNot::kNoBytes
                  : state.decided ? state.why_not
                                  : WhyNot::kNotPrepared,
                  bytes / static_cast<std::uint64_t>(ompi_comm_size(state.comm)));
    return nullptr;
}

bool leaves_all(const State& state) noexcept {
    if (!state.decided || state.group || process.config.report > 1) return false;
    process.count(state.why_not, 0);
    return true;
}

Group* group_for(State& state, std::uint64_t bytes) noexcept {
    const auto left = [&state, bytes](WhyNot why) -> Group* {
        process.count(why, bytes / static_cast<std::uint64_t>(ompi_comm_size(state.comm)));
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
    std::unique_ptr<coll::Tuner> tuner(new (std::nothrow) coll::Tuner(static_cast<std::uint32_t>(process.config.tune)));
    std::size_t short_bytes = 0;
    WhyNot mine = WhyNot::kPeerRefuses;
    if (!receive_packets()) mine = WhyNot::kNoBml;
    else if (short_bytes = short_limit(Members(comm)); short_bytes == 0) mine = WhyNot::kUnreachable;
    else if (group = Group::create(Members(comm), short_bytes); !group || !tuner) mine = WhyNot::kNoMemory;

    const Config& c = process.config;
    const std::int64_t neighbours = count_neighbours(comm);
    const bool can = group && tuner;
    const Words words{can,
                      static_cast<std::int64_t>(can ? short_bytes : 0),
                      architecture(),
                      -architecture(),
                      c.algorithm,
                      -c.algorithm,
                      c.ring_min,
                      -c.ring_min,
                      wish_for_buffers(group.get()),
                      c.short_max,
                      neighbours,
                      -neighbours,
                      node_parameters(c),
                      -node_parameters(c),
                      c.tune,
                      -c.tune};
    Words least{};
    const int rc = comm.c_coll->coll_allreduce(words.data(), least.data(), static_cast<int>(words.size()), MPI_INT64_T,
                                               MPI_MIN, &comm, comm.c_coll->coll_allreduce_module);
    const bool same = is_same(least, kArchLow, kArchHigh) && is_same(least, kAlgorithmLow, kAlgorithmHigh) &&
                      is_same(least, kRingLow, kRingHigh) && is_same(least, kNodeLow, kNodeHigh) &&
                      is_same(least, kTuneLow, kTuneHigh);
    if (rc == OMPI_SUCCESS && same && least[kCan] == 1) {
        group->agree(static_cast<std::uint64_t>(least[kShortBytes]));
        const bool buffers = least[kBuffers] >= kSomePartners;
        if (!buffers && least[kBuffers] == kNoTransport && c.row == static_cast<std::int64_t>(Row::kBuffer))
            process.count(Count::kNotInOrder);
        prepare_nodes_and_buffers(state, *group, needs_nodes(comm, least), least[kBuffers] == kAllPartners,
                                  buffers ? static_cast<std::uint64_t>(least[kStepBytes]) : 0);
        tuner->agree(group->short_bytes());
        state.group = std::move(group);
        state.tuner = std::move(tuner);
        return state.group.get();
    }
    state.why_not = same ? mine : WhyNot::kParametersDiffer;
    return left(state.why_not);
}

}  // namespace coop::ag
