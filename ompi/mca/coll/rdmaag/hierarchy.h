// SPDX-License-Identifier: BSD-3-Clause
//
// Allgathers of processes that share nodes. On one node they go through shared memory. On several nodes they take three
// phases:
//
//     1   the processes of each node gather its blocks through shared memory
//     2   the first process of each node, its leader, exchanges the blocks of nodes with the other leaders
//     3   the others of the node take the blocks of other nodes from the leader through shared memory
//
// The blocks lie in the order of nodes meanwhile. If that is not the order of the ranks, they lie in memory of our own.
//
// Threading: calls on one communicator follow each other, in any threads. Ownership: the module of the communicator owns
// it.
#pragma once

#include <memory>
#include <vector>

#include "coop/coll/nodes.h"
#include "node_row.h"
#include "variables.h"

namespace coop::ag {

class Group;

class Hierarchy {
public:
    // `rank`: of this process in the communicator. `leaders`: of a leader, if there are several nodes. Throws
    // std::bad_alloc.
    Hierarchy(coll::Nodes nodes, std::uint32_t rank, std::unique_ptr<NodeRow> row, std::unique_ptr<Group> leaders);
    ~Hierarchy();

    // All processes have agreed to use it; leaders send steps up to `packet_bytes` in packets. They exchange collective
    // buffers for steps up to `step_bytes`; 0: none. Returns whether this process can write all of its steps.
    bool begin(std::uint64_t packet_bytes, std::uint64_t step_bytes) noexcept;
    // See Group.
    void agree_on_buffers(std::uint64_t step_bytes) noexcept;

    // Whether a call may go this way; the same for all blocks of a class of the trials. On several nodes whose ranks do not
    // follow each other, the whole result lies in memory of our own.
    bool suits(std::uint64_t block) const noexcept;
    const coll::Nodes& nodes() const noexcept { return nodes_; }
    Lane lane() const noexcept { return nodes_.count() == 1 ? Lane::kNode : Lane::kHierarchy; }

    // Gathers the blocks into `memory`, in the order of ranks. `own` is the own block, in its place or elsewhere.
    void gather(const std::byte* own, std::byte* memory, const coll::Blocks& blocks) noexcept;

private:
    void gather_in_order(const std::byte* own, std::byte* memory) noexcept;
    void take_from_leader(std::byte* memory, std::uint64_t begin, std::uint64_t end) noexcept;
    std::byte* staging_for(std::uint64_t bytes) noexcept;
    std::uint64_t begin_of(std::uint32_t position) const noexcept { return position == 0 ? 0 : ends_[position - 1]; }

    const coll::Nodes nodes_;
    const std::uint32_t rank_, node_;
    std::unique_ptr<NodeRow> row_;
    std::unique_ptr<Group> leaders_;        // null: this process is no leader, or there is one node
    std::unique_ptr<std::byte[]> staging_;  // for blocks in the order of nodes
    std::uint64_t staging_bytes_ = 0;
    // Of the present call: where the blocks end, by position in the order of nodes; those of the own node, from its
    // beginning; those of nodes; and those that the leader hands on.
    std::vector<std::uint64_t> ends_, member_ends_, node_ends_, leader_ends_;
};

}  // namespace coop::ag
