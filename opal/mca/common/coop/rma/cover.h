// SPDX-License-Identifier: BSD-3-Clause
//
// Groups scattered blocks of a target into few RDMA operations through a piece of registered memory.
//
// A write must not touch what lies between the blocks, so only blocks without a gap share one. A read may: one read
// covers blocks and the gaps between them if at least 1/8 of its bytes are wanted (kDensity), because a read takes
// hardly longer with some hundred bytes more.
//
//     blocks     ██····██·██··········································██
//     reads      [          ]                                         [ ]
//
// Units: bytes. Threading: none. Errors: take() may throw std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "coop/rma/runs.h"

namespace coop::rma {

// One RDMA operation: `bytes` at `offset` of the target, at `at` of the registered memory.
struct Transfer {
    std::uint64_t offset;
    std::uint32_t at;
    std::uint32_t bytes;
    bool operator==(const Transfer&) const = default;
};

// A block inside of a transfer.
struct Piece {
    std::uint32_t at;
    std::uint32_t bytes;
    bool operator==(const Piece&) const = default;
};

class Cover {
public:
    static constexpr std::uint64_t kDensity = 8;

    // Takes blocks from the cursor as long as they fit into [at, at + room) of the registered memory. Blocks that are
    // longer are cut, at a multiple of `granule` from their start. Returns how many bytes of the registered memory are
    // used: more than 0 if room >= granule.
    std::uint32_t take(RunCursor& cursor, std::uint32_t at, std::uint32_t room, bool reads, std::uint32_t granule = 1) {
        transfers_.clear();
        pieces_.clear();
        bytes_ = 0;
        std::uint32_t used = 0;
        std::uint64_t wanted = 0;  // of the last transfer
        while (!cursor.at_end() && room - used >= granule) {
            const auto whole = [granule](std::uint64_t bytes) { return bytes / granule * granule; };
            RunCursor ahead = cursor;
            const Block block = ahead.next(whole(room - used));
            Transfer* const last = transfers_.empty() ? nullptr : &transfers_.back();
            const std::uint64_t end = last ? last->offset + last->bytes : 0;
            const std::uint64_t gap = block.offset - end;
            const bool joins = last && block.offset >= end &&
                               (gap == 0 || (reads && is_dense(*last, wanted, gap, block)));
            if (joins && gap + block.bytes > room - used) {
                if (gap >= room - used || whole(room - used - gap) == 0) break;
                const Block part = cursor.next(whole(room - used - gap));
                join(*last, at, used, gap, part);
                wanted += part.bytes;
                continue;
            }
            cursor = ahead;
            if (joins) {
                join(*last, at, used, gap, block);
                wanted += block.bytes;
                continue;
            }
            const auto bytes = static_cast<std::uint32_t>(block.bytes);
            transfers_.push_back({block.offset, at + used, bytes});
            pieces_.push_back({at + used, bytes});
            used += bytes;
            bytes_ += bytes;
            wanted = bytes;
        }
        return used;
    }

    std::span<const Transfer> transfers() const noexcept { return transfers_; }
    std::span<const Piece> pieces() const noexcept { return pieces_; }
    // Of all pieces.
    std::uint64_t bytes() const noexcept { return bytes_; }

private:
    static bool is_dense(const Transfer& last, std::uint64_t wanted, std::uint64_t gap, const Block& block) noexcept {
        return gap < UINT32_MAX && (wanted + block.bytes) * kDensity >= last.bytes + gap + block.bytes;
    }
    void join(Transfer& last, std::uint32_t at, std::uint32_t& used, std::uint64_t gap, const Block& block) {
        const auto skip = static_cast<std::uint32_t>(gap), bytes = static_cast<std::uint32_t>(block.bytes);
        if (skip == 0) pieces_.back().bytes += bytes;
        else pieces_.push_back({at + used + skip, bytes});
        last.bytes += skip + bytes;
        used += skip + bytes;
        bytes_ += bytes;
    }

    std::vector<Transfer> transfers_;
    std::vector<Piece> pieces_;
    std::uint64_t bytes_ = 0;
};

}  // namespace coop::rma
