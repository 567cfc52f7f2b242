// SPDX-License-Identifier: BSD-3-Clause
#include "hierarchy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "diagnose.h"
#include "group.h"
#include "process.h"

namespace coop::ag {
namespace {

constexpr std::uint64_t kMostKept = std::uint64_t{64} << 20;  // bytes

}  // namespace

Hierarchy::Hierarchy(coll::Nodes nodes, std::uint32_t rank, std::unique_ptr<NodeRow> row,
                     std::unique_ptr<Group> leaders)
    : nodes_(std::move(nodes)), rank_(rank), node_(nodes_.node_of(rank)), row_(std::move(row)),
      leaders_(std::move(leaders)), ends_(nodes_.processes()), member_ends_(nodes_.members(node_).size()),
      node_ends_(nodes_.count()), leader_ends_(member_ends_.size()) {}

Hierarchy::~Hierarchy() = default;

bool Hierarchy::suits(std::uint64_t block) const noexcept {
    return nodes_.count() == 1 || nodes_.is_in_order() || 2 * std::bit_floor(block) <= kMostKept / nodes_.processes();
}

bool Hierarchy::begin(std::uint64_t packet_bytes, std::uint64_t step_bytes) noexcept {
    row_->meet();
    if (!leaders_) return true;
    leaders_->agree(packet_bytes);
    return step_bytes > 0 && leaders_->exchange_buffers(step_bytes);
}

void Hierarchy::agree_on_buffers(std::uint64_t step_bytes) noexcept {
    if (leaders_) leaders_->agree_on_buffers(step_bytes);
}

void Hierarchy::gather(const std::byte* own, std::byte* memory, const coll::Blocks& blocks) noexcept {
    if (nodes_.count() == 1) return row_->gather(own, memory, blocks);
    std::uint64_t end = 0;
    for (std::uint32_t position = 0; position < nodes_.processes(); ++position)
        ends_[position] = end += blocks.bytes_of(nodes_.rank_at(position));
    if (nodes_.is_in_order()) return gather_in_order(own, memory);

    std::byte* const staging = staging_for(end);
    const auto of_rank = [&](std::uint32_t position) { return memory + blocks.begin_of(nodes_.rank_at(position)); };
    gather_in_order(own, staging);
    for (std::uint32_t position = 0; position < nodes_.processes(); ++position)
        if (const std::uint64_t bytes = ends_[position] - begin_of(position))
            std::memcpy(of_rank(position), staging + begin_of(position), bytes);
}

// It is kept for the next call, because the first use of new pages costs more than the copies. suits() limits it.
std::byte* Hierarchy::staging_for(std::uint64_t bytes) noexcept {
    if (bytes > staging_bytes_) {
        staging_.reset();
        staging_.reset(new (std::nothrow) std::byte[bytes]);
        // The other processes are in the call already, so it cannot be done otherwise.
        if (!staging_) out_of_memory(bytes);
        staging_bytes_ = bytes;
    }
    return staging_.get();
}

void Hierarchy::gather_in_order(const std::byte* own, std::byte* memory) noexcept {
    const std::uint32_t first = nodes_.begin_of(node_);
    const std::uint64_t begin = begin_of(first), end = begin_of(nodes_.begin_of(node_ + 1)), all = ends_.back();
    for (std::size_t i = 0; i < member_ends_.size(); ++i) member_ends_[i] = ends_[first + i] - begin;
    const coll::Blocks members{std::span<const std::uint64_t>(member_ends_)};
    row_->gather(own, memory + begin, members);

    if (leaders_) {
        for (std::uint32_t node = 0; node < nodes_.count(); ++node)
            node_ends_[node] = begin_of(nodes_.begin_of(node + 1));
        const auto choice = coll::choose(
            {nodes_.count(), all, coll::Wish::kAuto, static_cast<std::uint64_t>(process.config.ring_min)});
        leaders_->gather(memory, coll::Blocks{std::span<const std::uint64_t>(node_ends_)}, {choice.algorithm});
    }
    if (members.processes() == 1) return;
    // A short result is taken as a whole, because a second look at the shared memory costs more than to copy the blocks of
    // the own node again.
    if (begin > 0 && end < all && all <= row_->slot_bytes()) return take_from_leader(memory, 0, all);
    take_from_leader(memory, 0, begin);
    take_from_leader(memory, end, all);
}

// The leader posts these bytes as its block, the others post nothing.
void Hierarchy::take_from_leader(std::byte* memory, std::uint64_t begin, std::uint64_t end) noexcept {
    if (begin == end) return;
    std::fill(leader_ends_.begin(), leader_ends_.end(), end - begin);
    row_->gather(memory + begin, memory + begin, coll::Blocks{std::span<const std::uint64_t>(leader_ends_)});
}

}  // namespace coop::ag
