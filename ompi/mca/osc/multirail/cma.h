// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of several blocks between memory of this process and the part of another one of the node.
//
// Threading: any. Errors: errno.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

#include "coop/node/remote_copy.h"
#include "coop/rma/cover.h"
#include "memory.h"
#include "process.h"

namespace coop::osc {

struct Copied {
    int error;            // 0, or an errno
    std::uint64_t bytes;  // copied: all or more, or with an error, the first ones of the blocks, in their order
};

// What lies between two blocks of the target is read with them if it is so short: the kernel needs more time for a further
// block. It is in the pages of the blocks, so it can be read if they can. It goes here.
struct Gap {
    static constexpr std::uint64_t kMost = 1024;
    std::array<std::byte, kMost> memory;

    // Before a block is added behind one that ends at `end`.
    bool add(node::RemoteCopy& copy, std::uint64_t base, std::uint64_t end, std::uint64_t next) noexcept {
        if (next <= end || next - end > kMost) return true;
        return copy.add(memory.data(), base + end, next - end);
    }
};

// `blocks` have an offset in the target's part and a length; here_of(block) is the memory of this process. With a `gap`, a
// read, of which nothing counts as copied if there is an error.
template <class Block, class F>
Copied copy_blocks(const Card& card, node::RemoteCopy::To to, std::span<const Block> blocks, F here_of,
                   Gap* gap = nullptr) noexcept {
    // An injected fault refuses about the second half. An even number of blocks does not cut the pairs of writes_of().
    const bool refuses = process.faults.hit(to == node::RemoteCopy::To::kThere ? Fault::kPut : Fault::kGet);
    if (refuses) blocks = blocks.first(blocks.size() / 4 * 2);
    node::RemoteCopy copy(card.pid, to);
    std::uint64_t end = UINT64_MAX;
    for (const Block& each : blocks) {
        if (gap && !gap->add(copy, card.base, end, each.offset)) break;
        if (!copy.add(here_of(each), card.base + each.offset, each.bytes)) break;
        end = each.offset + each.bytes;
    }
    if (copy.error() == 0) copy.flush();
    const int error = copy.error() == 0 && refuses ? EPERM : copy.error();
    return {error, error && gap ? 0 : copy.copied()};
}

inline Copied copy_transfers(const Card& card, node::RemoteCopy::To to, std::byte* memory,
                             std::span<const rma::Transfer> transfers) noexcept {
    return copy_blocks(card, to, transfers, [memory](const rma::Transfer& each) { return memory + each.at; });
}

}  // namespace coop::osc
