// SPDX-License-Identifier: BSD-3-Clause
//
// The layout of an access in the memory of its target: the origin flattens the target's datatype into runs, so that the
// target needs no datatype to execute the access. A run is a block that repeats at a constant stride, as vectors do.
//
//     Run{offset 100, bytes 8, stride 24, repeat 3}     [100, 108) [124, 132) [148, 156)
//
// Units: bytes. Offsets count from the start of the window; in a window of dynamic memory they are addresses.
// Threading: none. Errors: add() may throw std::bad_alloc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "coop/base/export.h"

namespace coop::rma {

struct Run {
    std::uint64_t offset;
    std::uint64_t bytes;   // of each block
    std::int64_t stride;   // between the starts of blocks
    std::uint64_t repeat;  // blocks, at least 1
    bool operator==(const Run&) const = default;
};
static_assert(sizeof(Run) == 32);

struct Block {
    std::uint64_t offset;
    std::uint64_t bytes;
};

class RunBuilder {
public:
    // Appends a block. Blocks keep their order, since the data of the access is packed in it.
    COOP_EXPORT void add(std::uint64_t offset, std::uint64_t bytes);
    void add(const Block& block) { add(block.offset, block.bytes); }
    // The same for all blocks of a run.
    COOP_EXPORT void add(const Run& run);

    std::span<const Run> runs() const noexcept {
        return many_.empty() ? std::span<const Run>(few_.data(), few_count_) : std::span<const Run>(many_);
    }
    // The only block, if there is one.
    std::optional<Block> single() const noexcept {
        if (few_count_ != 1 || few_[0].repeat != 1) return std::nullopt;
        return Block{few_[0].offset, few_[0].bytes};
    }
    std::uint64_t bytes() const noexcept { return bytes_; }
    void clear() noexcept {
        many_.clear();
        few_count_ = 0;
        bytes_ = 0;
    }

private:
    // The last run; null: there is none.
    Run* last_run() noexcept {
        if (!many_.empty()) return &many_.back();
        return few_count_ > 0 ? &few_[few_count_ - 1] : nullptr;
    }
    void append(const Run& run);

    // Most accesses need one run, and no memory for it.
    std::array<Run, 2> few_;     // the first few_count_ are valid, while many_ is empty
    std::size_t few_count_ = 0;  // more than there is room for: they are in many_
    std::vector<Run> many_;
    std::uint64_t bytes_ = 0;
};

// Whether no block is empty and all lie inside of [0, size).
COOP_EXPORT bool are_inside(std::span<const Run> runs, std::uint64_t size) noexcept;
// The bytes of all blocks; no more than UINT64_MAX.
COOP_EXPORT std::uint64_t count_bytes(std::span<const Run> runs) noexcept;

// The number of blocks.
inline std::uint64_t count_blocks(std::span<const Run> runs) noexcept {
    std::uint64_t blocks = 0;
    for (const Run& run : runs) blocks += run.repeat;
    return blocks;
}

// Walks over the blocks of runs, which must outlive the cursor.
class RunCursor {
public:
    explicit RunCursor(std::span<const Run> runs) noexcept : runs_(runs) {}

    bool at_end() const noexcept { return run_ == runs_.size(); }
    // Bytes left of the block that comes next. Precondition: not at_end().
    std::uint64_t left_of_block() const noexcept { return runs_[run_].bytes - inside_; }
    // The next block, or its first `most` bytes. Preconditions: not at_end(), most > 0.
    Block next(std::uint64_t most) noexcept {
        const Run& run = runs_[run_];
        const Block block{run.offset + static_cast<std::uint64_t>(run.stride) * turn_ + inside_,
                          std::min(most, run.bytes - inside_)};
        inside_ += block.bytes;
        if (inside_ == run.bytes) {
            inside_ = 0;
            if (++turn_ == run.repeat) {
                turn_ = 0;
                ++run_;
            }
        }
        return block;
    }

private:
    std::span<const Run> runs_;
    std::size_t run_ = 0;
    std::uint64_t turn_ = 0, inside_ = 0;
};

}  // namespace coop::rma
