// SPDX-License-Identifier: BSD-3-Clause
//
// The node row: allgathers among the processes of a communicator that share a node, through shared memory. Long blocks
// are copied by process_vm_readv (CMA) where the kernel permits it. (coop/coll/node_call.h)
//
// Threading: calls on one communicator follow each other, in any threads. Ownership: the hierarchy of the communicator
// owns its row. Errors: a wrong word of another process ends the job.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compat.h"
#include "coop/coll/node_call.h"
#include "coop/node/segment.h"

namespace coop::ag {

class NodeRow {
public:
    // `members`: the ranks of the node. `segment` has bytes_for() bytes. Throws std::bad_alloc.
    NodeRow(std::span<const std::uint32_t> members, std::uint32_t own_rank, node::Segment segment,
            std::size_t slot_bytes);
    NodeRow(const NodeRow&) = delete;
    NodeRow& operator=(const NodeRow&) = delete;
    std::size_t slot_bytes() const noexcept { return area_.slot_bytes(); }
    static std::size_t bytes_for(std::size_t processes, std::size_t slot_bytes) noexcept {
        return coll::NodeArea::bytes_for(static_cast<std::uint32_t>(processes), slot_bytes);
    }

    // When all members have a row: finds out which of them this process can read, and whether they outnumber the CPUs.
    void meet() noexcept;

    // Gathers the blocks of the members into `memory`. `own` is the own block, in its place or elsewhere. Returns when
    // `memory` has all blocks and no other member reads `own` any more.
    void gather(const std::byte* own, std::byte* memory, const coll::Blocks& blocks) noexcept;

    std::uint32_t index() const noexcept { return index_; }  // of this process among the members
    std::uint32_t processes() const noexcept { return area_.processes(); }

    // --- the reader of coll/node_call.h ---
    bool read(std::uint32_t from, std::uint64_t address, std::byte* to, std::uint64_t bytes) noexcept;

private:
    struct Member {
        std::uint32_t rank;
        std::int32_t pid;
        bool refuses;  // the kernel does not let this process read it
    };

    node::Segment segment_;
    coll::NodeArea area_;
    std::uint32_t index_ = 0;
    std::vector<Member> members_;
    coll::NodeCalls<NodeRow> calls_;
    bool crowded_ = false;
    std::uint64_t read_since_ = 0;  // bytes since the last call of opal_progress()
};

}  // namespace coop::ag
