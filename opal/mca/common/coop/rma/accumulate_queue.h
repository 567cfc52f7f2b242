// SPDX-License-Identifier: BSD-3-Clause
//
// Short accumulates to one target that wait until the origin executes them together, and what that takes: few reads of
// the target's elements into registered memory, the operations there in the order of the calls, and few writes. Some return
// what they have found.
//
//     accumulates        a: ██··██      b: ··██      c: ······██······██
//     one batch   reads  [          ]          [  ]    (with gaps that are short, as in rma/cover.h)
//                 writes [    ][    ]          [  ]    (never a gap; neighbours and overlaps become one)
//
// The same element may occur in several accumulates: all work on the one copy.
//
// Units: bytes. Threading: none. Errors: add() and take() may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coop/base/export.h"
#include "coop/rma/cover.h"
#include "coop/rma/runs.h"

namespace coop::rma {

class AccumulateQueue {
public:
    // Of all that wait; somebody executes them while others wait for the lock.
    static constexpr std::size_t kMostBytes = 32 * 1024, kMostBlocks = 256;
    // Of one accumulate, so that it fits into kRoomOfOne bytes of registered memory.
    static constexpr std::size_t kLongest = 4 * 1024, kMostBlocksOfOne = 64;
    static constexpr std::uint32_t kAlignment = 16;  // of copies and targets: they agree in their addresses modulo this
    static constexpr std::uint32_t kRoomOfOne = kLongest + kMostBlocksOfOne * (kAlignment - 1);

    struct Entry {
        std::uint32_t first_block, blocks;
        std::uint32_t data;  // where its operand begins
        std::uint32_t bytes;
        std::uint8_t type;       // of the elements, as in a Record
        std::uint8_t operation;  // the same
        std::byte* result;       // where the old values go, in the order of the blocks; null: nobody wants them
    };

    static constexpr bool suits(std::uint64_t bytes, std::uint64_t blocks) noexcept {
        return bytes <= kLongest && blocks <= kMostBlocksOfOne;
    }
    bool has_room(std::uint64_t bytes, std::uint64_t blocks) const noexcept {
        return data_.size() + bytes <= kMostBytes && blocks_.size() + blocks <= kMostBlocks;
    }
    // Appends an accumulate of these blocks, which suits() and has_room(). Returns where the caller packs its operand;
    // valid until the next call. `result` stays until the accumulate has been executed.
    COOP_EXPORT std::byte* add(std::span<const Run> runs, std::uint8_t type, std::uint8_t operation,
                               std::byte* result = nullptr);
    // Whether some have results.
    bool has_results() const noexcept { return has_results_; }
    // Keeps the memory.
    void clear() noexcept {
        has_results_ = false;
        entries_.clear();
        blocks_.clear();
        data_.clear();
    }

    std::span<const Entry> entries() const noexcept { return entries_; }
    std::span<const Block> blocks() const noexcept { return blocks_; }
    std::span<const Block> blocks_of(const Entry& entry) const noexcept {
        return blocks().subspan(entry.first_block, entry.blocks);
    }
    const std::byte* operand_of(const Entry& entry) const noexcept { return data_.data() + entry.data; }

private:
    std::vector<Entry> entries_;
    std::vector<Block> blocks_;
    std::vector<std::byte> data_;
    bool has_results_ = false;
};

// Some accumulates of a queue, whose elements fit into a piece of registered memory at a time.
class AccumulateBatch {
public:
    // Takes accumulates from number `first` on, as many as fit into `room` bytes; at least one if room >= kRoomOfOne.
    // Returns the number behind the last one. `base`: the target's address of offset 0.
    COOP_EXPORT std::size_t take(const AccumulateQueue& queue, std::size_t first, std::uint32_t room,
                                 std::uint64_t base);

    std::span<const Transfer> reads() const noexcept { return reads_; }
    std::span<const Transfer> writes() const noexcept { return writes_; }
    // If only so many bytes of the writes have been executed, the first ones: the offset where they end. Nothing from there on
    // has been written, and everything before it.
    COOP_EXPORT std::uint64_t end_of_written(std::uint64_t bytes) const noexcept;
    // Where the elements of a block, by its number in the queue, are in the registered memory.
    std::uint32_t place(std::size_t block) const noexcept { return places_[block - first_block_]; }

private:
    bool plan(std::span<const Block> blocks, std::uint32_t room, std::uint64_t base);
    void join(std::span<const Block> blocks);
    bool arrange(std::uint32_t room, std::uint64_t base);

    std::size_t first_block_ = 0;
    std::vector<std::uint32_t> order_;      // of blocks, by offset
    std::vector<std::uint32_t> write_of_;   // by block
    std::vector<Transfer> writes_, reads_;  // by offset
    std::vector<std::uint32_t> places_;     // by block
};

}  // namespace coop::rma
