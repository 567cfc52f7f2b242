// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of an allgather: the blocks of all ranks, one after the other and without
// gaps. A caller whose blocks lie otherwise packs and unpacks them.
//
// of_part(1, 4) has the second quarter of each block, in the same memory:
//
//     block 0             block 1             block 2
//     ....PPPP........    ....PPPP........    ....PPPP........
//
// Units: bytes. Pure. Ownership: the ends of blocks of unequal length stay the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "coop/coll/steps.h"

namespace coop::coll {

struct Piece {
    std::uint64_t offset;  // in the memory of all blocks
    std::uint64_t bytes;
    bool operator==(const Piece&) const = default;
};

// The memory of a range: two pieces if the range wraps, else one. Empty pieces are left out.
class Pieces {
public:
    void add(Piece piece) noexcept {
        if (piece.bytes > 0) all_[count_++] = piece;
    }
    std::size_t size() const noexcept { return count_; }
    const Piece& operator[](std::size_t i) const noexcept { return all_[i]; }
    const Piece* begin() const noexcept { return all_.data(); }
    const Piece* end() const noexcept { return all_.data() + count_; }
    std::uint64_t bytes() const noexcept {
        std::uint64_t sum = 0;
        for (const Piece& piece : *this) sum += piece.bytes;
        return sum;
    }

private:
    std::array<Piece, 2> all_{};
    std::size_t count_ = 0;
};

class Blocks {
public:
    // Blocks of equal length.
    Blocks(std::uint32_t processes, std::uint64_t block_bytes) noexcept
        : processes_(processes), block_bytes_(block_bytes) {}
    // Block i ends at ends[i]; `ends` ascends.
    explicit Blocks(std::span<const std::uint64_t> ends) noexcept
        : processes_(static_cast<std::uint32_t>(ends.size())), ends_(ends.data()) {}

    std::uint32_t processes() const noexcept { return processes_; }
    std::uint64_t begin_of(std::uint32_t block) const noexcept {
        if (!ends_) return block * block_bytes_;
        return block == 0 ? 0 : ends_[block - 1];
    }
    std::uint64_t bytes_of(std::uint32_t block) const noexcept { return begin_of(block + 1) - begin_of(block); }
    std::uint64_t bytes() const noexcept { return begin_of(processes_); }
    std::uint64_t mean_bytes() const noexcept { return ends_ ? bytes() / processes_ : block_bytes_; }

    // The same blocks, but pieces_of() gives only this part of each; all other functions still give whole blocks. For
    // ring, whose ranges have one block. The parts begin at cache lines of the block; some parts of short blocks are
    // empty.
    Blocks of_part(std::uint32_t part, std::uint32_t parts) const noexcept {
        Blocks blocks = *this;
        blocks.part_ = part;
        blocks.parts_ = parts;
        return blocks;
    }

    Pieces pieces_of(const Range& range) const noexcept {
        Pieces pieces;
        if (parts_ > 1) {
            const std::uint64_t bytes = bytes_of(range.first), begin = begin_of_part(bytes, part_);
            pieces.add({begin_of(range.first) + begin, begin_of_part(bytes, part_ + 1) - begin});
            return pieces;
        }
        const std::uint64_t end = std::uint64_t{range.first} + range.count;
        const auto last = static_cast<std::uint32_t>(end < processes_ ? end : processes_);
        pieces.add({begin_of(range.first), begin_of(last) - begin_of(range.first)});
        if (end > processes_) pieces.add({0, begin_of(static_cast<std::uint32_t>(end - processes_))});
        return pieces;
    }

private:
    std::uint64_t begin_of_part(std::uint64_t bytes, std::uint32_t part) const noexcept {
        constexpr std::uint64_t kLine = 64;
        return part == parts_ ? bytes : bytes / parts_ * part / kLine * kLine;
    }

    std::uint32_t processes_;
    std::uint32_t part_ = 0, parts_ = 1;
    std::uint64_t block_bytes_ = 0;
    const std::uint64_t* ends_ = nullptr;
};

}  // namespace coop::coll
